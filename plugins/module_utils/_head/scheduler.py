# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The head's decisions, each in one transaction of the store: launch, repair, wait, adopt, clear away, end.

The engines' reports come in as documents; nothing here talks to an engine. docs/architecture.md §5 has the rules.
"""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import uuid
from dataclasses import dataclass, field, replace
from typing import Dict, Iterable, Mapping, Sequence, Tuple

from ansible_collections.cluster.compute.plugins.module_utils._core import states as _states
from ansible_collections.cluster.compute.plugins.module_utils._core.errors import (
    ComputeError,
    ConflictError,
    InputError,
)
from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json, Plan
from ansible_collections.cluster.compute.plugins.module_utils._core.reports import Agent
from ansible_collections.cluster.compute.plugins.module_utils._head.adoption import adopted_rows, rebuilt_plan
from ansible_collections.cluster.compute.plugins.module_utils._head.bookings import booked_on, held_plans
from ansible_collections.cluster.compute.plugins.module_utils._head.store import Row, Store
from ansible_collections.cluster.compute.plugins.module_utils._planning.allocation import (
    can_allocate,
    check_folders,
    free_ports,
    free_subnet,
)
from ansible_collections.cluster.compute.plugins.module_utils._planning.capacity import FreeCapacity, free_of
from ansible_collections.cluster.compute.plugins.module_utils._planning.placement import Placement, Shortfall
from ansible_collections.cluster.compute.plugins.module_utils._planning.plan import PlanInputs, build_plan, mtu_for
from ansible_collections.cluster.compute.plugins.module_utils._planning.queue import Policy, QueueEntry, take_turn
from ansible_collections.cluster.compute.plugins.module_utils._planning.request import Request


@dataclass(frozen=True)
class Context:
    """What a decision stands on: the agents' reports, who asks, and when.

    ``kept`` is the ID of the session that the controller's folder of this name belongs to, if there is such a folder.
    """

    agents: Tuple[Agent, ...]
    holder: Json
    now: float
    policy: Policy = field(default_factory=Policy)
    lease: float = 600.0
    takeover: str = ""
    kept: str = ""
    check: bool = False


@dataclass(frozen=True)
class Decision:
    """``outcome`` is placed, pending, failed, running (all well), repair or held; ``remove`` are sessions to clear away."""

    outcome: str
    session: Row
    plan: Plan | None = None
    reason: str = ""
    missing: Tuple[str, ...] = ()
    remove: Tuple[str, ...] = ()
    is_new: bool = False


def show_session(row: Row) -> Json:
    """A session's row as results show it; the request and the plan are documents of their own."""
    return {
        "id": row.id,
        "name": row.name,
        "owner": row.owner,
        "group": row.resource_group,
        "state": row.state,
        "result": row.result,
        "reason": row.reason,
        "priority": row.priority,
        "launch": launch_of(row),
        "holder": row.holder,
        "created": row.created,
        "changed": row.changed,
    }


def launch(store: Store, request: Request, context: Context) -> Decision:
    """Launch, repair or report a session: the same request always leads to the same session."""
    adopt(store, context)
    expire(store, context)
    row = store.find(request.name, request.owner)
    if row is not None and row.state != _states.PENDING:
        found = _existing(store, row, request, context)
        if found is not None:
            return found
        row = None
    is_new = row is None
    if row is None:
        _check_kept(store, request, context)
        row = _enqueue(store, request, context)
    elif Request.from_json(row.request).differences(request):
        raise _other_settings(row, Request.from_json(row.request), request)
    row.request = request.to_json()
    return _take_turn(store, row, request, context, is_new)


def adopt(store: Store, context: Context) -> None:
    """Sessions that the engines hold and the store does not know: the store was lost, their labels were not."""
    known = store.states()
    _forget(store, context)
    for row in adopted_rows(context.agents, set(known)):
        if store.find(row.name, row.owner) is None:
            store.add(row, context.now, "adopted from its labels")


