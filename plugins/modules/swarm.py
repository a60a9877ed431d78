#!/usr/bin/python
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: swarm
short_description: Bring an agent's engine into a Swarm, or out of it
description:
  - What the role P(cluster.compute.agent#role) needs so that all agents of an inventory are in one Swarm.
  - An engine that is in the right Swarm already is left alone, one in another is never touched.
options:
  state:
    description:
      - V(asked) reads the engine's place in a Swarm, V(tokens) what a manager lets others join with.
      - V(planned) decides on the controller, from what all agents answered, who begins, joins or leaves.
      - V(present) begins a Swarm, or joins the one of O(remote). V(absent) leaves, whatever the Swarm says to it.
      - V(promoted), V(demoted) and V(forgotten) are for a manager, about other nodes.
    type: str
    choices: [asked, tokens, planned, present, absent, promoted, demoted, forgotten]
    default: asked
  name:
    description:
      - The agent's name in the inventory.
    type: str
    default: ""
  manager:
    description:
      - Whether this agent shall be a manager. For O(state=asked), which hands it on to O(state=planned).
    type: bool
    default: false
  addresses:
    description:
      - Where other agents may reach this one. The first that an interface of the host holds is taken, else the address
        that the host's default route begins at.
    type: list
    elements: str
    default: []
  cluster:
    description:
      - The id of the Swarm to be in, for O(state=present); any other that the engine is in is an error.
    type: str
    default: ""
  remote:
    description:
      - The address of a manager to join, for O(state=present). Empty begins a Swarm.
    type: str
    default: ""
  token:
    description:
      - The token to join with, as O(state=tokens) returns it.
    type: str
  address_pool:
    description:
      - The subnets that a new Swarm takes those of its own networks from; empty leaves the engine's choice.
    type: list
    elements: str
    default: []
  nodes:
    description:
      - The node ids that O(state=promoted), O(state=demoted) and O(state=forgotten) are about.
    type: list
    elements: str
    default: []
  agents:
    description:
      - For O(state=planned), what the agents answered to O(state=asked).
    type: list
    elements: dict
    default: []
  leaving:
    description:
      - For O(state=planned), the names of those of O(agents) that are to leave. Where there are any, nobody joins.
    type: list
    elements: str
    default: []
  head:
    description:
      - For O(state=planned), the agent that begins the Swarm where there is none yet, and is always a manager.
    type: str
    default: ""
  deadline:
    description:
      - Seconds to wait until the Swarm has followed.
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
    support: full
  idempotent:
    support: full
author:
  - The cluster.compute authors (@cluster-compute)
seealso:
  - module: cluster.compute.network
"""

EXAMPLES = r"""
- name: Ask for the engine's Swarm
  cluster.compute.swarm:
    name: "{{ inventory_hostname }}"
  register: asked

- name: Begin a Swarm
  cluster.compute.swarm:
    state: present
    addresses:
      - "{{ ansible_host }}"
"""

RETURN = r"""
swarm:
  description: The engine's place in a Swarm.
  returned: for O(state=asked), O(state=present) and O(state=absent)
  type: dict
  sample:
    name: agent1
    state: active
    node_id: 3l2wbq5bf2t9
    cluster_id: xv7k1y5mcxzq
    manager: true
    address: 192.0.2.11
plan:
  description: Who leads, who does what, and who is refused.
  returned: for O(state=planned)
  type: dict
  sample:
    lead: agent1
    cluster: xv7k1y5mcxzq
    steps:
      agent2: join
    refused: {}
tokens:
  description: What others join with, as a worker and as a manager. Keep them out of logs with C(no_log).
  returned: for O(state=tokens)
  type: dict
  sample:
    worker: SWMTKN-1-…
    manager: SWMTKN-1-…
nodes:
  description: The nodes that were changed.
  returned: for O(state=promoted), O(state=demoted) and O(state=forgotten)
  type: list
  elements: str
  sample: []
duration:
  description: Seconds that the call took.
  returned: always
  type: float
  sample: 0.12
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.cluster.compute.plugins.module_utils._agents import swarm
from ansible_collections.cluster.compute.plugins.module_utils._agents.host import own_address
from ansible_collections.cluster.compute.plugins.module_utils._core.errors import ConflictError
from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json
from ansible_collections.cluster.compute.plugins.module_utils._core.waiting import deadline_in
from ansible_collections.cluster.compute.plugins.module_utils._module import at_least, engine_options, run

ARGUMENT_SPEC = {
    "state": {
        "type": "str",
        "choices": [
            "asked",
            "tokens",
            "planned",
            "present",
            "absent",
            "promoted",
            "demoted",
            "forgotten",
        ],
        "default": "asked",
    },
    "name": {"type": "str", "default": ""},
    "manager": {"type": "bool", "default": False},
    "addresses": {"type": "list", "elements": "str", "default": []},
    "cluster": {"type": "str", "default": ""},
    "remote": {"type": "str", "default": ""},
    "token": {"type": "str", "no_log": True},
    "address_pool": {"type": "list", "elements": "str", "default": []},
    "nodes": {"type": "list", "elements": "str", "default": []},
    "agents": {"type": "list", "elements": "dict", "default": []},
    "leaving": {"type": "list", "elements": "str", "default": []},
    "head": {"type": "str", "default": ""},
    "deadline": {"type": "int", "default": 60},
    **engine_options(),
}

RULES = {"supports_check_mode": True}

ROLES = {"promoted": "manager", "demoted": "worker"}


def work(params: Json, check_mode: bool) -> Json:
    at_least(params, deadline=1, timeout=1)
    engine = swarm.SwarmEngine(params["docker_host"], params["timeout"], params["name"])
    state, nodes, deadline = params["state"], params["nodes"], deadline_in(params["deadline"])
    if state == "tokens":
        return {"tokens": engine.tokens()}
    if state in ROLES:
        done = swarm.set_roles(engine, nodes, ROLES[state], deadline, check=check_mode)
        return {"changed": bool(done), "nodes": done}
    if state == "forgotten":
        done = swarm.forget(engine, nodes, deadline, check=check_mode)
        return {"changed": bool(done), "nodes": done}
    before = swarm.asked(engine) if state == "absent" else swarm.settled(engine, deadline)
    after = before
    if state == "present":
        after = _present(params, check_mode, engine, before, deadline)
    elif state == "absent" and before["state"] != "inactive":
        after = {"state": "inactive", "node_id": "", "cluster_id": "", "manager": False, "managers": [], "address": ""}
        if not check_mode:
            engine.leave()
    shown = {**after, "name": params["name"], "wanted": params["manager"]}
    shown["address"] = after["address"] or own_address(params["addresses"])
    return {"changed": after is not before, "swarm": shown, "diff": {"before": before, "after": after}}


def _present(params: Json, check_mode: bool, engine: swarm.SwarmEngine, before: Json, deadline: float) -> Json:
    if before["state"] == "active":
        if params["cluster"] and before["cluster_id"] and before["cluster_id"] != params["cluster"]:
            message = "%s is in the Swarm %s and not in %s; take it out with `docker swarm leave` there."
            raise ConflictError(message % (params["name"], before["cluster_id"], params["cluster"]), params["name"])
        return before
    if check_mode:
        return {**before, "state": "active", "cluster_id": params["cluster"]}
    address = own_address(params["addresses"])
    if params["remote"]:
        return swarm.join(engine, params["remote"], params["token"], address, deadline)
    return swarm.begin(engine, address, params["address_pool"], deadline)


def main() -> None:
    run(AnsibleModule(argument_spec=ARGUMENT_SPEC, **RULES), work)


if __name__ == "__main__":
    main()
