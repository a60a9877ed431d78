# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A session that has lost agents moves: each of its containers there gets another agent.

It is fenced off these agents: nothing of it is placed there before a pass has removed what they still have of it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Dict, Iterable, Mapping, Sequence, Tuple

from .._shared.constants import RELOCATE
from .._shared.documents.decision import FencedAgent
from .._shared.documents.plan import Plan
from .._shared.documents.report import AgentReport
from .._shared.documents.schema import UUID
from .._shared.errors import ConflictError
from .._shared.exits import UNMOVED
from .._shared.planning.allocation import Allocation
from .._shared.planning.node_loss import Places, describe_loss, expired_agents, moved_plan, new_places
from .._shared.planning.placement import Shortfall
from .._shared.planning.request import Request
from .session_record import Fence, SessionRecord, Update, fenced_agents
from .snapshot import Snapshot
from .usage import capacity_left

# Hostname, former and new agent of each container that moves.
Moves = Tuple[Tuple[str, str, str], ...]


def relocated(snapshot: Snapshot, update: Update, request: Request) -> Update:
    """The session with new places for containers on lost agents, and with fences there. Raises ConflictError without room.

    Only a pass moves containers: it has made sure that the Swarm has lost these agents as well. It has asked about no others.
    """
    row, context, plan = update.session, snapshot.context, update.plan
    request = request.with_sizes(plan.session.sizes)
    silent = snapshot.silent if context.relocates and plan.session.on_lost == RELOCATE else {}
    lost = expired_agents(plan, context.agents, silent, context.now)
    if plan.network.driver == "overlay":
        removed = fenced_agents(snapshot.fences, "")
        lost = tuple(name for name in lost if name in removed)
    if not lost:
        return update
    places = places_of(snapshot, row, plan, request, lost)
    if isinstance(places, Shortfall):
        raise ConflictError(f"Session {row.name} was {UNMOVED}no other agent has room for {places.reason}.", lost[0])
    moved = _moved(snapshot, plan, request, places)
    listed = ", ".join(f"{hostname} is made again on {new}" for hostname, _old, new in moves_between(plan, moved))
    reason = f"relocated, because {describe_loss(plan, lost)}: {listed}; what it had stored in its own files is gone"
    update = replace(update.having(plan=moved), fences=snapshot.fences_of(lost, row.id))
    return update.note(context.now, reason)


def moves_between(former: Plan, plan: Plan) -> Moves:
    """The containers that another plan of the session has on another agent."""
    pairs = zip(former.containers, plan.containers)
    return tuple((one.hostname, before.agent, one.agent) for before, one in pairs if one.agent != before.agent)


def places_of(
    snapshot: Snapshot, row: SessionRecord, plan: Plan, request: Request, lost: Sequence[str]
) -> Places | Shortfall:
    """Where the containers of lost agents go."""
    agents = snapshot.context.agents
    free = capacity_left(agents, snapshot.ends, snapshot.held_plans)
    return new_places(request, plan, lost, agents, free, fenced_agents(snapshot.fences, row.id))


def _moved(snapshot: Snapshot, plan: Plan, request: Request, places: Places) -> Plan:
    agents, ports = snapshot.context.agents, plan.main.ports
    if plan.main.hostname in places:
        others = [held for held in snapshot.held_plans if held.session.id != plan.session.id]
        ports = Allocation(others, agents).ports(request, [places[plan.main.hostname][0]])
    return moved_plan(plan, request, places, ports, agents, snapshot.context.taken_names)


def to_clean(
    fences: Iterable[Fence], swarms: Mapping[str, str], agents: Iterable[AgentReport]
) -> Dict[str, FencedAgent]:
    """The fenced agents that answer again: the sessions to remove there, and whether they must join their Swarm again, and which."""
    by_name = {agent.name: agent for agent in agents if agent.reachable}
    found: Dict[str, FencedAgent] = {}
    for name, session, node in fences:
        agent = by_name.get(name)
        if agent is not None:
            is_out = bool(node) and not (agent.swarm or agent.place.managers)
            fence = found.get(name) or FencedAgent((), is_out, swarms.get(node, ""))
            found[name] = replace(fence, sessions=(*fence.sessions, *([session] if UUID(session) else [])))
    return found
