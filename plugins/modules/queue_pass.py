#!/usr/bin/python
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: queue_pass
short_description: Decide about the whole queue of an owner
description:
  - An owner has one pass at a time. Another pass that begins meanwhile gets RV(begun=false), and the first pass makes another
    round before it ends, so that it uses what became free.
  - Each round decides about all waiting sessions in one transaction of the store. It returns those that fit and records why the
    others wait. M(cluster.compute.schedule) then places each session that fits.
options:
  state:
    description:
      - V(begun) begins a pass, V(decided) makes a round, V(ended) ends the pass.
      - A round in which nothing fits ends the pass.
    type: str
    choices: [begun, decided, ended]
    required: true
  owner:
    description:
      - The owner of the queue.
    type: str
    default: ''
  tried:
    description:
      - The IDs of the sessions that this pass has tried to launch.
    type: list
    elements: str
    default: []
  agents:
    description:
      - The results of M(cluster.compute.agent_info) on all agents.
    type: list
    elements: dict
    default: []
  queue_policy:
    description:
      - V(backfill) lets a later session start if it fits and an earlier session does not.
      - V(strict) launches sessions only in their order.
      - The policy of the site has precedence.
    type: str
    choices: [backfill, strict]
    default: backfill
  queue_age_bound:
    description:
      - Seconds after which later sessions no longer pass a waiting session under O(queue_policy=backfill).
    type: int
    default: 3600
  lease:
    description:
      - Seconds after which a pass that does nothing is lost, and another may begin.
    type: int
    default: 600
  holder:
    description:
      - The controller's process.
    type: dict
    default: {}
  takeover:
    description:
      - Whether the controller of the pass in progress no longer runs.
    type: bool
    default: false
extends_documentation_fragment:
  - cluster.compute.attributes
  - cluster.compute.attributes.actiongroup_compute
  - cluster.compute.store
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
  idempotent:
    support: partial
    details: Each call decides again.
author:
  - The cluster.compute authors (@cluster-compute)
seealso:
  - module: cluster.compute.schedule
"""

EXAMPLES = r"""
- name: Decide about the queue
  cluster.compute.queue_pass:
    state: decided
  delegate_to: "{{ groups['head'][0] }}"
  run_once: true
  register: round
"""

RETURN = r"""
begun:
  description: Whether the pass has begun. Always V(true) with O(state=decided) and O(state=ended).
  type: bool
  returned: success
holder:
  description: The controller's process of the pass in progress; empty if there is none.
  type: dict
  returned: success
fitting:
  description: The sessions that fit, in their order, each with its ID, name, state, request and data folders.
  type: list
  elements: dict
  returned: success
tried:
  description: O(tried), and the sessions that fit.
  type: list
  elements: str
  returned: success
is_last:
  description: Whether the pass has ended, because nothing fits.
  type: bool
  returned: success
remove:
  description: Ended sessions of which an engine still has containers, networks or volumes.
  type: list
  elements: str
  returned: success
ended:
  description: Sessions that have ended by themselves or have waited too long, and whose end this call has recorded.
  type: list
  elements: dict
  returned: success
summary:
  description: The other pass that is in progress, or the sessions that wait, as lines.
  type: list
  elements: str
  returned: success
"""

import time

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._agents.swarm_plan import read_agents
from ..module_utils._core.documents import Json
from ..module_utils._core.states import LIVE, PENDING, RUNNING
from ..module_utils._head import queue_pass
from ..module_utils._head.context import Context, queue_rules
from ..module_utils._head.policy_file import read_policy
from ..module_utils._head.row import Row
from ..module_utils._head.state_folder import state_dir
from ..module_utils._head.store import Store
from ..module_utils._head.upkeep import removable
from ..module_utils._module import at_least, run, store_options
from ..module_utils._planning.allocation import checked_folders
from ..module_utils._planning.request import Request
from ..module_utils._text.views import waiting_summary

ARGUMENT_SPEC = {
    "state": {"type": "str", "choices": ["begun", "decided", "ended"], "required": True},
    "owner": {"type": "str", "default": ""},
    "tried": {"type": "list", "elements": "str", "default": []},
    "agents": {"type": "list", "elements": "dict", "default": []},
    "queue_policy": {"type": "str", "choices": ["backfill", "strict"], "default": "backfill"},
    "queue_age_bound": {"type": "int", "default": 3600},
    "lease": {"type": "int", "default": 600},
    "holder": {"type": "dict", "default": {}},
    "takeover": {"type": "bool", "default": False},
    **store_options(),
}

RULES = {"supports_check_mode": True}


def work(params: Json, check_mode: bool) -> Json:
    at_least(params, lease=1)
    folder = state_dir(params["state_dir"])
    store = Store(folder, read_only=check_mode)
    try:
        with store.transaction(keep=not check_mode):
            return {**_NOTHING, "tried": params["tried"], **_STEPS[params["state"]](store, folder, params)}
    finally:
        store.close()


_NOTHING: Json = {
    "changed": False,
    "begun": True,
    "holder": {},
    "fitting": [],
    "is_last": True,
    "remove": [],
    "ended": [],
    "summary": [],
}


def _begun(store: Store, _folder: str, params: Json) -> Json:
    other = queue_pass.begin(
        store, params["owner"], params["holder"], time.time(), params["lease"], takeover=params["takeover"]
    )
    if other is None:
        return {}
    who = f"{other.get('user')}@{other.get('host')}, process {other.get('pid')}"
    line = f"A pass over the queue of {params['owner']} is in progress ({who}): it launches what fits now."
    return {"begun": False, "holder": other, "summary": [line]}


def _decided(store: Store, folder: str, params: Json) -> Json:
    site = read_policy(folder)
    context = Context(
        agents=read_agents(params["agents"]),
        holder=params["holder"],
        now=time.time(),
        policy=queue_rules(site, params["queue_policy"], params["queue_age_bound"]),
        site=site,
        lease=float(params["lease"]),
    )
    live = store.ids({PENDING, RUNNING})
    found = queue_pass.decide(store, params["owner"], params["tried"], context)
    ended = [store.get(session) for session in sorted(live - store.ids(LIVE))]
    return {
        "fitting": [_session(row, row.request) for row in found.fitting if row.request],
        "tried": params["tried"] + [row.id for row in found.fitting],
        "is_last": found.is_last,
        "remove": list(removable(store, context.agents)),
        "ended": [other.to_json() for other in ended if other],
        "summary": [] if found.fitting else waiting_summary(found.waiting),
    }


def _ended(store: Store, _folder: str, params: Json) -> Json:
    queue_pass.end(store, params["owner"], params["holder"])
    return {}


_STEPS = {"begun": _begun, "decided": _decided, "ended": _ended}


def _session(row: Row, request: Request) -> Json:
    """A session for the tasks that launch it."""
    return {
        "id": row.id,
        "name": row.name,
        "state": row.state,
        "request": request.to_json(),
        "paths": checked_folders(request),
    }


def main() -> None:
    run(AnsibleModule(argument_spec=ARGUMENT_SPEC, **RULES), work)


if __name__ == "__main__":
    main()
