# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The placement of a session behind all that come before it in the queue, by capacity, quotas and the order of the site."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from dataclasses import replace
from typing import Collection, Dict, List, Mapping, Sequence, Set, Tuple

from ansible_collections.cluster.compute.plugins.module_utils._core import states
from ansible_collections.cluster.compute.plugins.module_utils._core.model import Plan
from ansible_collections.cluster.compute.plugins.module_utils._core.reports import Agent
from ansible_collections.cluster.compute.plugins.module_utils._head.bookings import booked_on, ends_on
from ansible_collections.cluster.compute.plugins.module_utils._head.context import Context
from ansible_collections.cluster.compute.plugins.module_utils._head.quotas import Quotas, use_by_owner
from ansible_collections.cluster.compute.plugins.module_utils._head.row import Row
from ansible_collections.cluster.compute.plugins.module_utils._head.store import Store
from ansible_collections.cluster.compute.plugins.module_utils._planning.allocation import (
    can_allocate,
)
from ansible_collections.cluster.compute.plugins.module_utils._planning.capacity import FreeCapacity, free_of
from ansible_collections.cluster.compute.plugins.module_utils._planning.fair_share import decayed_use, fairness
from ansible_collections.cluster.compute.plugins.module_utils._planning.placement import Placement, Shortfall
from ansible_collections.cluster.compute.plugins.module_utils._planning.policy import QueueRules
from ansible_collections.cluster.compute.plugins.module_utils._planning.queue import QueueEntry, in_order, take_turn
from ansible_collections.cluster.compute.plugins.module_utils._planning.request import Request

# Ends of sessions that an estimate looks at.
_MOST_ENDS = 20


def place_in_turn(
    store: Store,
    row: Row,
    request: Request,
    plans: Sequence[Plan],
    context: Context,
    besides: Collection[str] = (),
) -> Placement | Shortfall:
    """Its placement behind all that come before it in the queue; ``besides`` are sessions that count as ended."""
    booked = booked_on(context.agents, ends_on(store, context.agents), plans)
    free: Dict[str, FreeCapacity] = {agent.name: free_of(agent, booked[agent.name]) for agent in context.agents}
    requests = {waiting.id: waiting.request for waiting in _queued(store) if waiting.request}

    quotas = Quotas(context.site, use_by_owner(store, context.agents, besides))

    def can_start(entry: QueueEntry, placement: Placement) -> bool:
        starts = can_allocate(requests[entry.id], placement, plans, context.agents)
        if starts:
            quotas.count(requests[entry.id])
        return starts

    def held(entry: QueueEntry) -> str:
        return quotas.over(request if entry.id == row.id else requests[entry.id])

    queue = _entries(store, [(row, request)], context.agents, context.policy.rules, context.now)
    return take_turn(queue[row.id], queue.values(), context.agents, free, context.policy, context.now, can_start, held)


def turns(store: Store, agents: Sequence[Agent], rules: QueueRules, now: float) -> List[str]:
    """The IDs of the sessions of all owners that wait, in the order in which decisions take them."""
    return [entry.id for entry in in_order(_entries(store, (), agents, rules, now).values(), rules, now)]


def expected_start(store: Store, row: Row, request: Request, plans: Sequence[Plan], context: Context) -> float | None:
    """When a session that waits will probably start, in seconds since the epoch, by the latest ends of those that run.

    None if it does not become possible by the first ends. Sessions without a lifetime and without a timeout of their command
    have no end.
    """
    ends = sorted((end, plan.session.id) for plan in plans for end in [_latest_end(plan)] if end)
    ended: Set[str] = set()
    for end, session in ends[:_MOST_ENDS]:
        ended.add(session)
        left = [plan for plan in plans if plan.session.id not in ended]
        agents = tuple(_without(agent, ended) for agent in context.agents)
        then = replace(context, agents=agents, now=max(end, context.now))
        if isinstance(place_in_turn(store, row, request, left, then, ended), Placement):
            return then.now
    return None


def _latest_end(plan: Plan) -> float:
    """When a session ends by its lifetime or its command's timeout, whichever is first; 0 if neither is set."""
    session = plan.session
    ends_with_command = session.command and session.terminate_when_done
    limits = [session.lifetime, session.command_timeout if ends_with_command else 0]
    return min((session.began + limit for limit in limits if limit), default=0.0)


def _without(agent: Agent, sessions: Collection[str]) -> Agent:
    return replace(agent, containers=tuple(one for one in agent.containers if one.session not in sessions))


def _queued(store: Store) -> List[Row]:
    return [waiting for waiting in store.live({states.PENDING}) if waiting.request]


def _entries(
    store: Store, asked: Sequence[Tuple[Row, Request]], agents: Sequence[Agent], rules: QueueRules, now: float
) -> Dict[str, QueueEntry]:
    """All sessions that wait, by their IDs, and those asked for now as they are asked for."""
    rows = _queued(store)
    fair = _fairness(store, rows, rules, now)
    total = sum(agent.millicpus for agent in agents) or 1
    pairs = [(row, row.request) for row in rows if row.request]
    return {row.id: _queue_entry(row, request, fair, total) for row, request in [*pairs, *asked]}


def _fairness(store: Store, queued: Sequence[Row], rules: QueueRules, now: float) -> Mapping[str, float]:
    """How little each owner has used; all alike if the site does not weigh it."""
    if not rules.share_weight:
        return {}
    # What is older than ten half-lives counts less than a thousandth.
    use = decayed_use(store.holdings(now - 10 * rules.half_life), rules.half_life, now)
    return fairness(use, {waiting.owner for waiting in queued}, rules)


def _queue_entry(row: Row, request: Request, fair: Mapping[str, float], total: int) -> QueueEntry:
    size = request.size * request.millicpus / total
    return QueueEntry(row.id, row.name, row.priority, row.created, request.demand(), fair.get(row.owner, 1.0), size)