def _forget(store: Store, context: Context) -> None:
    """Sessions known from nothing but their labels are known as long as those are seen: their own store has the rest.

    Their end is none of this store's: what it calls ended is removed wherever it is met.
    """
    there = {live.session for agent in context.agents for live in agent.containers}
    if context.agents and all(agent.reachable for agent in context.agents):
        for row in store.adopted():
            if row.id not in there:
                store.forget(row)


def expire(store: Store, context: Context) -> None:
    """Launches whose controller was lost: their lease has run out, or their controller is known to be gone."""
    for row in store.live(_states.LAUNCHING | {_states.TERMINATING}):
        if not _is_lost(row, context):
            continue
        if row.state in _states.LAUNCHING:
            store.change(row, _states.ERROR, context.now, "its controller was lost while it was %s" % row.state)
        else:
            row.holder, row.lease = None, 0.0
            store.save(row)


def removable(store: Store, agents: Iterable[Agent]) -> Tuple[str, ...]:
    """Ended sessions of which an engine still holds something."""
    states = store.states()
    seen = {one for agent in agents for one in (*agent.network_sessions, *(live.session for live in agent.containers))}
    return tuple(sorted(one for one in seen if states.get(one) in _states.ENDED))


def _existing(store: Store, row: Row, request: Request, context: Context) -> Decision | None:
    """What to do about a session of that name that is past PENDING; None when the name is free again."""
    if row.state in _states.LAUNCHING or row.state == _states.TERMINATING:
        if row.state == _states.TERMINATING and not row.holder:
            store.change(row, _states.TERMINATED, context.now, "what was left of it is cleared away")
            return None
        return Decision("held", row, reason=_held(row))
    plan = _plan_of(store, row, request, context)
    up = {(agent.name, live.id) for agent in context.agents for live in agent.containers if live.state == "running"}
    missing = tuple(one.hostname for one in plan.containers if (one.agent, one.id) not in up)
    if not missing:
        return Decision("running", row, plan, remove=removable(store, context.agents))
    if row.holder and not _is_lost(row, context):
        return Decision("held", row, reason=_held(row))
    needed = {one.agent for one in plan.containers if one.hostname in missing}
    lost = sorted(needed - {agent.name for agent in context.agents if agent.reachable})
    if lost:
        raise ConflictError(
            "Session %s is degraded: %s cannot be reached; bring it back and run this again, or end the session with "
            "terminate.yml." % (row.name, ", ".join(lost)), lost[0])  # fmt: skip
    plan = _relaunched(plan)
    row.plan, row.holder, row.lease = plan.to_json(), context.holder, context.now + context.lease
    store.save(row)
    return Decision("repair", row, plan, missing=missing, remove=removable(store, context.agents))


def _plan_of(store: Store, row: Row, request: Request, context: Context) -> Plan:
    """A running session's plan, after making sure that the request is the one it was made from."""
    if row.request is None:
        plans = held_plans(store)
        plan = rebuilt_plan(row, request, context.agents, booked_on(context.agents, store.states(), plans), plans)
        row.request, row.plan = request.to_json(), plan.to_json()
        store.save(row)
        return plan
    stored = Request.from_json(row.request)
    if stored.differences(request):
        raise _other_settings(row, stored, request)
    return Plan.from_json(row.plan)


def _other_settings(row: Row, stored: Request, request: Request) -> InputError:
    names = ", ".join(stored.differences(request))
    rule = (
        "the name is in use by a %s session with other settings (%s): end it with terminate.yml, or take another name"
    )
    return InputError("session_name", row.name, rule % (row.state, names))


def _check_kept(store: Store, request: Request, context: Context) -> None:
    """Before a session is placed: what the controller keeps under its name may only be of one that has ended here."""
    other = store.get(context.kept) if context.kept else None
    if not context.kept or (other and other.state in _states.ENDED):
        return
    whose = "a session of %s" % other.owner if other else "session %s, which this head does not know" % context.kept
    rule = "the controller's folder of that name is that of %s: choose another name, or another folder as session_artifacts"
    raise InputError("session_name", request.name, rule % whose)


def _enqueue(store: Store, request: Request, context: Context) -> Row:
    row = Row(
        id=str(uuid.uuid4()),
        name=request.name,
        owner=request.owner,
        resource_group=request.group,
        state=_states.PENDING,
        priority=request.priority,
        request=request.to_json(),
    )
    store.add(row, context.now, "requested")
    return row


