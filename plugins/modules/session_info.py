#!/usr/bin/python
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: session_info
short_description: List sessions and the resources that they use
description:
  - Lists sessions from the store on the head, with the state of their containers from the agents' reports.
  - It runs once for all hosts of the play, on the controller. All agents of the inventory must be hosts of the play.
  - A running session is degraded if a container does not run, or its agent cannot be reached.
options:
  name:
    description:
      - Only sessions of this name.
    type: str
  owner:
    description:
      - Only sessions of this owner; V(all) for the sessions of all owners.
      - If not set, the controller's user.
    type: str
  ended:
    description:
      - Whether to list ended sessions, too, with their history.
    type: bool
    default: false
  state:
    description:
      - Only sessions of this kind. V(running) are those that have not ended, those that wait included. V(finished) are those
        that were terminated or have ended by themselves. V(other) are those that failed to launch or were cancelled.
      - If not set, O(ended) decides.
    type: str
    choices: [running, finished, other]
  limit:
    description:
      - The number of ended sessions to list, the newest first to be chosen; V(0) for all.
    type: int
    default: 0
  whole_requests:
    description:
      - Whether to return the requests of waiting sessions of other users with their environment, command and bootstrap script,
        as a pass over their queue needs them.
    type: bool
    default: false
  samples:
    description:
      - Seconds for which to return RV(samples); V(0) for none.
    type: int
    default: 0
  viewer:
    description:
      - The user who asks; set by the action plugin.
    type: str
    default: ''
  logs:
    description:
      - Whether to return the logs of the newest session's containers, if the session has ended.
    type: bool
    default: false
  agents:
    description:
      - The results of M(cluster.compute.agent_info) on all agents, or the reports in them.
      - If not set, the reports of all hosts of the play.
    type: list
    elements: dict
    default: []
extends_documentation_fragment:
  - cluster.compute.attributes.actiongroup_compute
  - cluster.compute.store
  - cluster.compute.attributes.info
  - cluster.compute.attributes.action
author:
  - The cluster.compute authors (@cluster-compute)
seealso:
  - module: cluster.compute.session
"""

EXAMPLES = r"""
- name: Show the sessions of all owners
  hosts: agents
  gather_facts: false
  tasks:
    - name: List them
      cluster.compute.session_info:
        owner: all
      register: listed

    - name: Show their names and states
      ansible.builtin.debug:
        msg: "{{ item.name }} of {{ item.owner }}: {{ item.state }}"
      loop: "{{ listed.sessions }}"
      run_once: true
"""

RETURN = r"""
sessions:
  description: The sessions, oldest first.
  type: list
  elements: dict
  returned: success
  sample:
    - name: train
      state: RUNNING
      kind: cluster
      size: 4
      started: 1795280000.0
      turn:
      time_left: 3600.0
      measured: {millicpus: 1500, memory: 734003200, gpus: []}
      apps: [{name: jupyterlab, address: 192.0.2.7, port: 30001}]
      folders: []
      degraded: []
agents:
  description:
    - The capacity of each agent, and what running sessions and launches use of it, in all and by owner. Waiting sessions use nothing.
    - C(measured) is what their containers really use, if the reports in O(agents) were measured.
  type: list
  elements: dict
  returned: success
groups:
  description:
    - The resource groups, with the capacity of their agents, what is allocated of it, and C(own), the part of the owner; without
      an owner, C(own) is null.
  type: list
  elements: dict
  returned: success
  sample:
    - group: default
      agents: 2
      capacity: {millicpus: 16000, memory: 68719476736, gpus: 0}
      used: {millicpus: 5000, memory: 5368709120, gpus: 0}
      own: {millicpus: 5000, memory: 5368709120, gpus: 0}
owners:
  description:
    - The owners of live sessions, and the owner who is asked for, with what their sessions hold.
    - C(available) is what the owner may still have now. It is what is free in the permitted resource groups, at most what the
      quotas leave.
  type: list
  elements: dict
  returned: success
  sample:
    - owner: alice
      sessions: 2
      waiting: 1
      containers: 5
      used: {millicpus: 5000, memory: 5368709120, gpus: 0}
      allowed: {}
      available: {millicpus: 11000, memory: 63350767616, gpus: 0}
lines:
  description: The list as tables for people, or in the format of the variable C(sessions_format).
  type: list
  elements: str
  returned: success
samples:
  description: Capacity, allocation and measured use over time, oldest first, as each pass over the queue has recorded them.
  type: list
  elements: dict
  returned: success
