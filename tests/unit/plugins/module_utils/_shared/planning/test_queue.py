# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import GIB, NEVER, agent, request

from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import Resources
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.report import AgentReport
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning import queue
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.capacity import Demand, PerContainer
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.placement import (
    Placement,
    Shortfall,
    free_of,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.policy import BACKFILL, STRICT, Policy
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.queue import (
    QueueEntry,
    by_priority,
    schedule,
)

CPU = PerContainer(1000, GIB)
NOW = 10000.0
AGENT = agent("a", cpus=8)


def waiting(
    name: str, size: int = 1, priority: int = 10, since: float = NOW - 10, group: str = "default"
) -> QueueEntry:
    return QueueEntry("id-" + name, name, priority, since, Demand(size, CPU, group=group))


def turn(
    mine: QueueEntry,
    *queue: QueueEntry,
    used: int = 0,
    policy: Policy | None = None,
    agents: tuple[AgentReport, ...] = (AGENT,),
) -> Placement | Shortfall:
    free = {one.name: free_of(one, [Resources(used * 1000, used * GIB)]) for one in agents}
    turns = schedule([*queue, mine], agents, free, policy or Policy(), NOW, lambda one, _placed: one.name != "stuck")
    return next(outcome for entry, outcome in turns if entry.id == mine.id)


def test_priority_first_then_first_come() -> None:
    early, late, urgent = waiting("early", since=1), waiting("late", since=2), waiting("urgent", priority=20, since=3)
    tie = QueueEntry("id-a", "tie", 10, 2, early.demand)
    assert by_priority([late, tie, urgent, early]) == [urgent, early, tie, late]


KEPT = " (room is kept for %s, before it in the queue; schedule.yml launches what fits)"
SMALL, BIG = waiting("small", 2), waiting("big", 6, since=NOW - 20)


@pytest.mark.parametrize(
    ("queue", "used", "policy", "expected"),
    [
        pytest.param([], 0, None, "", id="alone"),
        pytest.param([], 7, None, "a: needs 2 CPUs, 1 free", id="alone and too big"),
        pytest.param([BIG], 0, None, "", id="behind one that fits, with room for both"),
        pytest.param([BIG], 1, None, "a: needs 2 CPUs, 1 free" + KEPT % "big", id="one ahead that fits keeps its room"),
        pytest.param(
            [waiting("stuck", 8, since=1)], 0, Policy(STRICT), "", id="one ahead that cannot start holds nothing"
        ),
        pytest.param([BIG], 4, None, "", id="backfill: one ahead that does not fit is passed by"),
        pytest.param(
            [BIG],
            4,
            Policy(STRICT),
            "waits behind big, which comes first: a: needs 6 CPUs, 4 free",
            id="strict: it is not",
        ),
        pytest.param(
            [BIG],
            4,
            Policy(BACKFILL, age_bound=15),
            "waits behind big, which comes first: a: needs 6 CPUs, 4 free",
            id="backfill: not past the age bound either",
        ),
        pytest.param([BIG], 4, Policy(BACKFILL, age_bound=20), "", id="just as old as the bound is not past it"),
        pytest.param(
            [waiting("late", 8, priority=20, since=NOW)],
            0,
            None,
            "a: needs 2 CPUs, 0 free" + KEPT % "late",
            id="a higher priority goes first, however late",
        ),
        pytest.param(
            [waiting("job%d" % number, since=number) for number in range(1, 6)],
            2,
            None,
            "a: needs 2 CPUs, 1 free" + KEPT % "job1, job2, job3 and 2 more",
            id="many ahead keep their room",
        ),
        pytest.param(
            [waiting("one", since=1)],
            7,
            None,
            "a: needs 2 CPUs, 1 free",
            id="a session that does not fit alone names no others",
        ),
        pytest.param([waiting("later", 8, since=NOW)], 0, Policy(STRICT), "", id="those behind do not matter"),
        pytest.param([waiting("elsewhere", 8, since=1, group="gpu")], 0, Policy(STRICT), "", id="nor do other groups"),
        pytest.param(
            [waiting("never", 9, since=1)], 4, Policy(STRICT), "", id="a session that never fits blocks nothing: strict"
        ),
        pytest.param(
            [waiting("never", 9, since=1)],
            4,
            Policy(BACKFILL, age_bound=15),
            "",
            id="a session that never fits blocks nothing: age",
        ),
    ],
)
def test_whose_turn_it_is(queue: list[QueueEntry], used: int, policy: Policy | None, expected: str) -> None:
    result = turn(SMALL, *queue, used=used, policy=policy)
    assert (result.reason if isinstance(result, Shortfall) else "") == expected


ROLES = [{"name": "ps", "size": 1, "cpus": 1}, {"name": "worker", "size": 2, "cpus": 5}]


@pytest.mark.parametrize("policy", [Policy(), Policy(STRICT), Policy(BACKFILL, age_bound=15)])
@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"cluster_size": 3, "cpus": 3}, "a: needs 9 CPUs, 8 free"),
        ({"cluster_size": 3, "cpus": 4, "cluster_mode": "multi-node"}, "a: needs 12 CPUs, 8 free"),
        (
            {"cluster_size": 3, "cpus": 4, "cluster_mode": "multi-node", "strategy": "spread"},
            "a: needs 12 CPUs, 8 free",
        ),
        ({"cpus": 9, "agents": ["a"], "agents_policy": "strict"}, "a: needs 9 CPUs, 8 free"),
        ({"roles": ROLES}, "role worker: a: needs 10 CPUs, 8 free"),
        ({"roles": ROLES, "cluster_mode": "multi-node"}, "role worker: a: needs 10 CPUs, 8 free"),
    ],
)
def test_what_no_agent_can_hold_says_so_wherever_it_is_in_the_queue(
    asked: dict[str, object], reason: str, policy: Policy
) -> None:
    """It blocks nothing, waits behind nothing, and another agent starts it."""
    demand = request(**asked).demand()
    giant = QueueEntry("id-giant", "giant", 10, NOW - 20, demand)
    for used in (0, 7):
        waits = turn(giant, waiting("first", 4, since=1), used=used, policy=policy)
        assert waits == Shortfall(NEVER % reason, is_impossible=True)
    assert isinstance(turn(waiting("mine", 1), giant, policy=policy), Placement)
    assert isinstance(turn(giant, agents=(AGENT, agent("b", cpus=16)), policy=policy), Placement) == (
        asked.get("agents_policy") != "strict"
    )


