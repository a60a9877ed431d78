# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whose turn it is: priority, then first come; backfill, with an age bound so that a big session is not starved."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, Dict, Iterable, List, Sequence

from ansible_collections.cluster.compute.plugins.module_utils._core.reports import Agent
from ansible_collections.cluster.compute.plugins.module_utils._planning.capacity import FreeCapacity, free_of
from ansible_collections.cluster.compute.plugins.module_utils._planning.placement import (
    Demand,
    Placement,
    Shortfall,
    place,
)

STRICT = "strict"
BACKFILL = "backfill"
_SHOWN = 3


@dataclass(frozen=True)
class QueueEntry:
    """A PENDING session in the queue. ``since`` is when it came."""

    id: str
    name: str
    priority: int
    since: float
    demand: Demand


def in_order(queue: Iterable[QueueEntry]) -> List[QueueEntry]:
    """The queue, first to last."""
    return sorted(queue, key=lambda one: (-one.priority, one.since, one.id))


@dataclass(frozen=True)
class Policy:
    """How the queue moves. After ``age_bound`` seconds a session that does not fit holds back those behind it."""

    name: str = BACKFILL
    age_bound: float = 3600.0


def take_turn(
    mine: QueueEntry,
    queue: Iterable[QueueEntry],
    agents: Sequence[Agent],
    free: Dict[str, FreeCapacity],
    policy: Policy,
    now: float,
    can_start: Callable[[QueueEntry, Placement], bool],
) -> Placement | Shortfall:
    """Place ``mine`` behind all who come before it in its resource group.

    One before it that fits keeps its room (``free`` is booked for it) although another run launches it; one that does
    not fit is passed by under ``backfill`` until it has waited longer than the age bound, and never under ``strict``.
    One that would not fit on empty agents either, or has room and still cannot start (no port is free), holds nobody back.
    """
    kept: List[str] = []
    before: Dict[str, FreeCapacity] = {}
    for other in in_order(one for one in queue if one.demand.group == mine.demand.group):
        if other.id == mine.id:
            break
        placed = place(other.demand, agents, free)
        if isinstance(placed, Placement):
            if can_start(other, placed):
                kept.append(other.name)
                before.update({name: free[name].copy() for name in placed.agents if name not in before})
                for agent in placed.agents:
                    free[agent].take(other.demand.each)
        elif (policy.name == STRICT or now - other.since > policy.age_bound) and _could_fit(other.demand, agents):
            return Shortfall("waits behind %s, whose turn is first: %s" % (other.name, placed.reason))
    return _behind(mine, agents, free, {**free, **before}, kept)


def _behind(
    mine: QueueEntry,
    agents: Sequence[Agent],
    free: Dict[str, FreeCapacity],
    unkept: Dict[str, FreeCapacity],
    kept: Sequence[str],
) -> Placement | Shortfall:
    """Its placement; where it only lacks the room that is kept for those before it, the reason says for whom."""
    placed = place(mine.demand, agents, free)
    if isinstance(placed, Placement) or not kept:
        return placed
    alone = place(mine.demand, agents, unkept)
    if isinstance(alone, Shortfall):
        return alone
    more = " and %d more" % (len(kept) - _SHOWN) if len(kept) > _SHOWN else ""
    names = ", ".join(kept[:_SHOWN]) + more
    why = "%s (room is kept for %s, before it in the queue; schedule.yml launches what fits)"
    return Shortfall(why % (placed.reason, names))


def _could_fit(demand: Demand, agents: Sequence[Agent]) -> bool:
    """Whether a session fits once everybody else has ended."""
    return isinstance(place(demand, agents, {agent.name: free_of(agent, ()) for agent in agents}), Placement)