time:
  description: When the list was made, in seconds since the epoch.
  type: float
  returned: success
"""

import os
import time
from typing import List, Sequence

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._core.documents import Json
from ..module_utils._core.reports import Agent
from ..module_utils._core.states import SHOWN
from ..module_utils._head.details import is_overdue, time_left, without_private
from ..module_utils._head.kept_logs import kept_logs
from ..module_utils._head.listing import list_agents, list_sessions
from ..module_utils._head.policy_file import read_policy
from ..module_utils._head.quotas import use_by_owner
from ..module_utils._head.samples import samples
from ..module_utils._head.shares import available, list_groups
from ..module_utils._head.state_folder import state_dir
from ..module_utils._head.store import FullStoreError, Store
from ..module_utils._head.turns import turns
from ..module_utils._head.upkeep import adopt
from ..module_utils._head.usage import Holdings, holdings, list_owners
from ..module_utils._module import at_least, run, store_options
from ..module_utils._planning.policy import SitePolicy
from ..module_utils._planning.policy_rules import allowed

ARGUMENT_SPEC = {
    "name": {"type": "str"},
    "owner": {"type": "str"},
    "ended": {"type": "bool", "default": False},
    "state": {"type": "str", "choices": ["running", "finished", "other"]},
    "limit": {"type": "int", "default": 0},
    "whole_requests": {"type": "bool", "default": False},
    "samples": {"type": "int", "default": 0},
    "viewer": {"type": "str", "default": ""},
    "logs": {"type": "bool", "default": False},
    "agents": {"type": "list", "elements": "dict", "default": []},
    **store_options(),
}

RULES = {"supports_check_mode": True}


def work(params: Json, check_mode: bool) -> Json:
    at_least(params, limit=0, samples=0)
    folder = state_dir(params["state_dir"])
    try:
        return _listed(Store(folder, read_only=True), folder, params)
    except FullStoreError:
        return _listed(Store.copy(folder), folder, params)


def _listed(store: Store, folder: str, params: Json) -> Json:
    now = time.time()
    agents = tuple(Agent.from_json(report) for report in params["agents"])
    try:
        # Sessions of a lost store are listed from their labels; the store itself is not touched.
        with store.transaction(keep=False):
            adopt(store, agents, now=0.0)
            held, site = holdings(store, agents), read_policy(folder)
            order = turns(store, agents, site.queue, now)
            sessions = _sessions(store, params, agents, order, now)
            if params["logs"] and sessions:
                sessions[-1]["logs"] = kept_logs(folder, sessions[-1]["id"])
            agent_rows = list_agents(held, agents)
            return {
                "changed": False,
                "time": now,
                "sessions": sessions,
                "agents": agent_rows,
                "groups": list_groups(agent_rows, params["owner"]),
                "owners": _owners(store, agents, agent_rows, held, site, params["owner"]),
                "samples": samples(store, now - params["samples"]) if params["samples"] else [],
            }
    finally:
        store.close()


def _sessions(store: Store, params: Json, agents: Sequence[Agent], order: Sequence[str], now: float) -> List[Json]:
    turn = {identity: number for number, identity in enumerate(order, start=1)}
    only = SHOWN[params["state"]] if params["state"] else ()
    rows = store.select(params["name"], params["owner"], params["ended"], only, params["limit"])
    sessions = [
        {
            **session,
            "logs": [],
            "time_left": time_left(session, now),
            "overdue": is_overdue(row, now),
            "turn": turn.get(session["id"]),
            "requested_here": _is_requested_here(store, session["id"]),
        }
        for row, session in zip(rows, list_sessions(rows, agents))
    ]
    if params["whole_requests"]:
        return sessions
    return [without_private(session, params["viewer"]) for session in sessions]


def _is_requested_here(store: Store, session: str) -> bool:
    """Whether the login of this process has requested the session, or that is not known: a pass acts on no others."""
    requester = store.requester(session)
    return requester is None or requester.uid == os.geteuid()


def _owners(
    store: Store, agents: Sequence[Agent], rows: Sequence[Json], held: Holdings, site: SitePolicy, asked: str | None
) -> List[Json]:
    """The owners, each with what a policy allows and what the owner may still have."""
    use = use_by_owner(store, agents)
    return [
        {**one, "allowed": allowed(site, one["owner"]), "available": available(site, use, rows, one["owner"])}
        for one in list_owners(store.live(), held, asked)
    ]


def main() -> None:
    run(AnsibleModule(argument_spec=ARGUMENT_SPEC, **RULES), work)


if __name__ == "__main__":
    main()
