#!/usr/bin/python
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: port_probe
short_description: Send datagrams to other agents, and connect to their Swarm ports
description:
  - Sends real datagrams to the UDP ports that an overlay network uses, and opens TCP connections to the ports of a Swarm.
  - A short-lived container also sends datagrams to the port of VXLAN of all agents, which must not arrive. It is removed again.
  - Nothing on the host or on the other agents changes.
  - An agent on which this is not possible is a result with C(probe.reason); the task does not fail.
options:
  name:
    description:
      - The agent's name in the inventory.
    type: str
    required: true
  mark:
    description:
      - A string that distinguishes the datagrams of this check from those of other checks. All agents of a check use the same mark.
    type: str
    required: true
  image:
    description:
      - The image for the container. It contains C(python3).
    type: str
    default: cluster-compute/reference:1
  agents:
    description:
      - The agents of the check, this agent included.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: The agent's name.
        type: str
        required: true
      address:
        description: The address at which other agents reach the agent. An agent without an address is not probed.
        type: str
        default: ""
      mtu:
        description: The MTU of the agent's network. The largest datagram has this size.
        type: int
        default: 1500
      member:
        description: Whether the agent's engine is in a Swarm, so that its TCP ports answer.
        type: bool
        default: false
  vxlan_port:
    description:
      - The UDP port of the Swarm's overlay networks, which no container may reach.
    type: int
    default: 4789
  examinations:
    description:
      - The variable in which the hosts of the play registered the result of M(cluster.compute.agent_examination_info).
      - If it is set, O(agents) are the reachable agents among them, and O(vxlan_port) is the port that a manager among them reports.
    type: str
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
  - module: cluster.compute.port_listener
  - module: cluster.compute.agent_diagnosis
"""

EXAMPLES = r"""
- name: Send to the other agents
  cluster.compute.port_probe:
    name: agent1
    mark: 3f9c0d1e2b4a
    agents:
      - name: agent1
        address: 192.0.2.11
      - name: agent2
        address: 192.0.2.12
        member: true
  register: probe
"""

RETURN = r"""
probe:
  description: What this step contributes to the check of the agent.
  returned: always
  type: dict
  contains:
    sent:
      description: Whether the agent sent its datagrams.
      returned: success
      type: bool
    contained:
      description: Whether a container of the agent sent its datagrams.
      returned: success
      type: bool
    connected:
      description: The answers of the TCP ports by agent and port, C(open), C(refused) or C(silent).
      returned: success
      type: dict
    reason:
      description: Why the agent or its container cannot send.
      returned: when the agent or its container cannot send
      type: str
duration:
  description: Seconds that the call took.
  returned: success
  type: float
  sample: 0.12
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._agents import port_probe
from ..module_utils._core.documents import Json
from ..module_utils._core.errors import EngineError
from ..module_utils._core.waiting import deadline_in
from ..module_utils._docker.client import Engine
from ..module_utils._module import engine_options, run

ARGUMENT_SPEC = {
    "name": {"type": "str", "required": True},
    "mark": {"type": "str", "required": True},
    "image": {"type": "str", "default": "cluster-compute/reference:1"},
    "agents": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {
            "name": {"type": "str", "required": True},
            "address": {"type": "str", "default": ""},
            "mtu": {"type": "int", "default": 1500},
            "member": {"type": "bool", "default": False},
        },
    },
    "vxlan_port": {"type": "int", "default": 4789},
    "examinations": {"type": "str"},
    **engine_options(),
}

RULES = {"supports_check_mode": True}

# For the container; and the networks through which containers reach other hosts.
SECONDS = 30
OF_OVERLAYS = "docker_gwbridge"
DEFAULT = "bridge"


def work(params: Json, check_mode: bool) -> Json:
    own = next((agent for agent in params["agents"] if agent["name"] == params["name"]), {"mtu": 1500, "member": False})
    others = [agent for agent in params["agents"] if agent["name"] != params["name"] and agent["address"]]
    addresses = {agent["name"]: agent["address"] for agent in others}
    port_probe.send(params["name"], addresses, params["mark"], own["mtu"], params["vxlan_port"])
    members = {agent["name"]: agent["address"] for agent in others if agent["member"]}
    return {
        "probe": {"sent": True, "connected": port_probe.connect(members), **_contained(params, bool(own["member"]))}
    }


def _contained(params: Json, is_member: bool) -> Json:
    """Send from a container to all agents, the own one included."""
    targets = [agent["address"] for agent in params["agents"] if agent["address"]], params["vxlan_port"]
    network = OF_OVERLAYS if is_member else DEFAULT
    deadline = deadline_in(SECONDS)
    try:
        engine = Engine(params["docker_host"], params["timeout"], params["name"])
        port_probe.send_from_container(
            engine, params["image"], params["name"], targets, params["mark"], network, deadline
        )
    except EngineError as error:
        return {"contained": False, "reason": error.message}
    return {"contained": True}


def main() -> None:
    run(AnsibleModule(argument_spec=ARGUMENT_SPEC, **RULES), work)


if __name__ == "__main__":
    main()
