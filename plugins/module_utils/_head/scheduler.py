# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The head's decisions, each in one transaction of the store: launch, repair, wait or refuse a session.

The engines' reports come in as documents; nothing here connects to an engine. docs/architecture.md §5 has the rules.
"""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import Collection, List, Tuple

from .._shared import states
from .._shared.codec import subset
from .._shared.constants import HOST
from .._shared.documents.condition import as_planned
from .._shared.documents.decision import Decision
from .._shared.documents.plan import Container, Plan
from .._shared.documents.report import BatchState
from .._shared.errors import ComputeError, ConflictError, EngineError, InputError, StateError
from .._shared.exits import OTHERWISE, UP
from .._shared.planning.addresses import NO_SUBNET
from .._shared.planning.allocation import Allocation, check_folders
from .._shared.planning.placement import Placement, Shortfall, host_places, rdma_places
from .._shared.planning.plan import PlanInputs, build_plan, mtu_for, relaunched
from .._shared.planning.policy import OWN, SitePolicy
from .._shared.planning.policy_rules import check_policy, check_waiting, in_permitted_group, permitted_folders
from .._shared.planning.request import Request
from .._shared.planning.request_checks import check_resource_group
from .._shared.planning.resizing import added_since, is_resize
from .._shared.planning.role_placement import never_fits
from .adoption import rebuilt_plan
from .dependencies import REPLACED, awaited, check_awaited
from .listing import Observed
from .losses import note_nodes, relocated, to_clean
from .maintenance import is_lost, removable
from .resizing import affected, change_size, check_reachable, strangers
from .scheduling_queue import Context, QueueSnapshot, with_start
from .session_record import SessionRecord, shown_holder, with_former
from .store import Store
from .transitions import catch_up, note_restart
from .usage import capacity_left

# What may change while a session runs.
LIMITS = ("lifetime", "idle_timeout")


def launch(store: Store, request: Request, context: Context) -> Decision:
    """Launch, repair or report a session: the same request always leads to the same session."""
    note_nodes(store, context.agents)
    catch_up(store, context.agents, context.site, context.now, context.takeover)
    # One that the store has forgotten meanwhile is not made again.
    queued = store.need(context.queued) if context.queued else None
    if queued and queued.state in states.ENDED:
        return Decision("failed", queued.decided, reason=queued.reason)
    row = store.find(request.name, request.owner)
    known = row.request if row else None
    if known is None or known.groups != request.groups:
        # A policy that changed after the launch must not change the resource groups of the same request.
        request = in_permitted_group(context.site, request)
    if row is not None and row.state != states.PENDING:
        decision = _existing(store, row, request, context)
        if decision is not None:
            return decision
        row, request = None, in_permitted_group(context.site, request)
    is_new = row is None
    if row is None:
        _check_kept(store, request, context)
        check_policy(context.site, request)
        for part in request.parts:
            check_resource_group(part.group, [group for agent in context.agents for group in agent.groups])
        row = _enqueue(store, request, context)
    else:
        _check_requester(store, row, context)
        _check_same(row, request)
    waits = awaited(row, request, store.awaited_by(row, request), context.agents, context.now)
    check_awaited(row, request, waits, store.waiting() if request.after else ())
    row.request = request
    decision = _take_turn(store, row, request, context, is_new)
    return replace(decision, is_new=is_new, remove=removable(store, context.agents))


def _existing(store: Store, row: SessionRecord, request: Request, context: Context) -> Decision | None:
    """Return what to do about a session of that name that is past PENDING; None when the name is free again."""
    if row.state in states.LAUNCHING or row.state == states.TERMINATING:
        if row.state == states.TERMINATING and row.holder is None:
            store.change(row, states.TERMINATED, context.now, "the rest of it is removed")
            return None
        return Decision("held", row.decided, reason=_held(row))
    launched = _running_plan(store, row, request, context)
    if not is_lost(row, context.now, context.takeover):
        return Decision("held", row.decided, reason=_held(row))
    limited = _with_limits(store, row, launched, request, context.site)
    sizes = launched.session.sizes
    moved, moves = relocated(store, row, limited, request.with_sizes(sizes), context)
    seen = {(agent.name, one.id): one for agent in context.agents for one in agent.containers}
    observed = as_planned(moved, seen)
    up = {place for place, one in observed.items() if one.state == "running"}
    missing, changes_size = _missing(moved, up), request.sizes != sizes
    # A controller that was lost may have left containers that run and do not name all members.
    is_lacking = bool(missing or changes_size or row.holder is not None or strangers(row, moved, context.agents))
    check_reachable(row, moved, affected(moved, request) if changes_size else missing, context)
    dead = _missing(moved, {place for place, one in observed.items() if one.state in (*UP, *OTHERWISE)})
    restarts = bool(dead) and not changes_size and note_restart(store, row, context.agents, context.now)
    plan = with_next_command(store, row, moved, request, context)
    decision = Decision(
        "running",
        row.decided,
        plan=plan,
        new_limits=tuple(name for name in LIMITS if getattr(limited.session, name) != getattr(launched.session, name)),
        has_next_command=plan != moved,
        failed_apps=_failed_apps(plan, observed),
        moves=moves,
        restarts_all=restarts,
        fenced=to_clean(store, context.agents),
        remove=removable(store, context.agents),
    )
    return _repaired(store, row, plan, decision, request, context, up) if is_lacking else decision


def _repaired(
    store: Store,
    row: SessionRecord,
    plan: Plan,
    decision: Decision,
    request: Request,
    context: Context,
    up: Collection[Tuple[str, str]],
) -> Decision:
    """Return what is missing or too much, in the sizes of the request, under a lease of this controller."""
    former = row.former_sizes
    if request.sizes != plan.session.sizes:
        former = former or plan.session.sizes
        plan = change_size(store, row, plan, request, context)
    else:
        row.plan = plan = relaunched(plan, context.taken_names)
        row.holder, row.lease = with_former(context.holder, former), context.now + context.lease
        store.save(row)
    missing = list(plan.containers) if decision.restarts_all else _missing(plan, up)
    added = added_since(plan, former)
    return replace(
        decision,
        outcome="repair",
        session=row.decided,
        plan=plan,
        missing=tuple(one.hostname for one in missing if one.hostname not in added),
        former_size=sum(former),
        added=added,
        removed=strangers(row, plan, context.agents, added),
    )


def _missing(plan: Plan, up: Collection[Tuple[str, str]]) -> List[Container]:
    return [container for container in plan.containers if (container.agent, container.id) not in up]


def _failed_apps(plan: Plan, observed: Observed) -> Tuple[str, ...]:
    """The apps that PID 1 does not start again. Another start of a container starts all of its apps."""
    own = [observed[one.agent, one.id] for one in plan.containers if (one.agent, one.id) in observed]
    return tuple(app["name"] for one in own for app in one.data.get("apps") or () if app["state"] == "failed")


def _running_plan(store: Store, row: SessionRecord, request: Request, context: Context) -> Plan:
    """The plan of a running session, once the request has proved to be the one that it was made from."""
    if row.request is not None and row.plan is not None:
        if not is_resize(row.request, request) and not is_next_command(row.request, request):
            _check_same(row, request)
        return row.plan
    plans = store.held_plans()
    free = capacity_left([one for one in context.agents if one.reachable], store.ends_on(context.agents), plans)
    row.plan = rebuilt_plan(row, request, context.agents, free, plans)
    row.request = request.with_sizes(row.plan.session.sizes)
    store.save(row)
    return row.plan


def _with_limits(store: Store, row: SessionRecord, plan: Plan, request: Request, site: SitePolicy) -> Plan:
    """The plan with the limits of the request, which may differ from those that the session was launched with."""
    limits = subset(request, *LIMITS)
    limited = replace(plan, session=replace(plan.session, **limits))
    if limited != plan and row.request is not None:
        check_policy(site, request)
        row.plan, row.request = limited, replace(row.request, **limits)
        store.save(row)
    return limited


def _check_same(row: SessionRecord, request: Request) -> None:
    """A session is launched by the request that it was recorded with, and by no other."""
    names = row.request.differences(request) if row.request else []
    if row.state == states.RUNNING and request.roles:
        names = [name + ", of which only the size can change" if name == "roles" else name for name in names]
    if names:
        rule = "is used by a %s session with other settings (%s): end that session with terminate.yml, or choose another name"
        raise InputError("session_name", row.name, rule % (row.state, ", ".join(names)))


def _check_requester(store: Store, row: SessionRecord, context: Context) -> None:
    """A waiting session gets the keys, secrets and quota of its owner only from the login that has requested it."""
    known = store.requester(row.id)
    if known is not None and known.uid != context.requester.uid:
        raise StateError(
            f"Session {row.name} of owner {row.owner} was requested by the login {known.login} on the head, and only that login "
            "launches it: end it with terminate.yml, or choose another name.", row.name)  # fmt: skip


def _check_kept(store: Store, request: Request, context: Context) -> None:
    """Refuse a controller whose files under this name belong to a session that has not ended on this head."""
    if not context.kept or store.ended([context.kept]):
        return
    other = store.get(context.kept)
    whose = f"a session of {other.owner}" if other else f"session {context.kept}, which this head does not know"
    rule = "the controller's directory of that name belongs to %s; choose another name, or set session_artifacts to another directory"
    raise InputError("session_name", request.name, rule % whose)


def _enqueue(store: Store, request: Request, context: Context) -> SessionRecord:
    row = SessionRecord(
        id=str(uuid.uuid4()),
        name=request.name,
        owner=request.owner,
        resource_group=request.group,
        state=states.PENDING,
        priority=request.priority,
        request=request,
    )
    store.add(row, context.now, "requested")
    store.note_requester(row, context.requester)
    return row


def _take_turn(store: Store, row: SessionRecord, request: Request, context: Context, is_new: bool) -> Decision:
    """Place the session if it is its turn. A session that cannot be launched is recorded only if it was queued."""
    if is_new and (context.refuses_impossible or context.site.queue.refuse_impossible):
        _check_possible(request, context)
    turns = QueueSnapshot(store, context, [(row, request)])
    placement = turns.outcome(row.id)
    if isinstance(placement, Shortfall):
        if placement.is_final and not placement.is_impossible and is_new:
            raise EngineError(f"Session {row.name} cannot be launched: {placement.reason}.")
        if is_new:
            waiting = [one for one in store.live({states.PENDING}) if one.owner == row.owner and one.id != row.id]
            check_waiting(context.site, request, len(waiting))
        return _wait(store, row, with_start(placement.reason, turns.starts({row.id}).get(row.id)))
    try:
        _check_kept(store, request, context)
        check_policy(context.site, request)
        check_folders(request, placement, context.agents)
        plan = _planned(row, request, placement, turns.allocation, context)
    except ComputeError as error:
        if is_new:
            raise
        return _give_up(store, row, error, context.now)
    row.plan, row.holder, row.lease = plan, context.holder, context.now + context.lease
    store.change(row, states.SCHEDULED, context.now, f"placed on {', '.join(plan.agents)}")
    store.change(row, states.PREPARING, context.now, "its containers are being created")
    return Decision("placed", row.decided, plan=plan)


def _check_possible(request: Request, context: Context) -> None:
    """Refuse a session that no end of other sessions can start. A session that waits already keeps waiting: agents change."""
    never = never_fits(request.demand(), context.agents)
    if never:
        text = "Session %s cannot be launched: the agents could not hold it even without other sessions (%s); %s."
        raise EngineError(text % (request.name, never, "ask for less, or add agents"))


def _wait(store: Store, row: SessionRecord, reason: str) -> Decision:
    row.reason = reason
    store.save(row)
    return Decision("pending", row.decided, reason=reason)


def _give_up(store: Store, row: SessionRecord, error: ComputeError, now: float) -> Decision:
    """A queued session that has room and cannot be launched.

    It keeps waiting for what other sessions hold (ports, subnets), and fails for what it lacks itself (a folder).
    """
    if isinstance(error, ConflictError):
        return _wait(store, row, error.message.rstrip("."))
    store.change(row, states.ERROR, now, error.message)
    return Decision("failed", row.decided, reason=error.message)


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


def _held(row: SessionRecord) -> str:
    doing = {states.TERMINATING: "ended", states.RUNNING: "repaired"}.get(row.state, "launched")
    return f"session {row.name} is being {doing} by {shown_holder(row.holder)}"


# The fields of a request that describe its command.
_FIELDS = ("command", "command_timeout")


def is_next_command(former: Request, request: Request) -> bool:
    """Return whether a request differs from the session's only in its batch command, which then replaces the former one."""
    names = former.differences(request)
    return bool(names and former.command and request.command) and set(names) <= set(_FIELDS)


def with_next_command(store: Store, row: SessionRecord, plan: Plan, request: Request, context: Context) -> Plan:
    """The plan with the command of the request. A StateError while the former command runs.

    The result of the former command goes into the history, and the session has none until the next command has ended.
    """
    wanted = subset(request, *_FIELDS)
    if row.request is None or not is_next_command(row.request, request):
        return plan
    former = row.running_command(context.agents)
    if former is not None and former.begun and not former.has_ended:
        raise StateError(
            f"session_command: the former command of session {row.name} still runs on {plan.main.agent}; wait for its end, "
            "or end the session with terminate.yml.", row.name)  # fmt: skip
    check_policy(context.site, request)
    _note_former(store, row, former, context.now)
    row.request = replace(row.request, **wanted)
    row.plan = replace(plan, session=replace(plan.session, **wanted))
    row.result = ""
    store.note(row, context.now, REPLACED)
    return row.plan


def _note_former(store: Store, row: SessionRecord, former: BatchState | None, now: float) -> None:
    """Record the end of a command that no playbook has waited for."""
    if former is not None and former.has_ended and former.end != row.reason:
        store.note(row, now, former.end)
