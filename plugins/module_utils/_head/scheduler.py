# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Launch or repair a session: decide from the store at one moment, and write what is decided. The caller has the transaction.

The engines' reports come in as documents; nothing here connects to an engine. docs/architecture.md §5 has the rules.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Collection, List, Tuple

from .._shared import states
from .._shared.constants import RESTART_ALL
from .._shared.documents.condition import as_planned
from .._shared.documents.decision import Decision, Holder
from .._shared.documents.plan import Container, Plan
from .._shared.exits import OTHERWISE, UP
from .._shared.planning.plan import relaunched
from .._shared.planning.policy_rules import in_permitted_group
from .._shared.planning.request import Request
from .._shared.planning.resizing import added_since, is_resize
from .._shared.planning.restarts import RESTARTED, restart_turn
from .admission import Decided, decide_waiting
from .adoption import with_rebuilt_plan
from .listing import Observed, list_sessions
from .losses import note_nodes
from .maintenance import catch_up, removable
from .relocation import moves_between, relocated, to_clean
from .request_changes import LIMITS, check_same, is_next_command, with_limits, with_next_command
from .resizing import affected, check_reachable, strangers, with_size
from .session_record import SessionRecord, Update
from .snapshot import Context, Snapshot
from .store import Store


def launch(store: Store, request: Request, context: Context) -> Decision:
    """Launch, repair or report a session: the same request always leads to the same session."""
    note_nodes(store, context.agents)
    catch_up(store, context.agents, context.site, context.now, context.takeover)
    # One that the store has forgotten meanwhile is not made again.
    queued = store.need(context.queued) if context.queued else None
    if queued and queued.state in states.ENDED:
        return Decision("failed", queued.decided, reason=queued.reason)
    _free_name(store, request, context.now)
    decision, update = decide(store.snapshot(context, request), request)
    if update is not None:
        store.apply(update)
    # Another controller works on a session that is held.
    return decision if decision.outcome == "held" else replace(decision, remove=removable(store, context.agents))


def _free_name(store: Store, request: Request, now: float) -> None:
    """End the session of that name whose end no controller completes any more."""
    row = store.find(request.name, request.owner)
    if row is not None and row.state == states.TERMINATING and row.holder is None:
        store.change(row, states.TERMINATED, now, "the rest of it is removed")


def decide(snapshot: Snapshot, request: Request) -> Decided:
    """Decide what becomes of a request. Raises a ComputeError for one that is refused."""
    row = snapshot.find(request)
    known = row.request if row else None
    if known is None or known.groups != request.groups:
        # A policy that changed after the launch must not change the resource groups of the same request.
        request = in_permitted_group(snapshot.context.site, request)
    if row is None or row.state == states.PENDING:
        return decide_waiting(snapshot, row, request)
    return _decide_existing(snapshot, row, request)


def _decide_existing(snapshot: Snapshot, row: SessionRecord, request: Request) -> Decided:
    """Decide about a session that is launched, runs or ends."""
    context = snapshot.context
    if row.state in states.LAUNCHING or row.state == states.TERMINATING:
        return _held(row), None
    known = _known(snapshot, row, request)
    if not row.is_lost(context.now, context.takeover):
        return _held(row), _changed(row, known)
    limited = with_limits(known, request, context.site)
    moved = relocated(snapshot.having(limited.session), limited, request)
    plan, changes_size = moved.plan, request.sizes != known.plan.session.sizes
    seen = {(agent.name, one.id): one for agent in context.agents for one in agent.containers}
    observed = as_planned(plan, seen)
    missing = _missing(plan, observed, ("running",))
    # A controller that was lost may have left containers that run and do not name all members.
    is_lacking = bool(missing or changes_size or row.holder is not None or strangers(row, plan, context.agents))
    check_reachable(row, plan, affected(plan, request) if changes_size else missing, context)
    restarts = _restarts_all(plan, observed) and not changes_size
    update = with_next_command(_restarted(moved, context) if restarts else moved, request, context)
    decision = Decision(
        "running",
        update.session.decided,
        plan=update.plan,
        new_limits=tuple(name for name in LIMITS if getattr(plan.session, name) != getattr(known.plan.session, name)),
        has_next_command=update.plan != plan,
        failed_apps=_failed_apps(update.plan, observed),
        moves=moves_between(known.plan, plan),
        restarts_all=restarts,
        fenced=to_clean(snapshot.fences, snapshot.swarms, context.agents),
    )
    if is_lacking:
        return _repaired(snapshot.having(update.session), update, decision, request, observed)
    return decision, _changed(row, update)


def _repaired(snapshot: Snapshot, update: Update, decision: Decision, request: Request, observed: Observed) -> Decided:
    """Return what is missing or too much, in the sizes of the request, under a lease of this controller."""
    context, former, present = snapshot.context, update.session.former_sizes, update.plan.session.sizes
    if request.sizes != present:
        former = former or present
        update = with_size(snapshot, update, request)
    else:
        holder = replace(context.holder, former_sizes=former)
        plan = relaunched(update.plan, context.taken_names)
        update = update.having(plan=plan, holder=holder, lease=context.now + context.lease)
    plan = update.plan
    missing = list(plan.containers) if decision.restarts_all else _missing(plan, observed, ("running",))
    added = added_since(plan, former)
    decision = replace(
        decision,
        outcome="repair",
        session=update.session.decided,
        plan=plan,
        missing=tuple(one.hostname for one in missing if one.hostname not in added),
        former_size=sum(former),
        added=added,
        removed=strangers(update.session, plan, context.agents, added),
    )
    return decision, update


def _known(snapshot: Snapshot, row: SessionRecord, request: Request) -> Update:
    """A running session with its plan, once the request has proved to be the one that it was made from."""
    if row.request is None or row.plan is None:
        return with_rebuilt_plan(snapshot, row, request)
    if not is_resize(row.request, request) and not is_next_command(row.request, request):
        check_same(row, request)
    return Update(row)


def _missing(plan: Plan, observed: Observed, up: Collection[str]) -> List[Container]:
    """The containers of a plan that are in none of these states."""
    found = {place for place, one in observed.items() if one.state in up}
    return [container for container in plan.containers if (container.agent, container.id) not in found]


def _restarts_all(plan: Plan, observed: Observed) -> bool:
    return plan.session.on_failure == RESTART_ALL and bool(_missing(plan, observed, (*UP, *OTHERWISE)))


def _restarted(update: Update, context: Context) -> Update:
    """Count that all containers restart. The session has no result until its command has ended again."""
    [session] = list_sessions([update.session], context.agents)
    restarts = update.plan.session.restarts
    count = restart_turn(update.session.history, restarts, context.now)[0] + 1
    reason = "%s (%d of %d): %s" % (RESTARTED, count, restarts, session.what_happened)
    return update.having(result="").note(context.now, reason)


def _failed_apps(plan: Plan, observed: Observed) -> Tuple[str, ...]:
    """The apps that PID 1 does not start again. Another start of a container starts all of its apps."""
    own = [observed[one.agent, one.id] for one in plan.containers if (one.agent, one.id) in observed]
    return tuple(app.name for one in own for app in one.apps or () if app.state == "failed")


def _held(row: SessionRecord) -> Decision:
    doing = {states.TERMINATING: "ended", states.RUNNING: "repaired"}.get(row.state, "launched")
    by = row.holder.text if row.holder else Holder().text
    return Decision("held", row.decided, reason=f"session {row.name} is being {doing} by {by}")


def _changed(row: SessionRecord, update: Update) -> Update | None:
    """The update of a session, if it changes anything."""
    return None if update.session is row else update
