#!/usr/bin/python
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: agent_info
short_description: Report the resources of an agent and the containers of sessions on it
description:
  - Returns everything that the scheduler needs to know about an agent, from its engine and its kernel.
  - An engine that does not answer is a report with C(reachable=false) and a reason; the module does not fail.
options:
  name:
    description:
      - The agent's name in the inventory.
    type: str
    required: true
  image:
    description:
      - An image to look for on the engine.
    type: str
    default: ""
  paths:
    description:
      - Folders and files to look for on the host.
    type: list
    elements: str
    default: []
  group:
    description:
      - The resource groups of the agent.
    type: list
    elements: str
    default: [default]
  schedulable:
    description:
      - Whether new sessions may be placed on the agent.
    type: bool
    default: true
  reserved_cpus:
    description:
      - CPUs that are reserved for the host, such as V(1) or V(0.5).
    type: str
    default: "0"
  reserved_memory:
    description:
      - Memory that is reserved for the host, such as V(2g).
    type: str
    default: "0"
  cpus:
    description:
      - The number of CPUs of the agent, in place of the engine's own count.
    type: str
  memory:
    description:
      - The memory of the agent, such as V(64g), in place of the engine's own amount.
    type: str
  gpus:
    description:
      - The GPUs of the agent, in place of the GPUs that its kernel shows. Each has an C(id) and, if several sessions
        can share it, a number of C(shares).
    type: list
    elements: dict
  publish:
    description:
      - The address of the agent on which ports are published.
    type: str
    default: 127.0.0.1
  address:
    description:
      - The address at which the controller reaches the agent.
    type: str
    default: 127.0.0.1
  measure:
    description:
      - Whether to measure what each running container and each NVIDIA device uses now. This takes at least half a second.
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
  - module: cluster.compute.schedule
"""

EXAMPLES = r"""
- name: Get the report of each agent
  cluster.compute.agent_info:
    name: "{{ inventory_hostname }}"
    image: cluster-compute:latest
    reserved_cpus: "1"
    reserved_memory: 2g
  register: report
"""

RETURN = r"""
connected:
  description: V(false) if Ansible itself cannot reach the host.
  returned: when the host cannot be reached
  type: bool
  sample: false
lacks:
  description:
    - What the host lacks that a launch can supply first.
    - V(agent) stands for the engine, the SSH runtime of this release or the reference image, V(environment) for the image of an
      environment.
  returned: always
  type: list
  elements: str
  sample: []
options:
  description: The options of the module, for an action that asks again.
  returned: always
  type: dict
