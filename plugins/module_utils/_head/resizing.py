# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A session that runs gets other sizes: what is added has a place at once, or the session stays as it is.

The new plan is recorded in the transaction that found the place, with a lease. Until the containers run, the holder in the row also
has the former sizes: a growth that fails goes back to them. A controller that is killed meanwhile leaves a session that lacks
containers or has too many. The next command with either size completes the change or undoes it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Iterator, Sequence, Tuple

from .._shared import label
from .._shared.constants import HOST
from .._shared.documents.plan import Container, Plan
from .._shared.documents.report import AgentReport
from .._shared.errors import ConflictError, StateError
from .._shared.planning.allocation import Allocation, check_folders
from .._shared.planning.placement import Placement, Shortfall, host_places, rdma_places
from .._shared.planning.policy_rules import check_policy, over_quota
from .._shared.planning.request import Request
from .._shared.planning.resizing import check_subnet, growth_demand, resized
from .quotas import by_owner, uses
from .scheduling_queue import Queue
from .session_record import SessionRecord, Update
from .snapshot import Context, Snapshot


def with_size(snapshot: Snapshot, update: Update, request: Request) -> Update:
    """The session with a plan in the sizes of the request, under a lease. Raises a ComputeError if what is added has no place."""
    row, context, plan = update.session, snapshot.context, update.plan
    present = plan.session.sizes
    former = row.former_sizes or present
    room = snapshot.on(_without_orphans(row, plan, context.agents))
    added = _placed(room, row, plan, request) if _grows(present, request) else None
    plan = resized(
        plan,
        request,
        *([added] if added else []),
        taken_names=context.taken_names,
        rdma_ports=rdma_places(context.agents, request.fabric, request.network == HOST),
        hosts=host_places(context.agents),
    )
    holder = replace(context.holder, former_sizes=former if _grows(former, request) else ())
    update = update.having(plan=plan, request=request, holder=holder, lease=context.now + context.lease)
    return replace(update.note(context.now, _described(present, request)), resized=context.now)


def strangers(
    row: SessionRecord, plan: Plan, agents: Sequence[AgentReport], added: Sequence[str] = ()
) -> Tuple[Tuple[str, str], ...]:
    """The hostname and the agent of each container of the session that its plan does not have.

    A change that was interrupted may have left a container with the name of one that is added, in another place or form.
    """
    known = {one.id: (one.agent, one.labels.get(label.SPEC)) for one in plan.containers}
    new = {one.id for one in plan.containers if one.hostname in added}
    found = ((agent.name, one) for agent in agents for one in agent.containers if one.session == row.id)
    return tuple(
        (one.hostname, agent)
        for agent, one in found
        if one.id not in known or (one.id in new and known[one.id] != (agent, one.spec))
    )


def affected(plan: Plan, request: Request) -> Sequence[Container]:
    """The containers that a change to the sizes of the request needs: what a smaller session leaves may be on a lost agent."""
    return plan.containers if _grows(plan.session.sizes, request) else resized(plan, request).containers


_ON_LOST = {
    "keep": "; or make it smaller by what that host has. session_on_lost of this session is keep: nothing else moves or ends it",
    "relocate": ". Its session_on_lost is relocate: a pass over the queue moves its containers after %d s without an answer",
    "end": ". Its session_on_lost is end: a pass over the queue ends it after %d s without an answer",
}


def check_reachable(row: SessionRecord, plan: Plan, containers: Sequence[Container], context: Context) -> None:
    """A container is restored on its own agent only."""
    reachable = {agent.name for agent in context.agents if agent.reachable}
    lost = sorted({container.agent for container in containers} - reachable)
    if not lost:
        return
    advice = _ON_LOST[plan.session.on_lost].replace("%d", str(plan.session.lost_after))
    raise ConflictError(
        f"Session {row.name} is degraded: {', '.join(lost)} cannot be reached; bring it back and run this again, or end the session "
        f"with terminate.yml{advice}.", lost[0])  # fmt: skip


def _without_orphans(row: SessionRecord, plan: Plan, agents: Sequence[AgentReport]) -> Iterator[AgentReport]:
    """The agents without the containers of the session that are removed before others are added."""
    gone = strangers(row, plan, agents)
    for agent in agents:
        own = (one for one in agent.containers if one.session != row.id or (one.hostname, agent.name) not in gone)
        yield replace(agent, containers=tuple(own))


def _grows(former: Sequence[int], request: Request) -> bool:
    return any(size > before for size, before in zip(request.sizes, former))


def _described(former: Sequence[int], request: Request) -> str:
    """Return what changes, as a note in the history of the session."""
    changes = [
        "the size%s was changed from %d to %d" % (f" of role {part.name}" if part.name else "", before, part.size)
        for part, before in zip(request.parts, former)
        if part.size != before
    ]
    return ", ".join(changes)


def _placed(snapshot: Snapshot, row: SessionRecord, plan: Plan, request: Request) -> Placement:
    """The place of the containers that are added, behind all sessions that come before a new one in the queue."""
    site, agents = snapshot.context.site, snapshot.context.agents
    check_policy(site, request)
    check_subnet(request, plan)
    own = replace(row, created=snapshot.context.now)
    demand = growth_demand(request, plan, agents)
    if plan.network.is_of_host:
        # What is added listens at the ports that the session has, so its agents have these free, as at a launch.
        allocation = Allocation(snapshot.held_plans, agents)
        snapshot = snapshot.on(replace(agent, ports=tuple(allocation.ports_taken_on(agent.name))) for agent in agents)
    reason = over_quota(site, by_owner(uses(snapshot.holding, agents), {row.id}), request)
    found = Queue(snapshot, [(own, request)], {row.id: demand}).outcome(row.id)
    if reason or isinstance(found, Shortfall):
        raise StateError(_refusal(plan, request, reason or getattr(found, "reason", ""), is_full=not reason), row.name)
    check_folders(request, replace(found, agents=(*plan.agents, *found.agents)), snapshot.context.agents)
    return found


def _refusal(plan: Plan, request: Request, reason: str, *, is_full: bool) -> str:
    """Why a session does not grow, and what to do."""
    message = "Session %s keeps its %d containers: %s."
    text = message % (request.name, plan.session.size, reason.rstrip("."))
    if is_full and plan.network.driver == "bridge":
        text += (
            " Its network is a bridge, which ends at %s; to use other agents, too, end the session, and launch it with "
            "%s and session_cluster_mode multi-node."
            % (plan.main.agent, "these sizes" if request.roles else f"session_cluster_size {request.size}")
        )
    return text
