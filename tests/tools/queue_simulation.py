# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A queue that is never empty, simulated with the decisions of the head: its store, its order, placement, quotas and ledger.

Only time and the agents are simulated. Each owner requests a session as soon as fewer than three of the owner's wait; a pass over the queue
follows each end of a session.
"""

from __future__ import annotations

import heapq
import random
from dataclasses import dataclass, field

from samples import GIB, agent, context, request
from store_sessions import memory_store, turns_of

from ansible_collections.cluster.compute.plugins.module_utils._head.scheduler import launch
from ansible_collections.cluster.compute.plugins.module_utils._head.snapshot import Context
from ansible_collections.cluster.compute.plugins.module_utils._head.store import Store
from ansible_collections.cluster.compute.plugins.module_utils._shared import states
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.decision import Decision
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.policy import Policy, QueueRules

SHARES = {"alice": 4.0, "bob": 2.0, "carol": 1.0}
RULES = QueueRules(share_weight=2000.0, half_life=2000.0, shares=SHARES)
CPUS, WAITING, MEAN = 8, 3, 10.0
_AGENTS = (agent("a", cpus=CPUS // 2, memory=64 * GIB), agent("b", cpus=CPUS // 2, memory=64 * GIB))
_FOREVER = 1e9


@dataclass
class Outcome:
    """CPU-seconds by owner as they were held and as the ledger has them, and the longest wait in mean lengths of a session."""

    held: dict[str, float] = field(default_factory=lambda: dict.fromkeys(SHARES, 0.0))
    ledger: dict[str, float] = field(default_factory=lambda: dict.fromkeys(SHARES, 0.0))
    longest_wait: float = 0.0
    ended: int = 0

    def deviation(self) -> float:
        """The largest deviation of a share of what was held from the share of its owner, as a part of that share."""
        total, shares = sum(self.held.values()), sum(SHARES.values())
        return max(abs(self.held[owner] / total / (share / shares) - 1) for owner, share in SHARES.items())


class Simulation:
    """One queue; all of it follows from the seed."""

    def __init__(self, store: Store, seed: int) -> None:
        self.store, self.random, self.now = store, random.Random(seed), 1000.0
        self.requested = 0
        self.waiting: dict[str, tuple[str, float]] = {}
        self.running: list[tuple[float, str, str, int]] = []
        self.outcome = Outcome()

    def run(self, sessions: int) -> Outcome:
        while self.outcome.ended < sessions:
            with self.store.transaction():
                self._request()
                for identity in turns_of(self.store, _AGENTS, RULES, self.now):
                    self._decide(identity)
                self._end_next()
        for one in self.store.holdings():
            self.outcome.ledger[one.owner] += one.millicpus / 1000 * one.seconds(self.now)
        return self.outcome

    def _used(self) -> int:
        return sum(cpus for _end, _identity, _owner, cpus in self.running)

    def _request(self) -> None:
        """Sessions until enough of each owner wait, or run; no two are requested at the same moment."""
        for owner in SHARES:
            while sum(other == owner for other, _since in self.waiting.values()) < WAITING:
                self.requested += 1
                self._advance(self.now + 0.001)
                size = self.random.randint(1, 3)
                asked = request(
                    name="job-%d" % self.requested, owner=owner, cluster_size=size, cluster_mode="multi-node"
                )
                self._note(launch(self.store, asked, self._context()), self.now)

    def _decide(self, identity: str) -> None:
        asked = self.store.need(identity).request
        assert asked
        if self._used() + asked.size > CPUS:
            return  # it waits in any case
        self._note(launch(self.store, asked, self._context()), self.waiting[identity][1])

    def _note(self, decision: Decision, since: float) -> None:
        row = self.store.need(decision.session.id)
        if decision.outcome == "pending":
            self.waiting[row.id] = (row.owner, since)
            return
        assert decision.outcome == "placed"
        assert decision.plan
        row = self.store.change(row, states.RUNNING, self.now, "every container is verified")
        self.waiting.pop(row.id, None)
        self.outcome.longest_wait = max(self.outcome.longest_wait, (self.now - since) / MEAN)
        end = self.now + self.random.uniform(0.5, 1.5) * MEAN
        heapq.heappush(self.running, (end, row.id, row.owner, len(decision.plan.containers)))
        assert self._used() <= CPUS

    def _end_next(self) -> None:
        self._advance(max(self.now, self.running[0][0]))
        _end, identity, _owner, _cpus = heapq.heappop(self.running)
        row = self.store.need(identity)
        row = self.store.change(row, states.TERMINATING, self.now, "ended")
        row = self.store.change(row, states.TERMINATED, self.now, "ended")
        self.outcome.ended += 1

    def _advance(self, until: float) -> None:
        for _end, _identity, owner, cpus in self.running:
            self.outcome.held[owner] += cpus * (until - self.now)
        self.now = until

    def _context(self) -> Context:
        return context(*_AGENTS, now=self.now, lease=_FOREVER, policy=Policy(rules=RULES))


def simulated(seed: int, sessions: int) -> Outcome:
    with memory_store() as store:
        return Simulation(store, seed).run(sessions)
