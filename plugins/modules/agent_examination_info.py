#!/usr/bin/python
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: agent_examination_info
short_description: Examine whether an agent can run sessions
description:
  - Reports what the engine and the kernel of the agent provide. M(cluster.compute.agent_diagnosis) evaluates the reports.
  - If there are other agents, a short-lived container tests whether the kernel supports encrypted networks. It is removed again.
  - An agent that cannot be examined is a report with C(reachable=false); the task does not fail.
options:
  name:
    description:
      - The agent's name in the inventory.
    type: str
    required: true
  image:
    description:
      - The image for the container of the test. It contains C(ip).
    type: str
    default: cluster-compute/reference:1
  addresses:
    description:
      - Addresses at which other agents may reach this agent. The first address that an interface of the host has is used,
        else the address from which the host's default route starts.
    type: list
    elements: str
    default: []
  several:
    description:
      - Whether there are other agents.
    type: bool
    default: false
  runtime_edition:
    description:
      - The digest of the scripts in the SSH runtime; set by the action plugin. If empty, any.
    type: str
    default: ''
extends_documentation_fragment:
  - cluster.compute.engine
  - cluster.compute.attributes.info
  - cluster.compute.attributes.action
  - cluster.compute.attributes.actiongroup_compute
attributes:
  check_mode:
    support: full
  diff_mode:
    support: N/A
  idempotent:
    support: full
author:
  - The cluster.compute authors (@cluster-compute)
seealso:
  - module: cluster.compute.agent_info
  - module: cluster.compute.agent_diagnosis
"""

EXAMPLES = r"""
- name: Examine the agent
  cluster.compute.agent_examination_info:
    name: "{{ inventory_hostname }}"
  register: examination
"""

RETURN = r"""
report:
  description: The properties of the agent.
  returned: always
  type: dict
  contains:
    name:
      description: The agent's name.
      returned: always
      type: str
    reachable:
      description: Whether the engine answered.
      returned: always
      type: bool
    reason:
      description: Why it did not answer.
      returned: always
      type: str
    address:
      description: The address at which the other agents reach this agent.
      returned: when the agent is reachable
      type: str
    time:
      description: The host's clock, in seconds since the epoch.
      returned: when the agent is reachable
      type: float
    clock:
      description: Seconds by which the host's clock is certainly ahead of the controller's clock; negative if it is behind.
      returned: when the agent is reachable
      type: float
    engine:
      description: The version of the engine.
      returned: when the agent is reachable
      type: str
      sample: 20.10.24
    open_api:
      description: The TCP addresses at which the engine accepts requests without a client certificate.
      returned: when the agent is reachable
      type: list
      elements: str
      sample: ["http://0.0.0.0:2375"]
    sdk:
      description: The version of the Docker SDK for Python.
      returned: when the agent is reachable
      type: str
      sample: 5.0.3
    python:
      description: The version of Python.
      returned: when the agent is reachable
      type: str
    runtime:
      description: Whether the volume with the SSH runtime exists.
      returned: when the agent is reachable
      type: bool
    image:
      description: Whether O(image) exists.
      returned: when the agent is reachable
      type: bool
    disk:
      description: The folder in which the engine stores its data.
      returned: when the agent is reachable
      type: str
    disk_free:
      description: Free bytes in that folder; -1 if it cannot be read.
      returned: when the agent is reachable
      type: int
    cgroups:
      description: The limits that the kernel supports, by name.
      returned: when the agent is reachable
      type: dict
    cgroup_version:
      description: The version of the cgroup hierarchy.
      returned: when the agent is reachable
      type: str
    cgroup_driver:
      description: The cgroup driver of the engine.
      returned: when the agent is reachable
      type: str
      sample: systemd
    systemd:
      description: Whether systemd manages the host.
      returned: when the agent is reachable
      type: bool
    kernel:
      description: Limits of the kernel and of the engine that bound the number of containers. What cannot be read is left out.
      returned: when the agent is reachable
      type: dict
      sample: {neighbours: 1024, processes: 4194304, inotify: 128, files: 1048576}
    bridge_filter:
      description: Whether packets between the ports of a bridge pass iptables (C(net.bridge.bridge-nf-call-iptables)).
      returned: when the agent is reachable
      type: bool
    gpus:
      description: The number of device nodes of NVIDIA GPUs on the host.
      returned: when the agent is reachable
      type: int
    amd_gpus:
      description: The number of GPUs of AMD that containers can get.
      returned: when the agent is reachable
      type: int
    gpu_runtime:
      description: Whether the engine has the runtime C(nvidia).
      returned: when the agent is reachable
      type: bool
    log_driver:
      description: The default logging driver of the engine.
      returned: when the agent is reachable
      type: str
      sample: json-file
    storage:
      description: The storage driver of the engine and its file system.
      returned: when the agent is reachable
      type: str
      sample: overlay2 on extfs
    nofile:
      description: The number of open files that a container can get; 0 if it is not known.
      returned: when the agent is reachable
      type: int
    memlock:
      description: Bytes that a container can lock in memory; -1 means unlimited, 0 not known.
      returned: when the agent is reachable
      type: int
    networks:
      description: The subnets of the engine's networks, without networks of sessions.
      returned: when the agent is reachable
      type: list
      elements: str
    session_networks:
      description: The subnets of the networks of sessions.
      returned: when the agent is reachable
      type: list
      elements: str
    routes:
      description: The networks to which the host has a route.
      returned: when the agent is reachable
      type: list
      elements: str
    nfs:
      description: Whether the host has an NFS client.
      returned: when the agent is reachable
      type: bool
    silent_folders:
      description: Folders of this host that containers of sessions mount and that do not answer, as those of a lost file server.
      returned: when the agent is reachable
      type: list
      elements: str
      sample: [/srv/data]
    mtu:
      description: The MTU of the network between the agents.
      returned: when the agent is reachable
      type: int
      sample: 1500
    esp:
      description: Whether the kernel supports encrypted networks; null if it was not tested.
      returned: when the agent is reachable
      type: bool
    esp_reason:
      description: The output of that test.
      returned: when the agent is reachable
      type: str
    swarm:
      description: The Swarm membership, as M(cluster.compute.swarm_info) returns it, and its C(error).
      returned: when the agent is reachable
      type: dict
duration:
  description: Seconds that the call took.
  returned: success
  type: float
  sample: 0.12
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._agents.examination import examine
from ..module_utils._core.documents import Json
from ..module_utils._module import engine_options, run

ARGUMENT_SPEC = {
    "name": {"type": "str", "required": True},
    "image": {"type": "str", "default": "cluster-compute/reference:1"},
    "addresses": {"type": "list", "elements": "str", "default": []},
    "several": {"type": "bool", "default": False},
    "runtime_edition": {"type": "str", "default": ""},
    **engine_options(),
}

RULES = {"supports_check_mode": True}


def work(params: Json, check_mode: bool) -> Json:
    return {"report": examine(params)}


def main() -> None:
    run(AnsibleModule(argument_spec=ARGUMENT_SPEC, **RULES), work)


if __name__ == "__main__":
    main()
