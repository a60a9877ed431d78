#!/usr/bin/python
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: swarm_info
short_description: Report the Swarm membership of an agent's engine
description:
  - Returns the state of the membership and, if requested, the join tokens of the Swarm.
  - Waits while an engine that has just started does not know its membership yet.
options:
  name:
    description:
      - The agent's name in the inventory, for messages.
    type: str
    default: ""
  addresses:
    description:
      - Addresses at which other agents may reach this agent. The first address that an interface of the host has is used,
        else the address from which the host's default route starts.
    type: list
    elements: str
    default: []
  join_tokens:
    description:
      - Whether to return the join tokens of the Swarm. The engine must be a manager.
      - Join tokens are secret. Always set C(no_log=true) on a task that requests them.
    type: bool
    default: false
  deadline:
    description:
      - Seconds to wait until the engine knows its membership.
    type: int
    default: 60
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
  - module: cluster.compute.swarm
  - module: cluster.compute.swarm_node
"""

EXAMPLES = r"""
- name: Get the membership of the engine
  cluster.compute.swarm_info:
    name: "{{ inventory_hostname }}"
  register: membership

- name: Get the join tokens from a manager
  cluster.compute.swarm_info:
    name: "{{ inventory_hostname }}"
    join_tokens: true
  register: joining
  no_log: true
"""

RETURN = r"""
swarm:
  description: The membership of the engine.
  returned: success
  type: dict
  contains:
    name:
      description: The agent's name, as given in O(name).
      returned: always
      type: str
    state:
      description: The state of the membership, C(active), C(inactive), C(pending), C(locked) or C(error).
      returned: always
      type: str
    node_id:
      description: The node ID of the engine.
      returned: always
      type: str
      sample: 3l2wbq5bf2t9
    cluster_id:
      description: The ID of the Swarm; empty if this user cannot read the node's certificate.
      returned: always
      type: str
    manager:
      description: Whether the engine is a manager.
      returned: always
      type: bool
    managers:
      description: The node IDs of the managers that the engine knows.
      returned: always
      type: list
      elements: str
    ours:
      description: Whether this collection created the Swarm. Only managers know.
      returned: always
      type: bool
    address:
      description: The address at which the other agents reach this engine.
      returned: always
      type: str
      sample: 192.0.2.11
    data_path_port:
      description: The UDP port of the Swarm's overlay networks; 0 on workers, which do not know it.
      returned: always
      type: int
      sample: 4789
tokens:
  description: The join tokens of the Swarm. They are secret.
  returned: if O(join_tokens=true)
  type: dict
  contains:
    worker:
      description: The token with which an engine joins as a worker.
      returned: always
      type: str
    manager:
      description: The token with which an engine joins as a manager.
      returned: always
      type: str
duration:
  description: Seconds that the call took.
  returned: success
  type: float
  sample: 0.12
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._agents import swarm
from ..module_utils._agents.host import own_address
from ..module_utils._core.documents import Json
from ..module_utils._core.waiting import deadline_in
from ..module_utils._module import at_least, engine_options, run

ARGUMENT_SPEC = {
    "name": {"type": "str", "default": ""},
    "addresses": {"type": "list", "elements": "str", "default": []},
    # A switch: the tokens themselves are in the result.
    "join_tokens": {"type": "bool", "default": False, "no_log": False},
    "deadline": {"type": "int", "default": 60},
    **engine_options(),
}

RULES = {"supports_check_mode": True}


def work(params: Json, check_mode: bool) -> Json:
    at_least(params, deadline=1, timeout=1)
    engine = swarm.SwarmEngine(params["docker_host"], params["timeout"], params["name"])
    place = swarm.settled_membership(engine, deadline_in(params["deadline"]))
    address = place["address"] or own_address(params["addresses"])
    result: Json = {"swarm": {**place, "name": params["name"], "address": address}}
    if params["join_tokens"]:
        result["tokens"] = engine.tokens()
    return result


def main() -> None:
    run(AnsibleModule(argument_spec=ARGUMENT_SPEC, **RULES), work)


if __name__ == "__main__":
    main()
