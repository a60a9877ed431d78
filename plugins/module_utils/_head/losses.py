# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Agents that no longer answer: since when, what becomes of sessions on them, and which of them may hold old containers.

A session that moves is fenced off its lost agents in the transaction that gives it its new places: nothing of it is placed
there before a pass has removed what the agent still has of it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Iterable, Iterator, List, Mapping, Sequence, Tuple

from .._shared import states
from .._shared.constants import RELOCATE
from .._shared.documents.decision import Holder, Loss
from .._shared.documents.plan import Plan
from .._shared.documents.report import AgentReport
from .._shared.exits import UNMOVED
from .._shared.planning.node_loss import describe_loss, expired_agents
from .._shared.planning.placement import Shortfall
from .relocation import places_of
from .session_record import SessionRecord, Update
from .snapshot import Context, Snapshot
from .store import Store


def note_agents(store: Store, agents: Iterable[AgentReport], now: float) -> None:
    """Note which agents answer, with their nodes, and since when the others do not."""
    for agent in agents:
        if agent.reachable:
            store.execute("INSERT OR REPLACE INTO agent VALUES (?, ?, NULL)", (agent.name, agent.place.node_id))
            _note_swarm(store, agent)
        else:
            store.execute("INSERT OR IGNORE INTO agent VALUES (?, '', NULL)", (agent.name,))
            store.execute("UPDATE agent SET silent = min(ifnull(silent, ?), ?) WHERE name = ?", (now, now, agent.name))


def note_nodes(store: Store, agents: Iterable[AgentReport]) -> None:
    """Note the nodes of agents that answer: a launch places containers on them, and the next pass may come after their loss."""
    known = store.nodes()
    for agent in agents:
        if agent.reachable:
            _note_swarm(store, agent)
        if agent.reachable and agent.place.node_id not in ("", known.get(agent.name)):
            store.execute("INSERT OR REPLACE INTO agent VALUES (?, ?, NULL)", (agent.name, agent.place.node_id))


def _note_swarm(store: Store, agent: AgentReport) -> None:
    if agent.place.node_id and agent.swarm:
        store.execute("INSERT OR IGNORE INTO node VALUES (?, ?)", (agent.place.node_id, agent.swarm))


def decided(
    rows: Iterable[SessionRecord], agents: Sequence[AgentReport], silent: Mapping[str, float], now: float
) -> Iterator[Tuple[SessionRecord, Plan, Tuple[str, ...]]]:
    """The running sessions that a pass ends or moves, with their lost agents. One that another controller repairs is left to it."""
    for row in rows:
        if row.plan and row.plan.session.on_lost != "keep" and row.is_lost(now):
            lost = expired_agents(row.plan, agents, silent, now)
            if lost:
                yield row, row.plan, lost


def losses(store: Store, agents: Sequence[AgentReport], owner: str, now: float) -> List[Loss]:
    """Return a pass's decision for an owner's sessions: C(end), C(relocate), or C(stay) if no agent has room, which is recorded."""
    snapshot = store.snapshot(Context(tuple(agents), Holder(), now))
    rows = [row for row in snapshot.sessions if row.state == states.RUNNING and row.owner == owner]
    found = [_action(snapshot, *loss) for loss in decided(rows, agents, snapshot.silent, now)]
    for _loss, update in found:
        store.apply(update)
    return [loss for loss, _update in found]


def _action(snapshot: Snapshot, row: SessionRecord, plan: Plan, lost: Sequence[str]) -> Tuple[Loss, Update]:
    request, action, update = row.request, plan.session.on_lost, Update(row)
    loss = Loss(row.id, row.name, row.owner, action, describe_loss(plan, lost), nodes={}, swarms={}, shared=False)
    if action != RELOCATE or request is None:
        return loss, update
    places = places_of(snapshot, row, plan, request, lost)
    if isinstance(places, Shortfall):
        update = update.having(reason=f"{UNMOVED}{loss.reason}, and no other agent has room for {places.reason}")
        return replace(loss, action="stay", reason=update.session.reason), update
    is_shared = plan.network.driver == "overlay"
    if is_shared:
        update = replace(update, fences=snapshot.fences_of(lost, ""))
    own = {name: snapshot.nodes.get(name, "") for name in lost}
    swarms = {name: snapshot.swarms.get(node, "") for name, node in own.items()}
    return replace(loss, nodes=own, swarms=swarms, shared=is_shared), update


def unfence(store: Store, agent: str, sessions: Sequence[str], node: str = "") -> None:
    """An agent holds nothing of these sessions any more, and is a node of its Swarm: another ``node`` if it has joined again."""
    if node:
        store.execute("UPDATE agent SET node = ? WHERE name = ?", (node, agent))
    for session in ("", *sessions):
        store.execute("DELETE FROM fence WHERE agent = ? AND session = ?", (agent, session))
