# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Agents that no longer answer: since when, what becomes of sessions on them, and which of them may hold old containers.

A session that moves is fenced off its lost agents in the transaction that gives it its new places: nothing of it is placed
there before a pass has removed what the agent still has of it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Dict, Iterable, Iterator, List, Mapping, Sequence, Tuple

from .._shared import states
from .._shared.constants import RELOCATE
from .._shared.documents.decision import FencedAgent, Loss
from .._shared.documents.plan import Plan
from .._shared.documents.report import AgentStatus
from .._shared.documents.schema import UUID
from .._shared.errors import ConflictError
from .._shared.exits import UNMOVED
from .._shared.planning.allocation import Allocation
from .._shared.planning.node_loss import Places, describe_loss, expired_agents, moved_plan, new_places
from .._shared.planning.placement import Shortfall
from .._shared.planning.request import Request
from .maintenance import is_lost
from .scheduling_queue import Context
from .session_record import SessionRecord
from .store import Store
from .usage import capacity_left

# Hostname, former and new agent of each container that moves.
Moves = Tuple[Tuple[str, str, str], ...]


def note_agents(store: Store, agents: Iterable[AgentStatus], now: float) -> None:
    """Note which agents answer, with their nodes, and since when the others do not."""
    for agent in agents:
        if agent.reachable:
            store.execute("INSERT OR REPLACE INTO agent VALUES (?, ?, NULL)", (agent.name, agent.node))
            _note_swarm(store, agent)
        else:
            store.execute("INSERT OR IGNORE INTO agent VALUES (?, '', NULL)", (agent.name,))
            store.execute("UPDATE agent SET silent = min(ifnull(silent, ?), ?) WHERE name = ?", (now, now, agent.name))


def note_nodes(store: Store, agents: Iterable[AgentStatus]) -> None:
    """Note the nodes of agents that answer: a launch places containers on them, and the next pass may come after their loss."""
    known = _nodes(store)
    for agent in agents:
        if agent.reachable:
            _note_swarm(store, agent)
        if agent.reachable and agent.node and known.get(agent.name) != agent.node:
            store.execute("INSERT OR REPLACE INTO agent VALUES (?, ?, NULL)", (agent.name, agent.node))


def _note_swarm(store: Store, agent: AgentStatus) -> None:
    if agent.node and agent.swarm:
        store.execute("INSERT OR IGNORE INTO node VALUES (?, ?)", (agent.node, agent.swarm))


def _swarm_of(store: Store, node: str) -> str:
    """The Swarm of a node, whose managers alone know whether it is lost; empty if it is not known."""
    found = store.query("SELECT swarm FROM node WHERE id = ?", (node,))
    return str(found[0][0]) if found else ""


def _nodes(store: Store) -> Dict[str, str]:
    """The nodes of agents in their Swarm, as far as they are known."""
    return dict(store.query("SELECT name, node FROM agent"))


def silent_agents(store: Store) -> Dict[str, float]:
    """Since when agents have not answered, in seconds since the epoch."""
    return dict(store.query("SELECT name, silent FROM agent WHERE silent IS NOT NULL"))


def decided(
    rows: Iterable[SessionRecord], agents: Sequence[AgentStatus], silent: Mapping[str, float], now: float
) -> Iterator[Tuple[SessionRecord, Plan, Tuple[str, ...]]]:
    """The running sessions that a pass ends or moves, with their lost agents. One that another controller repairs is left to it."""
    for row in rows:
        if row.plan and row.plan.session.on_lost != "keep" and is_lost(row, now):
            lost = expired_agents(row.plan, agents, silent, now)
            if lost:
                yield row, row.plan, lost


def losses(store: Store, agents: Sequence[AgentStatus], owner: str, now: float) -> List[Loss]:
    """Return a pass's decision for an owner's sessions: C(end), C(relocate), or C(stay) if no agent has room, which is recorded."""
    rows = [row for row in store.live({states.RUNNING}) if row.owner == owner]
    nodes, found = _nodes(store), decided(rows, agents, silent_agents(store), now)
    return [_action(store, row, plan, lost, agents, nodes) for row, plan, lost in found]


