# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The order of the queue: priority, then arrival, or what the site weighs; backfill has an age bound against starvation."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import lru_cache
from typing import Callable, Dict, Iterable, Iterator, List, Sequence, Set, Tuple, Union

from ..documents.report import AgentReport
from ..errors import shorten_list
from .capacity import Demand, FreeCapacity
from .fair_share import score
from .placement import Placement, Shortfall, free_of
from .policy import STRICT, Policy, QueueRules
from .role_placement import Emptied, emptied, impossible, never_fits, place

_SHOWN_NAMES = 3
_USUAL = QueueRules()


@dataclass(frozen=True)
class QueueEntry:
    """A PENDING session.

    ``since`` is when it was requested, or from when on it may start if that is later, in seconds since the epoch. ``fairness`` says
    how little its owner has used, from 0 to 1, and ``size`` is its part of all CPUs. ``awaits`` says which sessions it waits for.
    """

    id: str
    name: str
    priority: int
    since: float
    demand: Demand
    fairness: float = 1.0
    size: float = 0.0
    awaits: str = ""

    def waits(self, now: float) -> str:
        """Why it may not start yet, whatever is free; empty if it may."""
        until = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(self.since)) if now < self.since else ""
        return self.awaits or (until and f"waits until {until}, as session_not_before says")


def by_priority(queue: Iterable[QueueEntry], rules: QueueRules = _USUAL, now: float = 0.0) -> List[QueueEntry]:
    """The queue, first to last: what may start comes before what may not yet. Sessions of the same rank come in the order of their
    requests.
    """

    def rank(entry: QueueEntry) -> float:
        return score(entry.priority, now - entry.since, entry.fairness, entry.size, rules)

    return sorted(queue, key=lambda entry: (bool(entry.waits(now)), -rank(entry), entry.since, entry.id))


Turn = Tuple[QueueEntry, Union[Placement, Shortfall]]
Place = Callable[[Demand], Union[Placement, Shortfall]]


def schedule(
    queue: Iterable[QueueEntry],
    agents: Sequence[AgentReport],
    free: Dict[str, FreeCapacity],
    policy: Policy,
    now: float,
    can_start: Callable[[QueueEntry, Placement], bool],
    held: Callable[[QueueEntry], str] = lambda _entry: "",
    is_permitted: Callable[[QueueEntry], bool] = lambda _entry: True,
) -> Iterator[Turn]:
    """Every session of the queue, first to last, with its placement behind all sessions before it in its resource group, and in
    groups that share an agent with it.

    A session that fits keeps its room: it is booked, although another run launches it. A session that does not fit is
    overtaken under ``backfill`` until it has waited longer than the age bound, and never under ``strict``. A session that would
    not fit on empty agents, or has room and cannot start (no port is free), blocks nothing, and neither does a session that
    ``held`` has a reason for, or that may not start yet: it waits for something other than room. A session that is not
    ``is_permitted`` blocks nothing either: the policy refuses it when its turn comes.
    """
    decision = _Decision(agents, free)
    for entry in by_priority(queue, policy.rules, now):
        reason = entry.waits(now) or decision.blocked(entry) or held(entry)
        if reason:
            yield entry, decision.impossible(entry.demand) or Shortfall(reason)
            continue
        found = decision.place(entry.demand)
        if isinstance(found, Shortfall):
            yield entry, decision.explained(entry, found)
            if (policy.name == STRICT or now - entry.since > policy.age_bound) and is_permitted(entry):
                decision.block(entry, found)
            continue
        if is_permitted(entry) and can_start(entry, found):
            decision.book(entry, found)
        yield entry, found


class _Decision:
    """The capacity during one decision that earlier sessions leave. Sessions that ask for the same share an answer."""

    def __init__(self, agents: Sequence[AgentReport], free: Dict[str, FreeCapacity]) -> None:
        unused = {agent.name: free_of(agent, ()) for agent in agents}
        remembered = lru_cache(maxsize=None)
        self._on_unused: Place = remembered(lambda demand: place(demand, agents, unused))
        self._on_unkept: Place = remembered(lambda demand: place(demand, agents, free))
        empty: Callable[[], Emptied] = remembered(lambda: emptied(agents))
        self._never: Callable[[Demand], str] = remembered(lambda demand: never_fits(demand, agents, empty()))
        self._agents = agents
        self._free = {name: one.copy() for name, one in free.items()}
        self._kept: List[QueueEntry] = []
        self._blocking: List[Tuple[QueueEntry, str]] = []
        self._short: Dict[Demand, Shortfall] = {}
        self._rivals: Dict[str, Set[str]] = {}

    def place(self, demand: Demand) -> Placement | Shortfall:
        """The placement in what is left."""
        if demand in self._short:
            return self._short[demand]
        found = place(demand, self._agents, self._free)
        if isinstance(found, Shortfall):
            self._short[demand] = found
        return found

    def book(self, entry: QueueEntry, placement: Placement) -> None:
        """Keep the room of a session that fits."""
        self._kept.append(entry)
        # What was too little is less now: the reasons name other amounts.
        self._short.clear()
        for agent, resources in zip(placement.agents, placement.resources):
            self._free[agent].book(resources)

    def block(self, entry: QueueEntry, shortfall: Shortfall) -> None:
        """Let no later session pass, if the session fits on agents that hold no other session."""
        if isinstance(self._on_unused(entry.demand), Placement):
            self._blocking.append((entry, shortfall.reason))

    def blocked(self, entry: QueueEntry) -> str:
        """Why no later session of these groups may pass; empty if it may."""
        rivals = self._rivals_of(entry.demand)
        for other, reason in self._blocking:
            if other.demand.resource_groups & rivals:
                return f"waits behind {other.name}, which comes first: {reason}"
        return ""

    def impossible(self, demand: Demand) -> Shortfall | None:
        """Return what a session waits for that the agents could not hold if they held nothing else; None if they could."""
        never = self._never(demand)
        return impossible(never) if never else None

    def explained(self, entry: QueueEntry, shortfall: Shortfall) -> Shortfall:
        """Why a session does not fit. If it lacks only room that is kept for others, the reason names them."""
        never = self.impossible(entry.demand)
        if never:
            return never
        rivals = self._rivals_of(entry.demand)
        kept = [other.name for other in self._kept if other.demand.resource_groups & rivals]
        if not kept:
            return shortfall
        alone = self._on_unkept(entry.demand)
        if isinstance(alone, Shortfall):
            return alone
        reason = "%s (room is kept for %s, before it in the queue; schedule.yml launches what fits)"
        return Shortfall(reason % (shortfall.reason, shorten_list(kept, _SHOWN_NAMES)))

    def _rivals_of(self, demand: Demand) -> Set[str]:
        """The groups of a session, and all groups that share an agent with them."""
        return set().union(*(self._rivals_of_group(group) for group in demand.resource_groups))

    def _rivals_of_group(self, group: str) -> Set[str]:
        if group not in self._rivals:
            sharing = (agent.groups for agent in self._agents if group in agent.groups)
            self._rivals[group] = {other for groups in sharing for other in groups}
        return self._rivals[group]