@given(
    st.lists(st.tuples(st.integers(1, 6), st.integers(0, 3), st.integers(0, 100)), max_size=6),
    st.sampled_from([Policy(), Policy(STRICT), Policy(BACKFILL, age_bound=50)]),
)
def test_all_sessions_whose_turn_it_is_fit_at_once(numbers: list[tuple[int, int, int]], policy: Policy) -> None:
    """All sessions whose turn has come can be launched in any order: none takes the resources of another."""
    queue = [waiting("job%d" % index, size, priority, NOW - age) for index, (size, priority, age) in enumerate(numbers)]
    going = [one for one in queue if isinstance(turn(one, *queue, policy=policy), Placement)]
    assert sum(one.demand.size for one in going) <= 8
    if queue:
        assert by_priority(queue)[0] in going


def test_groups_that_share_an_agent_share_its_queue() -> None:
    """A session of group gpu keeps its room on the agent that is in both groups from one of group cpu."""
    both, other = agent("a", cpus=4, group="cpu,gpu"), agent("b", cpus=4, group="tpu")
    first, mine = waiting("first", 4, since=NOW - 20, group="gpu"), waiting("mine", 1, group="cpu")
    behind = turn(mine, first, agents=(both, other))
    assert behind == Shortfall("a: needs 1 CPUs, 0 free" + KEPT % "first")
    assert isinstance(turn(mine, waiting("far", 4, since=NOW - 20, group="tpu"), agents=(both, other)), Placement)


def test_a_decision_empties_the_agents_once_for_all_requests_that_do_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A queue of different requests would empty each agent for each of them."""
    counted = Mock(wraps=queue.emptied)
    monkeypatch.setattr(queue, "emptied", counted)
    giants = [waiting(f"giant{number}", 9 + number) for number in range(5)]
    assert isinstance(turn(giants[-1], *giants[:-1]), Shortfall)
    assert counted.call_count == 1
