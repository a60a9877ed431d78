#!/usr/bin/python
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: schedule
short_description: Place a session on agents, or report why it waits
description:
  - Records a session in the store on the head and places it, in one transaction, so that concurrent launches never allocate
    the same resources twice.
  - Compares a running session with the request, and reports its missing containers for repair.
  - A session that does not fit stays V(PENDING) in the queue; this is a result and not a failure.
  - A new session that the agents could not hold even without other sessions is refused and not recorded. While an agent of its
    resource group does not answer, it is V(PENDING).
  - A session that fits but cannot be launched is refused and not recorded. A session that was queued before keeps waiting
    if all ports or subnets are in use, and becomes V(ERROR) otherwise.
  - If the store was lost, sessions are adopted from the labels in O(agents).
extends_documentation_fragment:
  - cluster.compute.schedule
  - cluster.compute.attributes
  - cluster.compute.attributes.actiongroup_compute
  - cluster.compute.store
author:
  - The cluster.compute authors (@cluster-compute)
"""

EXAMPLES = r"""
- name: Place the session, or queue it
  cluster.compute.schedule:
    request: "{{ checked.requests[0] }}"
    agents: "{{ ansible_play_hosts | map('extract', hostvars, 'report') | map(attribute='agent') }}"
  delegate_to: "{{ groups['agents'] | first }}"
  run_once: true
  register: scheduled
"""

RETURN = r"""
outcome:
  description:
    - V(placed) if there is a new plan, V(repair) if containers of a running session are missing, V(running) if there is
      nothing to do, V(pending) if the session does not fit, V(held) if another controller works on it.
    - V(failed) if the session has waited and cannot be launched, for example because its data folder is missing. It is then
      V(ERROR), so that it does not block the queue, and the task fails.
  type: str
  returned: success
plan:
  description: The plan, if there is one.
  type: dict
  returned: when O(ignore:outcome) is placed, repair or running
new_limits:
  description: Those of V(lifetime) and V(idle_timeout) that the request has with another value than the running session.
  type: list
  elements: str
  returned: success
has_next_command:
  description: Whether the request has another batch command, which replaces that of the running session.
  type: bool
  returned: success
reason:
  description: Why the session waits, or why it failed.
  type: str
  returned: success
expected_start:
  description:
    - When a session that waits will probably start, in seconds since the epoch, from the lifetimes of the sessions that run and
      the timeouts of their commands.
    - V(null) if this cannot be said.
  type: float
  returned: success
failed_apps:
  description: The apps of the running session that PID 1 does not start again.
  type: list
  elements: str
  returned: success
missing:
  description: Hostnames of containers that do not run.
  type: list
  elements: str
  returned: success
ended_folders:
  description: Those of O(folders) that have ended.
  type: list
  elements: str
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
session:
  description: The session's row in the store.
  type: dict
  returned: success
"""

import time

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._agents.swarm_plan import read_agents
from ..module_utils._core.documents import Json
from ..module_utils._core.errors import EngineError
from ..module_utils._core.states import ERROR, LIVE, PENDING, RUNNING
from ..module_utils._head import queue_pass
from ..module_utils._head.context import Context, queue_rules
from ..module_utils._head.policy_file import read_policy
from ..module_utils._head.scheduler import Decision, launch
from ..module_utils._head.state_folder import state_dir
from ..module_utils._head.store import Store
from ..module_utils._module import at_least, run, store_options
from ..module_utils._planning.placement import never_fits
from ..module_utils._planning.request import Request

ARGUMENT_SPEC = {
    "request": {"type": "dict", "required": True},
    "agents": {"type": "list", "elements": "dict", "default": []},
    "queue_policy": {"type": "str", "choices": ["backfill", "strict"], "default": "backfill"},
    "queue_age_bound": {"type": "int", "default": 3600},
    "lease": {"type": "int", "default": 600},
    "kept": {"type": "str", "default": ""},
    "folders": {"type": "list", "elements": "str", "default": []},
    **store_options(),
    "holder": {"type": "dict", "default": {}},
    "takeover": {"type": "str", "default": ""},
}

RULES = {"supports_check_mode": True}


def work(params: Json, check_mode: bool) -> Json:
    at_least(params, lease=1)
    folder = state_dir(params["state_dir"])
    site = read_policy(folder)
    context = Context(
        agents=read_agents(params["agents"]),
        holder=params["holder"],
        now=time.time(),
        policy=queue_rules(site, params["queue_policy"], params["queue_age_bound"]),
        site=site,
        lease=float(params["lease"]),
        takeover=params["takeover"],
        kept=params["kept"],
    )
    store = Store(folder, read_only=check_mode)
    try:
        with store.transaction(keep=not check_mode):
            live = store.ids({PENDING, RUNNING})
            request = Request.from_json(params["request"])
            queue_pass.keep(store, request.owner, params["holder"], context.now + context.lease)
            decision = launch(store, request, context)
            # The transaction is undone: nothing of the session is recorded.
            if decision.is_new and decision.verdict == "pending":
                _check_possible(request, context)
            ended = [store.get(session) for session in sorted(live - store.ids(LIVE))]
            ended_folders = store.ended(params["folders"])
    finally:
        store.close()
    return {
        **({"failed": True, "msg": decision.reason} if decision.verdict == "failed" else {}),
        **_shown(decision),
        "ended": [other.to_json() for other in ended if other and other.state != ERROR],
        "ended_folders": ended_folders,
    }


def _check_possible(request: Request, context: Context) -> None:
    """Refuse a session that no end of other sessions can start. A session that waits already keeps waiting: agents change."""
    never = never_fits(request.demand(), context.agents)
    if never:
        remedy = "ask for less, or add agents"
        text = "Session %s cannot be launched: the agents could not hold it even without other sessions (%s); %s."
        raise EngineError(text % (request.name, never, remedy))


def _shown(decision: Decision) -> Json:
    """The decision as the module returns it."""
    return {
        "changed": decision.changes_session,
        "outcome": decision.verdict,
        "session": decision.session.to_json(),
        "plan": decision.plan.to_short_json() if decision.plan else None,
        "reason": decision.reason,
        "expected_start": decision.expected_start,
        "new_limits": list(decision.new_limits),
        "has_next_command": decision.has_next_command,
        "missing": list(decision.missing),
        "failed_apps": list(decision.failed_apps),
        "remove": list(decision.remove),
    }


def main() -> None:
    run(AnsibleModule(argument_spec=ARGUMENT_SPEC, **RULES), work)


if __name__ == "__main__":
    main()
