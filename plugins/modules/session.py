#!/usr/bin/python
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: session
short_description: Check a request, and move a session from state to state
description:
  - With O(state=checked) the request is checked on the controller, before any host is touched, and brought into its normal
    form.
  - The other states change the session in the store on the head, and the session's artifacts on the controller.
options:
  state:
    description:
      - V(checked) checks O(request) and changes nothing.
      - V(running) records that every container of the session is verified, or that a repair is done.
      - V(completed) records the result of the batch command; the session goes on.
      - V(error) records that a launch failed; everything it made has been removed.
      - V(terminating) takes the session over for its end; one that is V(PENDING) becomes V(CANCELLED) at once.
      - V(terminated) records its end.
    type: str
    choices: [checked, running, completed, error, terminating, terminated]
    required: true
  request:
    description:
      - The variables of the role C(session) without their C(session_) prefix, for O(state=checked).
      - Without a C(name) a readable pair of words is made up; without an C(owner) it is the controller's user.
    type: dict
  id:
    description:
      - The session's UUID; O(name) and O(owner) do as well for O(state=terminating).
    type: str
  name:
    description:
      - The session's name.
    type: str
  owner:
    description:
      - The session's owner.
      - The default is the controller's user.
    type: str
  reason:
    description:
      - Why, for the history.
    type: str
    default: ''
  result:
    description:
      - The session's result, for O(state=completed) and O(state=terminated).
    type: str
    choices: ['', SUCCESS, FAILURE]
    default: ''
  agents:
    description:
      - The agents' reports, so that O(state=terminating) finds a session that the store has lost, and O(state=terminated) knows
        where such a session was.
    type: list
    elements: dict
    default: []
  launch:
    description:
      - The launch that O(state=running) and O(state=error) tell of. When another has taken the session over meanwhile, they change
        nothing.
    type: str
    default: ''
  lease:
    description:
      - Seconds for which the end of the session is this controller's, with O(state=terminating), at least 1.
    type: int
    default: 600
  count:
    description:
      - How many such sessions, for O(state=checked); of several, each has its number after the name.
    type: int
    default: 1
  inventory:
    description:
      - The names of the agents there are, for O(state=checked); a designated agent must be one of them.
    type: list
    elements: str
    default: []
  reached:
    description:
      - Agents from which everything of the session has been removed, for O(state=terminated); the history names those that hold
        a part of it and are not among them.
    type: list
    elements: str
    default: []
  logs:
    description:
      - What M(cluster.compute.logs_info) returned on each agent, for O(state=terminated) and O(state=error); kept in the store's
        folder. A
        log that cannot be kept is a warning, and the session has ended all the same.
    type: list
    elements: dict
    default: []
  artifacts:
    description:
      - The folder on the controller that holds a folder for each session.
    type: path
  plan:
    description:
      - The plan that was carried out, for O(state=running); C(session.json) is made from it.
    type: dict
  address:
    description:
      - Where the controller reaches the agent of C(main1), for C(session.json).
    type: str
  timings:
    description:
      - Seconds that each phase took, for C(session.json).
    type: dict
  holder:
    description:
      - Who asks; set by the action half.
    type: dict
    default: {}
extends_documentation_fragment:
  - cluster.compute.attributes
  - cluster.compute.attributes.actiongroup_compute
  - cluster.compute.store
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
    details: The state before and after.
  idempotent:
    support: full
author:
  - The cluster.compute authors (@cluster-compute)
seealso:
  - module: cluster.compute.schedule
"""

EXAMPLES = r"""
- name: Check what is asked for
  cluster.compute.session:
    state: checked
    request:
      name: train
      cluster_size: 4
      memory: 16g
  register: checked  # checked.requests

- name: Say that all of it runs
  cluster.compute.session:
    state: running
    id: "{{ scheduled.session.id }}"
  delegate_to: "{{ groups['head'][0] }}"
"""

RETURN = r"""
requests:
  description: The requests in their normal form.
  type: list
  elements: dict
  returned: with O(state=checked)
paths:
  description: Folders of the agents that the request mounts.
  type: list
  elements: str
  returned: with O(state=checked)
