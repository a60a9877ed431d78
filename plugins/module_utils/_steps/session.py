# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps that place a session, and that record what becomes of it."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import List, Sequence

from .._head.maintenance import keep_pass
from .._head.policy_file import check_presence
from .._head.scheduler import launch as launched
from .._head.session_view import ended_apps
from .._head.snapshot import Context
from .._head.store import Store
from .._head.transitions import Change, apply_change
from .._head.usage import waits_on_mps
from .._shared.codec import Json, decoded
from .._shared.documents.decision import Decision, Holder
from .._shared.planning.request import Request
from .._shared.planning.swarm_plan import read_agents
from .._shared.states import ERROR, LIVE, PENDING, RUNNING
from .step import Head


def place(
    head: Head,
    request: Request,
    agents: Sequence[Json],
    holder: Holder,
    queue_policy: str = "backfill",
    queue_age_bound: int = 3600,
    lease: int = 600,
    kept: str = "",
    folders: Sequence[str] = (),
    takeover: str = "",
    queued: str = "",
    relocates: bool = False,
    refuse_impossible: bool = False,
    before: Sequence[Request] = (),
    policy: str = "optional",
) -> Json:
    """Place a session, or find out that it waits, runs or must be repaired: C(outcome), and C(plan) if it has a place.

    In check mode, C(before) are the requests of sessions that would be launched first: this transaction places them, too.
    With the C(policy) V(required), a head without a policy of the site places none.
    """
    if policy == "required":
        check_presence(head.directory)
    context = Context.on_head(
        head.directory,
        (queue_policy, queue_age_bound),
        agents=read_agents(agents),
        holder=holder,
        lease=float(lease),
        takeover=takeover,
        kept=kept,
        queued=queued,
        relocates=relocates,
        refuses_impossible=refuse_impossible,
    )
    with Store.opened(head.directory, read_only=head.check) as store:
        for other in before:
            launched(store, other, replace(context, kept=""))
        return _placed(store, request, context, folders)


def _placed(store: Store, request: Request, context: Context, folders: Sequence[str]) -> Json:
    """The decision, with the sessions that have ended meanwhile."""
    live = store.ids({PENDING, RUNNING})
    keep_pass(store, context.holder, context.now + context.lease)
    decision = launched(store, request, context)
    ended = [store.get(session) for session in sorted(live - store.ids(LIVE))]
    is_change = decision.outcome in ("placed", "repair", "failed")
    made = replace(
        decision,
        changed=is_change or decision.is_new or decision.has_next_command,
        # Its own failure is the result.
        ended=tuple(one.decided for one in ended if one and (one.id, one.state) != (decision.session.id, ERROR)),
        ended_folders=tuple(store.ended(folders)),
        ended_apps=tuple(ended_apps(decision.plan, context.agents)) if decision.plan else (),
    )
    return {**made.to_json(), "warnings": _warnings(store, decision, context)}


def _warnings(store: Store, decision: Decision, context: Context) -> List[str]:
    """Return what the user of a new session should know of the sessions beside it."""
    if decision.outcome != "placed" or decision.plan is None:
        return []
    return waits_on_mps(decision.plan, store.held_plans(), context.agents)


def record(head: Head, state: str, change: Json) -> Json:
    """Record that a session has the state C(running), C(failed), C(terminating) or C(terminated). C(change) is a Change."""
    made = replace(decoded(Change, change), now=time.time())
    made = made if made.owner else replace(made, owner=made.holder.user)
    return apply_change(head.directory, state, made, check_mode=head.check)