def _action(
    store: Store,
    row: SessionRecord,
    plan: Plan,
    lost: Sequence[str],
    agents: Sequence[AgentStatus],
    nodes: Mapping[str, str],
) -> Loss:
    request, action = row.request, plan.session.on_lost
    loss = Loss(row.id, row.name, row.owner, action, describe_loss(plan, lost), nodes={}, swarms={}, shared=False)
    if action != RELOCATE or request is None:
        return loss
    places = _places(store, row, plan, request, lost, agents)
    if isinstance(places, Shortfall):
        row.reason = f"{UNMOVED}{loss.reason}, and no other agent has room for {places.reason}"
        store.save(row)
        return replace(loss, action="stay", reason=row.reason)
    is_shared = plan.network.driver == "overlay"
    if is_shared:
        _fence(store, lost, "", nodes)
    own = {name: nodes.get(name, "") for name in lost}
    return replace(loss, nodes=own, swarms={name: _swarm_of(store, own[name]) for name in lost}, shared=is_shared)


def relocated(store: Store, row: SessionRecord, plan: Plan, request: Request, context: Context) -> Tuple[Plan, Moves]:
    """The plan with new places for containers on lost agents, recorded with the fences. Raises ConflictError without room.

    Only a pass moves containers: it has made sure that the Swarm has lost these agents as well. It has asked about no others.
    """
    silent = silent_agents(store) if context.relocates and plan.session.on_lost == RELOCATE else {}
    lost = expired_agents(plan, context.agents, silent, context.now)
    if plan.network.driver == "overlay":
        removed = fenced_agents(store, "")
        lost = tuple(name for name in lost if name in removed)
    if not lost:
        return plan, ()
    places = _places(store, row, plan, request, lost, context.agents)
    if isinstance(places, Shortfall):
        raise ConflictError(f"Session {row.name} was {UNMOVED}no other agent has room for {places.reason}.", lost[0])
    moves = tuple(
        (one.hostname, one.agent, places[one.hostname][0]) for one in plan.containers if one.hostname in places
    )
    _fence(store, lost, row.id, _nodes(store))
    row.plan = _moved(store, row, plan, request, places, context)
    listed = ", ".join(f"{hostname} is made again on {new}" for hostname, _old, new in moves)
    reason = f"relocated, because {describe_loss(plan, lost)}: {listed}; what it had stored in its own files is gone"
    store.note(row, context.now, reason)
    return row.plan, moves


def _places(
    store: Store, row: SessionRecord, plan: Plan, request: Request, lost: Sequence[str], agents: Sequence[AgentStatus]
) -> Places | Shortfall:
    free = capacity_left(agents, store.ends_on(agents), store.held_plans())
    return new_places(request, plan, lost, agents, free, fenced_agents(store, row.id))


def _moved(store: Store, row: SessionRecord, plan: Plan, request: Request, places: Places, context: Context) -> Plan:
    others = [held for held in store.held_plans() if held.session.id != row.id]
    ports = plan.main.ports
    if plan.main.hostname in places:
        ports = Allocation(others, context.agents).ports(request, [places[plan.main.hostname][0]])
    return moved_plan(plan, request, places, ports, context.agents, context.taken_names)


def _fence(store: Store, agents: Iterable[str], session: str, nodes: Mapping[str, str]) -> None:
    for name in agents:
        store.execute("INSERT OR REPLACE INTO fence VALUES (?, ?, ?)", (name, session, nodes.get(name, "")))


def fenced_agents(store: Store, session: str) -> List[str]:
    """The agents that may still have old containers of a session."""
    found = store.query("SELECT agent FROM fence WHERE session = ? ORDER BY agent", (session,))
    return [name for (name,) in found]


def to_clean(store: Store, agents: Iterable[AgentStatus]) -> Dict[str, FencedAgent]:
    """The fenced agents that answer again: the sessions to remove there, and whether they must join their Swarm again, and which."""
    by_name = {agent.name: agent for agent in agents if agent.reachable}
    found: Dict[str, FencedAgent] = {}
    for name, session, node in store.query("SELECT agent, session, node FROM fence ORDER BY agent, session"):
        agent = by_name.get(name)
        if agent is not None:
            is_out = bool(node) and not (agent.swarm or agent.managers)
            fence = found.get(name) or FencedAgent((), is_out, _swarm_of(store, node))
            found[name] = replace(fence, sessions=(*fence.sessions, *([session] if UUID(session) else [])))
    return found


def unfence(store: Store, agent: str, sessions: Sequence[str], node: str = "") -> None:
    """An agent holds nothing of these sessions any more, and is a node of its Swarm: another ``node`` if it has joined again."""
    if node:
        store.execute("UPDATE agent SET node = ? WHERE name = ?", (node, agent))
    for session in ("", *sessions):
        store.execute("DELETE FROM fence WHERE agent = ? AND session = ?", (agent, session))
