# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The placement of a session behind all that come before it in the queue, by capacity, quotas and the order of the site."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Collection, Dict, Iterator, List, Mapping, Sequence, Set, Tuple

from .._shared.documents.plan import Plan
from .._shared.documents.report import AgentReport
from .._shared.errors import ComputeError
from .._shared.planning.allocation import Allocation
from .._shared.planning.capacity import Demand
from .._shared.planning.fair_share import decayed_use, fairness
from .._shared.planning.placement import Placement, Shortfall
from .._shared.planning.policy_rules import Use, check_policy, over_quota
from .._shared.planning.queue import QueueEntry, Turn, by_priority, schedule
from .._shared.planning.request import Request
from .dependencies import awaited
from .quotas import by_owner, uses
from .session_record import SessionRecord
from .snapshot import Snapshot
from .usage import capacity_left

# Ends of sessions that an estimate looks at.
_MOST_ENDS = 20


class Queue:
    """The queue of all owners during one decision, decided for now and for later.

    ``asked`` are sessions that are asked for now, with requests that may differ from those in the queue. One that runs may ask for
    more: ``demands`` has by ID what it still needs.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        asked: Sequence[Tuple[SessionRecord, Request]] = (),
        demands: Mapping[str, Demand] | None = None,
    ) -> None:
        self._context, self._ends = snapshot.context, snapshot.ends
        own, holding = {row.id for row, _request in asked}, snapshot.holding
        self._plans = snapshot.held_plans
        self._latest_ends = [(_latest_end(row.plan, row.changed), row.id) for row in holding if row.plan]
        self._uses = [one for one in uses(holding, snapshot.context.agents) if one[0] not in own]
        waiting = snapshot.waiting
        self.rows = {row.id: row for row, _request in (*waiting, *asked)}
        self.requests = {row.id: request for row, request in (*waiting, *asked)}
        self._entries = _entries(snapshot, asked)
        for identity, demand in (demands or {}).items():
            # It runs already, so it does not wait for other sessions.
            self._entries[identity] = replace(self._entries[identity], demand=demand, awaits="")
        self.allocation = Allocation(self._plans, snapshot.context.agents)

    def now(self) -> Iterator[Turn]:
        """Every session, first to last, with its placement or why it has none."""
        return self._decided(self._context.agents, self._plans, self.allocation, self._context.now, ())

    def outcome(self, session: str) -> Placement | Shortfall:
        return next(outcome for entry, outcome in self.now() if entry.id == session)

    def starts(self, sessions: Collection[str]) -> Dict[str, float]:
        """When waiting sessions will probably start, in seconds since the epoch, by the latest ends of those that run.

        Sessions that do not fit by the first ends are left out. Sessions without a lifetime and without a timeout of their command
        have no end.
        """
        ends = sorted(one for one in self._latest_ends if one[0])
        found: Dict[str, float] = {}
        ended: Set[str] = set()
        for end, session in ends[:_MOST_ENDS]:
            ended.add(session)
            then = max(end, self._context.now)
            left = set(sessions) - set(found)
            found.update((identity, then) for identity in self._placed_without(ended, then, left))
        return found

    def _placed_without(self, ended: Collection[str], now: float, wanted: Set[str]) -> Iterator[str]:
        """The wanted sessions that fit once others have ended."""
        plans = [plan for plan in self._plans if plan.session.id not in ended]
        agents = tuple(
            replace(agent, containers=tuple(one for one in agent.containers if one.session not in ended))
            for agent in self._context.agents
        )
        left = len(wanted)
        turns_then = self._decided(agents, plans, Allocation(plans, agents), now, ended) if wanted else iter(())
        for entry, outcome in turns_then:
            if entry.id in wanted:
                left -= 1
                if isinstance(outcome, Placement):
                    yield entry.id
            if not left:
                return

    def _decided(
        self,
        agents: Sequence[AgentReport],
        plans: Sequence[Plan],
        allocation: Allocation,
        now: float,
        ended: Collection[str],
    ) -> Iterator[Turn]:
        free = capacity_left(agents, self._ends, plans)
        # Sessions that room is kept for count as well.
        use = by_owner(self._uses, ended)

        def can_start(entry: QueueEntry, placement: Placement) -> bool:
            request = self.requests[entry.id]
            try:
                allocation.check(request, placement)
            except ComputeError:
                return False
            use[request.owner] = use.get(request.owner, Use()).plus(Use.of_request(request))
            return True

        def held(entry: QueueEntry) -> str:
            return over_quota(self._context.site, use, self.requests[entry.id])

        def is_permitted(entry: QueueEntry) -> bool:
            try:
                check_policy(self._context.site, self.requests[entry.id])
            except ComputeError:
                return False
            return True

        entries, policy = self._entries.values(), self._context.policy
        return schedule(entries, agents, free, policy, now, can_start, held, is_permitted)


def turns(snapshot: Snapshot) -> List[str]:
    """The IDs of the sessions of all owners that wait, in the order in which decisions take them."""
    context = snapshot.context
    return [entry.id for entry in by_priority(_entries(snapshot).values(), context.policy.rules, context.now)]


def with_start(reason: str, start: float | None) -> str:
    """Why a session waits, and when it will probably start."""
    shown = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(start or 0.0))
    return reason if start is None else f"{reason}; it starts by {shown}"


def _latest_end(plan: Plan, changed: float) -> float:
    """When a session ends by its lifetime or its command's timeout, whichever is first; 0 if neither is set.

    The lifetime counts from the placement, the timeout from a command's begin: at the last change of the session, or before.
    """
    session = plan.session
    ends_with_command = session.command and session.terminate_when_done
    limits = [(session.began, session.lifetime), (changed, session.command_timeout if ends_with_command else 0)]
    return min((begin + limit for begin, limit in limits if limit), default=0.0)


def _entries(snapshot: Snapshot, asked: Sequence[Tuple[SessionRecord, Request]] = ()) -> Dict[str, QueueEntry]:
    """All sessions that wait, by their IDs, and those asked for now as they are asked for."""
    waiting, fair = snapshot.waiting, _fairness(snapshot)
    agents, now = snapshot.context.agents, snapshot.context.now
    total = sum(agent.capacity.millicpus for agent in agents) or 1
    found = {}
    for row, request in (*waiting, *asked):
        waits = awaited(row, request, snapshot.awaited_by(row, request), agents, now)
        factors = (fair.get(row.owner, 1.0), request.total("millicpus") / total)
        found[row.id] = QueueEntry(
            row.id, row.name, row.priority, waits.since, request.demand(), *factors, awaits=waits.text
        )
    return found


def _fairness(snapshot: Snapshot) -> Mapping[str, float]:
    """Return how little each owner has used; all alike if the site does not weigh it."""
    rules, owners = snapshot.context.policy.rules, {row.owner for row, _request in snapshot.waiting}
    if not rules.share_weight:
        return {}
    return fairness(decayed_use(snapshot.holdings, rules.half_life, snapshot.context.now), owners, rules)