agent:
  description: The report.
  returned: success
  type: dict
  contains:
    name:
      description: The agent's name.
      type: str
      returned: always
    reachable:
      description: Whether the engine answered.
      type: bool
      returned: always
    reason:
      description: Why it did not answer.
      type: str
      returned: always
    may_return:
      description:
        - V(false) if the agent cannot be used and waiting changes nothing, for example without the Docker SDK for Python, or without
          the permission to use the engine.
      type: bool
      returned: always
    architecture:
      description: The host's architecture, as the kernel calls it.
      type: str
      returned: always
      sample: x86_64
    capacity:
      description: What sessions can allocate.
      type: dict
      returned: always
      contains:
        millicpus:
          description: Thousandths of a CPU.
          type: int
          returned: always
        memory:
          description: Bytes.
          type: int
          returned: always
        gpus:
          description: The GPUs, each with C(id) and C(shares).
          type: list
          elements: dict
          returned: always
        cpu_ids:
          description: The CPUs to which containers can be pinned.
          type: list
          elements: int
          returned: always
    engine:
      description: The engine.
      type: dict
      returned: always
      contains:
        version:
          description: The version of the engine.
          type: str
          returned: always
        api:
          description: The version of its API.
          type: str
          returned: always
        rootless:
          description: Whether the engine runs without root.
          type: bool
          returned: always
        swarm:
          description: Its Swarm membership, as M(cluster.compute.swarm_info) returns it.
          type: dict
          returned: always
    limits:
      description: The limits that a container can get; -1 means unlimited, 0 not known.
      type: dict
      returned: always
      contains:
        nofile:
          description: Open files.
          type: int
          returned: always
          sample: 1048576
        memlock:
          description: Bytes that can be locked in memory.
          type: int
          returned: always
          sample: -1
    kernel:
      description: Limits of the kernel and of the engine that bound the number of containers. What cannot be read is left out.
      type: dict
      returned: always
      sample: {neighbours: 1024, processes: 4194304, inotify: 128, files: 1048576}
    paths:
      description: Which of O(paths) exist.
      type: dict
      returned: always
    image:
      description: The image O(image).
      type: dict
      returned: always
      contains:
        reference:
          description: The reference of the image.
          type: str
          returned: always
        present:
          description: Whether the image exists.
          type: bool
          returned: always
        id:
          description: The ID of the image.
          type: str
          returned: always
        architecture:
          description: The architecture of the image.
          type: str
          returned: always
    runtime:
      description: The SSH runtime.
      type: dict
      returned: always
      contains:
        volume:
          description: The name of the volume.
          type: str
          returned: always
        present:
          description: Whether the volume exists.
          type: bool
          returned: always
    mtu:
      description: The MTU of the network between the agents.
      type: int
      returned: always
      sample: 1500
    routes:
      description: The networks that the host has a route to.
      type: list
      elements: str
      returned: always
    needed_addresses:
      description: The gateways and name servers of the host, and the address that the controller connects from.
      type: list
      elements: str
      returned: always
    networks:
      description: The engine's networks.
      type: list
      elements: dict
      returned: always
    ports:
      description: The TCP ports that are in use on the host.
      type: list
      elements: int
      returned: always
    names:
      description: The names of the engine's containers that belong to no session.
      type: list
      elements: str
      returned: always
    containers:
      description:
        - The containers of sessions, by session and rank.
        - With O(measure=true), each has C(measured) with C(millicpus) and C(memory) in bytes, or null if it could not be measured.
      type: list
      elements: dict
      returned: always
    gpu_use:
      description: What each NVIDIA device of the host does; empty without O(measure=true).
      type: list
      elements: dict
      returned: always
      contains:
        id:
          description: The UUID of the device.
          type: str
          returned: always
        percent:
          description: Its utilization in percent.
          type: int
          returned: always
        memory:
          description: Bytes of its memory that are in use.
          type: int
          returned: always
        capacity:
          description: Bytes of its memory.
          type: int
          returned: always
    ignored_containers:
      description: Containers that claim to belong to a session, and that every command ignores because a label cannot be read.
      type: list
      elements: dict
      returned: always
      contains:
        engine_name:
          description: The container's name in the engine.
          type: str
          returned: always
          sample: alice.train.main1
        label:
          description: The first label that cannot be read.
          type: str
          returned: always
          sample: cluster.compute.container.resources
duration:
  description: Seconds that the call took.
  returned: always
  type: float
  sample: 0.08
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.cluster.compute.plugins.module_utils._agents.report import report
from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json
from ansible_collections.cluster.compute.plugins.module_utils._module import engine_options, run

ARGUMENT_SPEC = {
    "name": {"type": "str", "required": True},
    "image": {"type": "str", "default": ""},
    "paths": {"type": "list", "elements": "str", "default": []},
    "group": {"type": "list", "elements": "str", "default": ["default"]},
    "schedulable": {"type": "bool", "default": True},
    "reserved_cpus": {"type": "str", "default": "0"},
    "reserved_memory": {"type": "str", "default": "0"},
    "cpus": {"type": "str"},
    "memory": {"type": "str"},
    "gpus": {"type": "list", "elements": "dict"},
    "publish": {"type": "str", "default": "127.0.0.1"},
    "address": {"type": "str", "default": "127.0.0.1"},
    "measure": {"type": "bool", "default": False},
    "runtime_edition": {"type": "str", "default": ""},
    **engine_options(),
}

RULES = {"supports_check_mode": True}

_IGNORED = "On %s the container %s is ignored, because its label %s cannot be read: remove that container."


def work(params: Json, check_mode: bool) -> Json:
    agent = report(params)
    warnings = [_IGNORED % (agent["name"], each["engine_name"], each["label"]) for each in agent["ignored_containers"]]
    return {"agent": agent, **({"warnings": warnings} if warnings else {})}


def main() -> None:
    run(AnsibleModule(argument_spec=ARGUMENT_SPEC, **RULES), work)


if __name__ == "__main__":
    main()