session:
  description: The session's row in the store; empty when there is no such session.
  type: dict
  returned: with the other states
plan:
  description: The session's plan, if it was placed.
  type: dict
  returned: with O(state=terminating)
remove:
  description: Ended sessions of which an engine still holds something.
  type: list
  elements: str
  returned: with O(state=terminating)
document:
  description: What C(session.json) holds.
  type: dict
  returned: with O(state=running) and O(plan)
"""

import os
import time
from typing import List

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.cluster.compute.plugins.module_utils._core.errors import ComputeError
from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json
from ansible_collections.cluster.compute.plugins.module_utils._core.reports import Agent
from ansible_collections.cluster.compute.plugins.module_utils._head.state_folder import keep_logs, state_dir
from ansible_collections.cluster.compute.plugins.module_utils._head.store import Store
from ansible_collections.cluster.compute.plugins.module_utils._head.transitions import CHANGES, Change
from ansible_collections.cluster.compute.plugins.module_utils._head.upkeep import removable
from ansible_collections.cluster.compute.plugins.module_utils._module import at_least, run, store_options

ARGUMENT_SPEC = {
    "state": {
        "type": "str",
        "required": True,
        "choices": ["checked", "running", "completed", "error", "terminating", "terminated"],
    },
    "request": {"type": "dict"},
    "id": {"type": "str"},
    "name": {"type": "str"},
    "owner": {"type": "str"},
    "reason": {"type": "str", "default": ""},
    "result": {"type": "str", "choices": ["", "SUCCESS", "FAILURE"], "default": ""},
    "agents": {"type": "list", "elements": "dict", "default": []},
    "launch": {"type": "str", "default": ""},
    "lease": {"type": "int", "default": 600},
    "count": {"type": "int", "default": 1},
    "inventory": {"type": "list", "elements": "str", "default": []},
    "reached": {"type": "list", "elements": "str", "default": []},
    "logs": {"type": "list", "elements": "dict", "default": []},
    "artifacts": {"type": "path"},
    "plan": {"type": "dict"},
    "address": {"type": "str"},
    "timings": {"type": "dict"},
    **store_options(),
    "holder": {"type": "dict", "default": {}},
}

RULES = {
    "required_if": [
        ("state", "checked", ["request"]),
        ("state", "running", ["id"]),
        ("state", "completed", ["id"]),
        ("state", "error", ["id"]),
        ("state", "terminating", ["id", "name"], True),
        ("state", "terminated", ["id"]),
    ],
    "supports_check_mode": True,
}


def work(params: Json, check_mode: bool) -> Json:
    at_least(params, lease=1)
    change = Change(
        id=params["id"] or "",
        name=params["name"] or "",
        owner=params["owner"] or params["holder"].get("user", ""),
        reason=params["reason"],
        result=params["result"],
        reached=tuple(params["reached"]),
        agents=tuple(Agent.from_json(report) for report in params["agents"]),
        holder=params["holder"],
        now=time.time(),
        lease=float(params["lease"]),
        launch=params["launch"],
    )
    folder = state_dir(params["state_dir"])
    store = Store(folder, read_only=check_mode)
    try:
        with store.transaction(keep=not check_mode):
            before, row = CHANGES[params["state"]](store, change)
            remove = removable(store, change.agents)
    finally:
        store.close()
    warnings = _keep(os.path.join(folder, row.id), params["logs"]) if row and not check_mode else []
    after = row.state if row else ""
    return {
        "warnings": warnings,
        "changed": before != after,
        "session": row.to_json() if row else {},
        "plan": row.plan.to_json() if row and row.plan else None,
        "remove": [one for one in remove if not row or one != row.id],
        "diff": {"before": {"state": before}, "after": {"state": after}},
    }


def _keep(folder: str, logs: List[Json]) -> List[str]:
    """The end is recorded by now: logs that cannot be kept are told, and undo nothing."""
    try:
        if logs:
            keep_logs(folder, logs)
    except ComputeError as error:
        return [error.message]
    return []


def main() -> None:
    run(AnsibleModule(argument_spec=ARGUMENT_SPEC, **RULES), work)


if __name__ == "__main__":
    main()
