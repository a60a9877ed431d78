#!/usr/bin/python
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: swarm_node
short_description: Manage the nodes of a Swarm from one of its managers
description:
  - Gives nodes the role of a manager or a worker, or removes nodes that have left from the list of nodes.
  - Runs on a manager of the Swarm.
options:
  state:
    description:
      - V(present) gives the nodes the role O(role). V(absent) removes them from the list of nodes.
      - Nodes that are not in the list are ignored.
    type: str
    choices: [present, absent]
    default: present
  nodes:
    description:
      - The node IDs, as M(cluster.compute.swarm_info) returns them.
    type: list
    elements: str
    required: true
  role:
    description:
      - The role of the nodes. Required with O(state=present).
    type: str
    choices: [manager, worker]
  name:
    description:
      - The agent's name in the inventory, for messages.
    type: str
    default: ""
  deadline:
    description:
      - Seconds to wait until the Swarm has applied the change.
    type: int
    default: 60
extends_documentation_fragment:
  - cluster.compute.engine
  - cluster.compute.attributes
  - cluster.compute.attributes.action
  - cluster.compute.attributes.actiongroup_compute
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
  idempotent:
    support: full
author:
  - The cluster.compute authors (@cluster-compute)
seealso:
  - module: cluster.compute.swarm
  - module: cluster.compute.swarm_info
"""

EXAMPLES = r"""
- name: Get the membership of agent2
  cluster.compute.swarm_info:
    name: agent2
  delegate_to: agent2
  register: membership

- name: Make agent2 a manager
  cluster.compute.swarm_node:
    name: agent1
    nodes:
      - "{{ membership.swarm.node_id }}"
    role: manager
  delegate_to: agent1
"""

RETURN = r"""
nodes:
  description: The node IDs that were changed.
  returned: success
  type: list
  elements: str
  sample: [3l2wbq5bf2t9]
duration:
  description: Seconds that the call took.
  returned: success
  type: float
  sample: 0.12
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._agents import swarm
from ..module_utils._core.documents import Json
from ..module_utils._core.waiting import deadline_in
from ..module_utils._module import at_least, engine_options, run

ARGUMENT_SPEC = {
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "nodes": {"type": "list", "elements": "str", "required": True},
    "role": {"type": "str", "choices": ["manager", "worker"]},
    "name": {"type": "str", "default": ""},
    "deadline": {"type": "int", "default": 60},
    **engine_options(),
}

RULES = {"supports_check_mode": True, "required_if": [("state", "present", ["role"])]}


def work(params: Json, check_mode: bool) -> Json:
    at_least(params, deadline=1, timeout=1)
    engine = swarm.SwarmEngine(params["docker_host"], params["timeout"], params["name"])
    deadline = deadline_in(params["deadline"])
    if params["state"] == "absent":
        changed = swarm.remove_nodes(engine, params["nodes"], deadline, check=check_mode)
    else:
        changed = swarm.set_roles(engine, params["nodes"], params["role"], deadline, check=check_mode)
    return {"changed": bool(changed), "nodes": changed}


def main() -> None:
    run(AnsibleModule(argument_spec=ARGUMENT_SPEC, **RULES), work)


if __name__ == "__main__":
    main()
