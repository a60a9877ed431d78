#!/usr/bin/python
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: session_state
short_description: Record the state of a session
description:
  - Changes the state of a session in the store on the head. M(cluster.compute.session) calls it.
options:
  state:
    description:
      - V(running) records that every container of the session is verified, or that a repair is complete. With O(result),
        it records the result of the batch command of a session that keeps running.
      - V(failed) records that a launch failed and that everything it created has been removed. With O(retry), the session
        waits again, three times at most.
      - V(terminating) reserves the session for its termination. A session that is V(PENDING) becomes V(CANCELLED) at once.
      - V(terminated) records that the session has ended.
    type: str
    choices: [running, failed, terminating, terminated]
    required: true
  id:
    description:
      - The session's UUID. With O(state=terminating), O(name) and O(owner) may identify the session instead.
    type: str
  name:
    description:
      - The session's name.
    type: str
  owner:
    description:
      - The session's owner.
      - If not set, the user of O(holder).
    type: str
  reason:
    description:
      - The reason, for the history.
    type: str
    default: ''
  result:
    description:
      - The result of the session, with O(state=running) and O(state=terminated).
    type: str
    choices: ['', SUCCESS, FAILURE]
    default: ''
  agents:
    description:
      - The results of M(cluster.compute.agent_info) on all agents. O(state=terminating) finds a session in them that the store
        has lost, and O(state=terminated) finds where such a session was.
    type: list
    elements: dict
    default: []
  launch:
    description:
      - The launch that O(state=running) and O(state=failed) are about. If another launch has taken the session over, they
        change nothing.
    type: str
    default: ''
  retry:
    description:
      - Whether the launch failed because something outside of the collection had taken the subnet, a port or a name, with
        O(state=failed), or because a connection was lost during the launch of a session that had waited. The session is then placed
        again, three times at most, and keeps its place in the queue.
    type: bool
    default: false
  lease:
    description:
      - Seconds for which this controller reserves the session, with O(state=terminating), at least 1.
    type: int
    default: 600
  reached:
    description:
      - Agents from which everything of the session has been removed, with O(state=terminated). The history names the other
        agents of the session.
    type: list
    elements: str
    default: []
  logs:
    description:
      - Results of M(cluster.compute.logs_info) on the agents, with O(state=terminated) and O(state=failed). They are kept in the
        store's folder. A log that cannot be kept is a warning.
    type: list
    elements: dict
    default: []
  folders:
    description:
      - The sessions to which directories of the controller belong. RV(ended_folders) are those that have ended.
    type: list
    elements: str
    default: []
  holder:
    description:
      - The controller's process.
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
- name: Record that the session runs
  cluster.compute.session_state:
    state: running
    id: "{{ scheduled.session.id }}"
  delegate_to: "{{ groups['agents'] | first }}"

- name: Record the result of its batch command
  cluster.compute.session_state:
    state: running
    id: "{{ scheduled.session.id }}"
    result: "{{ batch.result }}"
    reason: "{{ batch.reason }}"
  delegate_to: "{{ groups['agents'] | first }}"
"""

RETURN = r"""
session:
  description: The session in the store; empty if there is no such session.
  type: dict
  returned: always
  contains:
    id:
      description: The UUID.
      type: str
    name:
      description: The name.
      type: str
    owner:
      description: The owner.
      type: str
    state:
      description: The state, such as V(RUNNING).
      type: str
    result:
      description: V(SUCCESS), V(FAILURE), or empty.
      type: str
    reason:
      description: The reason of the state.
      type: str
    launch:
      description: The UUID of the launch that the session belongs to.
      type: str
plan:
  description: The session's plan, if it was placed.
  type: dict
  returned: success
ended_folders:
  description: Those of O(folders) that have ended.
  type: list
  elements: str
  returned: success
remove:
  description: Sessions of which an engine may still have containers or networks.
  type: list
  elements: str
  returned: always
ended:
  description: Other sessions that have ended by themselves, and whose end this call has recorded.
  type: list
  elements: dict
  returned: always
waiting:
  description: The number of waiting sessions of the same owner.
  type: int
  returned: always
  sample: 0
"""

import time

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._core.documents import Json
from ..module_utils._core.reports import Agent
from ..module_utils._head.recording import Recording
from ..module_utils._head.state_folder import state_dir
from ..module_utils._head.transitions import Change
from ..module_utils._module import at_least, run, store_options

ARGUMENT_SPEC = {
    "state": {"type": "str", "required": True, "choices": ["running", "failed", "terminating", "terminated"]},
    "id": {"type": "str"},
    "name": {"type": "str"},
    "owner": {"type": "str"},
    "reason": {"type": "str", "default": ""},
    "result": {"type": "str", "choices": ["", "SUCCESS", "FAILURE"], "default": ""},
    "agents": {"type": "list", "elements": "dict", "default": []},
    "launch": {"type": "str", "default": ""},
    "retry": {"type": "bool", "default": False},
    "lease": {"type": "int", "default": 600},
    "reached": {"type": "list", "elements": "str", "default": []},
    "logs": {"type": "list", "elements": "dict", "default": []},
    "folders": {"type": "list", "elements": "str", "default": []},
    **store_options(),
    "holder": {"type": "dict", "default": {}},
}

RULES = {
    "required_if": [
        ("state", "running", ["id"]),
        ("state", "failed", ["id"]),
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
        retry=bool(params.get("retry")),
    )
    recording = Recording(params["state"], change, params["folders"], params["logs"])
    return recording.carry_out(state_dir(params["state_dir"]), check_mode)


def main() -> None:
    run(AnsibleModule(argument_spec=ARGUMENT_SPEC, **RULES), work)


if __name__ == "__main__":
    main()
