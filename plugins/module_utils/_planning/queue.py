# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The order of the queue: priority, then arrival, or what the site weighs; backfill has an age bound against starvation."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Callable, Dict, Iterable, List, Sequence

from ansible_collections.cluster.compute.plugins.module_utils._core.reports import Agent
from ansible_collections.cluster.compute.plugins.module_utils._planning.capacity import FreeCapacity, free_of
from ansible_collections.cluster.compute.plugins.module_utils._planning.fair_share import score
from ansible_collections.cluster.compute.plugins.module_utils._planning.placement import (
    Demand,
    Placement,
    Shortfall,
    place,
)
from ansible_collections.cluster.compute.plugins.module_utils._planning.policy import QueueRules

STRICT = "strict"
BACKFILL = "backfill"
_SHOWN_NAMES = 3
_USUAL = QueueRules()


@dataclass(frozen=True)
class QueueEntry:
    """A PENDING session.

    ``since`` is when it was requested, in seconds since the epoch. ``fairness`` says how little its owner has used, from 0 to 1,
    and ``size`` is its part of all CPUs.
    """

    id: str
    name: str
    priority: int
    since: float
    demand: Demand
    fairness: float = 1.0
    size: float = 0.0


def in_order(queue: Iterable[QueueEntry], rules: QueueRules = _USUAL, now: float = 0.0) -> List[QueueEntry]:
    """The queue, first to last. Sessions of the same rank come in the order of their requests."""

    def rank(entry: QueueEntry) -> float:
        return score(entry.priority, now - entry.since, entry.fairness, entry.size, rules)

    return sorted(queue, key=lambda entry: (-rank(entry), entry.since, entry.id))


@dataclass(frozen=True)
class Policy:
    """Whether sessions may overtake. After ``age_bound`` seconds, one that does not fit holds back those behind it."""

    name: str = BACKFILL
    age_bound: float = 3600.0
    rules: QueueRules = field(default_factory=QueueRules)


def take_turn(
    mine: QueueEntry,
    queue: Iterable[QueueEntry],
    agents: Sequence[Agent],
    free: Dict[str, FreeCapacity],
    policy: Policy,
    now: float,
    can_start: Callable[[QueueEntry, Placement], bool],
    held: Callable[[QueueEntry], str] = lambda _entry: "",
) -> Placement | Shortfall:
    """Place ``mine`` behind all sessions that come before it in its resource group, and in groups that share an
    agent with it.

    A session before it that fits keeps its room: ``free`` is booked for it, although another run launches it. A session
    that does not fit is overtaken under ``backfill`` until it has waited longer than the age bound, and never under
    ``strict``. A session that would not fit on empty agents, or has room and cannot start (no port is free), blocks
    nothing, and neither does a session that ``held`` has a reason for: it waits for something other than room.
    """
    kept: List[str] = []
    before: Dict[str, FreeCapacity] = {}
    rivals = {group for agent in agents if mine.demand.group in agent.groups for group in agent.groups}
    for other in in_order((entry for entry in queue if entry.demand.group in rivals), policy.rules, now):
        if other.id == mine.id:
            break
        if held(other):
            continue
        placement = place(other.demand, agents, free)
        if isinstance(placement, Placement):
            if can_start(other, placement):
                kept.append(other.name)
                before.update({name: free[name].copy() for name in placement.agents if name not in before})
                _book(other.demand, placement, free)
        elif (policy.name == STRICT or now - other.since > policy.age_bound) and _could_fit(other.demand, agents):
            return Shortfall("waits behind %s, which comes first: %s" % (other.name, placement.reason))
    reason = held(mine)
    if reason:
        return Shortfall(reason)
    return _behind(mine, agents, free, {**free, **before}, kept)


def _book(demand: Demand, placement: Placement, free: Dict[str, FreeCapacity]) -> None:
    for agent in placement.agents:
        free[agent].take(demand.per_container)


def _behind(
    mine: QueueEntry,
    agents: Sequence[Agent],
    free: Dict[str, FreeCapacity],
    unkept: Dict[str, FreeCapacity],
    kept: Sequence[str],
) -> Placement | Shortfall:
    """The placement of ``mine``. If it lacks only room that is kept for others, the reason names them."""
    placement = place(mine.demand, agents, free)
    if isinstance(placement, Placement) or not kept:
        return placement
    alone = place(mine.demand, agents, unkept)
    if isinstance(alone, Shortfall):
        return alone
    more = " and %d more" % (len(kept) - _SHOWN_NAMES) if len(kept) > _SHOWN_NAMES else ""
    names = ", ".join(kept[:_SHOWN_NAMES]) + more
    reason = "%s (room is kept for %s, before it in the queue; schedule.yml launches what fits)"
    return Shortfall(reason % (placement.reason, names))


def _could_fit(demand: Demand, agents: Sequence[Agent]) -> bool:
    """Whether a session fits on agents that hold no other session."""
    return isinstance(place(demand, agents, {agent.name: free_of(agent, ()) for agent in agents}), Placement)