def _take_turn(store: Store, row: Row, request: Request, context: Context, is_new: bool) -> Decision:
    """Its placement, if its turn has come; of one that cannot be launched nothing is recorded unless it was queued."""
    remove = removable(store, context.agents)
    plans = held_plans(store)
    booked = booked_on(context.agents, store.states(), plans)
    free: Dict[str, FreeCapacity] = {agent.name: free_of(agent, booked[agent.name]) for agent in context.agents}
    queued = store.live({_states.PENDING})
    queue = [_waiting(one) for one in queued]
    requests = {one.id: Request.from_json(one.request) for one in queued}

    def can_start(one: QueueEntry, there: Placement) -> bool:
        return can_allocate(requests[one.id], there, plans, context.agents)

    placed = take_turn(_waiting(row), queue, context.agents, free, context.policy, context.now, can_start)
    if isinstance(placed, Shortfall):
        return replace(_wait(store, row, placed.reason, remove), is_new=is_new)
    try:
        _check_kept(store, request, context)
        check_folders(request, placed, context.agents)
        plan = _planned(row, request, placed, plans, context)
    except ComputeError as error:
        if is_new:
            raise
        return _give_up(store, row, error, context.now, remove)
    row.plan, row.holder, row.lease = plan.to_json(), context.holder, context.now + context.lease
    store.change(row, _states.SCHEDULED, context.now, "placed on %s" % ", ".join(plan.agents))
    store.change(row, _states.PREPARING, context.now, "launch %s" % plan.session.launch)
    return Decision("placed", row, plan, remove=remove, is_new=is_new)


def _wait(store: Store, row: Row, reason: str, remove: Tuple[str, ...]) -> Decision:
    row.reason = reason
    store.save(row)
    return Decision("pending", row, reason=reason, remove=remove)


def _give_up(store: Store, row: Row, error: ComputeError, now: float, remove: Tuple[str, ...]) -> Decision:
    """A queued session that has room but nothing to stand on: what others hold comes back, what it asks for does not."""
    if isinstance(error, ConflictError):
        return _wait(store, row, error.message.rstrip("."), remove)
    store.change(row, _states.ERROR, now, error.message)
    return Decision("failed", row, reason=error.message, remove=remove)


def _waiting(row: Row) -> QueueEntry:
    return QueueEntry(row.id, row.name, row.priority, row.created, Request.from_json(row.request).demand())


def _planned(row: Row, request: Request, placed: Placement, plans: Sequence[Plan], context: Context) -> Plan:
    ground = PlanInputs(
        session_id=row.id,
        launch=str(uuid.uuid4()),
        placed=placed,
        subnet=free_subnet(request, plans, context.agents),
        ports=free_ports(request, placed.agents[0], plans, context.agents),
        mtu=mtu_for(placed.mode, context.agents, placed.agents),
    )
    return build_plan(request, ground)


def _relaunched(plan: Plan) -> Plan:
    """The same plan under a new launch id: what a repair makes is told apart from what was there."""
    old, new = plan.session.launch, str(uuid.uuid4())
    document: Json = plan.to_json()
    document["session"]["launch"] = new
    for labelled in [document["network"], *document["containers"]]:
        labelled["labels"] = {name: new if text == old else text for name, text in labelled["labels"].items()}
    return Plan.from_json(document)


def _is_lost(row: Row, context: Context) -> bool:
    return row.lease < context.now or (bool(context.takeover) and context.takeover == launch_of(row))


def launch_of(row: Row) -> str:
    """What a lost controller is named by: its launch; of a session known from its labels alone, the session."""
    plan = row.plan or {}
    return str((plan.get("session") or {}).get("launch") or row.id)


def _held(row: Row) -> str:
    holder: Mapping[str, object] = row.holder or {}
    doing = {_states.TERMINATING: "ended", _states.RUNNING: "repaired"}.get(row.state, "launched")
    who = "%s@%s (process %s)" % (holder.get("user"), holder.get("host"), holder.get("pid"))
    return "session %s is being %s by %s" % (row.name, doing, who)
