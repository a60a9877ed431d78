#!/usr/bin/python
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: swarm
short_description: Add an agent's engine to a Swarm, or remove it
description:
  - Creates a Swarm, joins an existing Swarm, or leaves it.
  - An engine that is already in the right Swarm is not touched. An engine in another Swarm is an error.
options:
  state:
    description:
      - V(present) creates a Swarm, or joins the Swarm of O(remote). V(absent) leaves the Swarm.
    type: str
    choices: [present, absent]
    default: present
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
  cluster:
    description:
      - The ID of the required Swarm, with O(state=present). Membership of any other Swarm is an error.
    type: str
    default: ""
  remote:
    description:
      - The address of a manager of the Swarm to join, with O(state=present). Empty creates a Swarm.
    type: str
    default: ""
  token:
    description:
      - The join token, as M(cluster.compute.swarm_info) returns it.
    type: str
  address_pool:
    description:
      - The subnets from which a new Swarm allocates its own networks. Empty uses the engine's default.
    type: list
    elements: str
    default: []
  deadline:
    description:
      - Seconds to wait until the engine is an active member.
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
  - module: cluster.compute.swarm_info
  - module: cluster.compute.swarm_node
"""

EXAMPLES = r"""
- name: Create a Swarm
  cluster.compute.swarm:
    name: "{{ inventory_hostname }}"
    addresses:
      - "{{ ansible_host }}"

- name: Leave the Swarm
  cluster.compute.swarm:
    name: "{{ inventory_hostname }}"
    state: absent
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
from ..module_utils._core.errors import ConflictError
from ..module_utils._core.waiting import deadline_in
from ..module_utils._module import at_least, engine_options, run

ARGUMENT_SPEC = {
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "name": {"type": "str", "default": ""},
    "addresses": {"type": "list", "elements": "str", "default": []},
    "cluster": {"type": "str", "default": ""},
    "remote": {"type": "str", "default": ""},
    "token": {"type": "str", "no_log": True},
    "address_pool": {"type": "list", "elements": "str", "default": []},
    "deadline": {"type": "int", "default": 60},
    **engine_options(),
}

RULES = {"supports_check_mode": True}


def work(params: Json, check_mode: bool) -> Json:
    at_least(params, deadline=1, timeout=1)
    engine = swarm.SwarmEngine(params["docker_host"], params["timeout"], params["name"])
    deadline = deadline_in(params["deadline"])
    if params["state"] == "absent":
        before = swarm.membership(engine)
        after = _absent(engine, before, check_mode)
    else:
        before = swarm.settled_membership(engine, deadline)
        after = _present(params, check_mode, engine, before, deadline)
    shown = {**after, "name": params["name"], "address": after["address"] or own_address(params["addresses"])}
    return {"changed": after is not before, "swarm": shown, "diff": {"before": before, "after": after}}


def _absent(engine: swarm.SwarmEngine, before: Json, check_mode: bool) -> Json:
    if before["state"] == "inactive":
        return before
    if not check_mode:
        engine.leave()
    return dict(swarm.INACTIVE)


def _present(params: Json, check_mode: bool, engine: swarm.SwarmEngine, before: Json, deadline: float) -> Json:
    if before["state"] == "active":
        if params["cluster"] and before["cluster_id"] and before["cluster_id"] != params["cluster"]:
            message = "%s is in the Swarm %s and not in %s; run `docker swarm leave` on that host."
            raise ConflictError(message % (params["name"], before["cluster_id"], params["cluster"]), params["name"])
        return before
    if check_mode:
        return {**before, "state": "active", "cluster_id": params["cluster"]}
    address = own_address(params["addresses"])
    if params["remote"]:
        return swarm.join(engine, params["remote"], params["token"], address, deadline)
    return swarm.create(engine, address, params["address_pool"], deadline)


def main() -> None:
    run(AnsibleModule(argument_spec=ARGUMENT_SPEC, **RULES), work)


if __name__ == "__main__":
    main()
