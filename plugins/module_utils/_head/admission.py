# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Decide about a session that is new or waits: place it, let it wait, or give it up."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import Optional, Tuple

from .._shared import states
from .._shared.constants import HOST
from .._shared.documents.decision import Decision
from .._shared.documents.plan import Plan
from .._shared.errors import ComputeError, ConflictError, EngineError, InputError, StateError
from .._shared.planning.addresses import NO_SUBNET
from .._shared.planning.allocation import Allocation, check_folders
from .._shared.planning.placement import Placement, Shortfall, host_places, rdma_places
from .._shared.planning.plan import PlanInputs, build_plan, mtu_for
from .._shared.planning.policy import OWN
from .._shared.planning.policy_rules import check_policy, check_waiting, permitted_folders
from .._shared.planning.request import Request
from .._shared.planning.request_checks import check_resource_group
from .._shared.planning.role_placement import never_fits
from .dependencies import awaited, check_awaited
from .request_changes import check_same
from .scheduling_queue import Queue, with_start
from .session_record import SessionRecord, Update
from .snapshot import Context, Snapshot

# A decision, and what is to be written, if anything is.
Decided = Tuple[Decision, Optional[Update]]


def decide_waiting(snapshot: Snapshot, row: SessionRecord | None, request: Request) -> Decided:
    """Decide about a session that is new, or that waits."""
    context = snapshot.context
    if row is not None:
        _check_requester(snapshot, row)
        check_same(row, request)
        update = Update(row)
    else:
        _check_kept(snapshot, request)
        check_policy(context.site, request)
        for part in request.parts:
            check_resource_group(part.group, [group for agent in context.agents for group in agent.groups])
        update = _new(request, context)
        snapshot = snapshot.having(update.session)
    others = snapshot.awaited_by(update.session, request)
    waits = awaited(update.session, request, others, context.agents, context.now)
    check_awaited(update.session, request, waits, snapshot.waiting if request.after else ())
    return _take_turn(snapshot, update.having(request=request), request)


def _check_requester(snapshot: Snapshot, row: SessionRecord) -> None:
    """A waiting session gets the keys, secrets and quota of its owner only from the login that has requested it."""
    known = snapshot.requesters.get(row.id)
    if known is not None and known.uid != snapshot.context.requester.uid:
        raise StateError(
            f"Session {row.name} of owner {row.owner} was requested by the login {known.login} on the head, and only that login "
            "launches it: end it with terminate.yml, or choose another name.", row.name)  # fmt: skip


def _check_kept(snapshot: Snapshot, request: Request) -> None:
    """Refuse a controller whose files under this name belong to a session that has not ended on this head."""
    kept = snapshot.kept
    if not kept.id or kept.has_ended:
        return
    whose = f"a session of {kept.owner}" if kept.owner else f"session {kept.id}, which this head does not know"
    rule = "the controller's directory of that name belongs to %s; choose another name, or set session_artifacts to another directory"
    raise InputError("session_name", request.name, rule % whose)


def _new(request: Request, context: Context) -> Update:
    row = SessionRecord(
        id=str(uuid.uuid4()),
        name=request.name,
        owner=request.owner,
        resource_group=request.group,
        state=states.PENDING,
        priority=request.priority,
        request=request,
    )
    return replace(Update(row).add(context.now, "requested"), requester=context.requester)


def _take_turn(snapshot: Snapshot, update: Update, request: Request) -> Decided:
    """Place the session if it is its turn. A session that cannot be launched is recorded only if it was queued."""
    context, row = snapshot.context, update.session
    if update.is_new and (context.refuses_impossible or context.site.queue.refuse_impossible):
        _check_possible(request, context)
    queue = Queue(snapshot, [(row, request)])
    placement = queue.outcome(row.id)
    if isinstance(placement, Shortfall):
        if update.is_new:
            _check_may_wait(snapshot, row, request, placement)
        return _waiting(update, with_start(placement.reason, queue.starts({row.id}).get(row.id)))
    try:
        _check_kept(snapshot, request)
        check_policy(context.site, request)
        check_folders(request, placement, context.agents)
        plan = _planned(row, request, placement, queue.allocation, context)
    except ComputeError as error:
        if update.is_new:
            raise
        return _given_up(update, error, context.now)
    placed = (
        update.having(plan=plan, holder=context.holder, lease=context.now + context.lease)
        .change(states.SCHEDULED, context.now, f"placed on {', '.join(plan.agents)}")
        .change(states.PREPARING, context.now, "its containers are being created")
    )
    return Decision("placed", placed.session.decided, plan=plan, is_new=update.is_new), placed


def _check_may_wait(snapshot: Snapshot, row: SessionRecord, request: Request, why: Shortfall) -> None:
    if why.is_final and not why.is_impossible:
        raise EngineError(f"Session {row.name} cannot be launched: {why.reason}.")
    waiting = [one for one in snapshot.pending if one.owner == row.owner and one.id != row.id]
    check_waiting(snapshot.context.site, request, len(waiting))


def _check_possible(request: Request, context: Context) -> None:
    """Refuse a session that no end of other sessions can start. A session that waits already keeps waiting: agents change."""
    never = never_fits(request.demand(), context.agents)
    if never:
        text = "Session %s cannot be launched: the agents could not hold it even without other sessions (%s); %s."
        raise EngineError(text % (request.name, never, "ask for less, or add agents"))


def _waiting(update: Update, reason: str) -> Decided:
    update = update.having(reason=reason)
    return Decision("pending", update.session.decided, reason=reason, is_new=update.is_new), update


def _given_up(update: Update, error: ComputeError, now: float) -> Decided:
    """A queued session that has room and cannot be launched.

    It keeps waiting for what other sessions hold (ports, subnets), and fails for what it lacks itself (a folder).
    """
    if isinstance(error, ConflictError):
        return _waiting(update, error.message.rstrip("."))
    update = update.change(states.ERROR, now, error.message)
    return Decision("failed", update.session.decided, reason=error.message), update


def _planned(
    row: SessionRecord, request: Request, placement: Placement, allocation: Allocation, context: Context
) -> Plan:
    ports = allocation.ports(request, placement.agents)
    inputs = PlanInputs(
        session_id=row.id,
        launch=str(uuid.uuid4()),
        placement=placement,
        subnet=NO_SUBNET if request.network == HOST else allocation.subnet(request),
        ports=ports,
        master_port=allocation.master_port(request, placement.agents, ports),
        hosts=host_places(context.agents),
        mtu=mtu_for(placement.mode, context.agents, placement.agents),
        fabric=allocation.fabric(request),
        began=context.now,
        own_volumes=OWN in context.site.limits_for(request.owner, "volumes"),
        taken_names=context.taken_names,
        rdma_ports=rdma_places(context.agents, request.fabric, request.network == HOST),
        permitted_folders=permitted_folders(context.site, request),
    )
    return build_plan(request, inputs)
