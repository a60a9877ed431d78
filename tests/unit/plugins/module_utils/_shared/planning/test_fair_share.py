# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ledger and the order of the queue: shares, half-lives, and every month to its owner."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.fair_share import (
    Holding,
    decayed_use,
    fairness,
    score,
    usage,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.policy import QueueRules
from ansible_collections.cluster.compute.plugins.module_utils._shared.text.table import usage_csv, usage_lines

HOUR, DAY = 3600.0, 86400.0
GIB = 1 << 30
NOVEMBER = 1793491200.0  # 2026-11-01T00:00:00Z


def held(owner: str = "alice", began: float = NOVEMBER, hours: float | None = 1.0, **more: float) -> Holding:
    ended = None if hours is None else began + hours * HOUR
    return Holding(
        "%s-%s" % (owner, began), owner, began, ended, int(more.get("cpus", 1) * 1000), GIB, more.get("gpus", 0.0)
    )


def test_a_session_over_the_end_of_a_month_counts_in_both() -> None:
    found = usage([held(began=NOVEMBER - HOUR, hours=3.0, cpus=2, gpus=0.5)], {"lab": ["alice"]}, NOVEMBER + DAY)
    assert [
        (one["month"], one["kind"], one["cpu_hours"], one["memory_gib_hours"], one["gpu_hours"]) for one in found
    ] == [
        ("2026-10", "owner", 2.0, 1.0, 0.5),
        ("2026-10", "group", 2.0, 1.0, 0.5),
        ("2026-11", "owner", 4.0, 2.0, 1.0),
        ("2026-11", "group", 4.0, 2.0, 1.0),
    ]


def test_tables_for_people_and_programs() -> None:
    found = usage([held(), held("bob", hours=None)], {}, NOVEMBER + 2 * HOUR)
    assert usage_lines(found) == [
        "MONTH    KIND   NAME   SESSIONS  CPU HOURS  MEMORY GIB HOURS  GPU HOURS",
        "2026-11  owner  alice  1         1.0        1.0               0.0",
        "2026-11  owner  bob    1         2.0        2.0               0.0",
    ]
    assert usage_csv(found).splitlines()[:2] == [
        "month,kind,name,sessions,cpu_hours,memory_gib_hours,gpu_hours",
        "2026-11,owner,alice,1,1.0,1.0,0.0",
    ]


TIMES = st.floats(NOVEMBER - 100 * DAY, NOVEMBER + 100 * DAY)
HOLDINGS = st.lists(
    st.builds(
        held,
        owner=st.sampled_from(["alice", "bob", "carol"]),
        began=TIMES,
        hours=st.one_of(st.none(), st.floats(0, 3000)),
        cpus=st.integers(1, 64),
        gpus=st.sampled_from([0.0, 0.25, 1.0, 8.0]),
    ),
    max_size=20,
)


@settings(max_examples=200, deadline=None)
@given(HOLDINGS)
def test_the_months_add_up_to_all_that_was_held(holdings: list[Holding]) -> None:
    now = NOVEMBER + 300 * DAY
    found = usage(holdings, {}, now)
    for owner in ("alice", "bob", "carol"):
        own = [one for one in holdings if one.owner == owner]
        exact = sum(one.millicpus / 1000 * one.seconds(now) for one in own) / HOUR
        assert sum(one["cpu_hours"] for one in found if one["name"] == owner) == pytest.approx(exact, abs=0.1)


@settings(max_examples=200, deadline=None)
@given(HOLDINGS, st.floats(HOUR, 100 * DAY))
def test_use_fades_by_half_in_a_half_life(holdings: list[Holding], half_life: float) -> None:
    now = NOVEMBER + 300 * DAY
    ended = [one for one in holdings if one.ended is not None]
    before, after = decayed_use(ended, half_life, now), decayed_use(ended, half_life, now + half_life)
    for owner, use in before.items():
        assert after[owner] == pytest.approx(use / 2, rel=1e-6, abs=1e-6)


def test_use_is_the_integral_of_what_was_held() -> None:
    """Without forgetting, an hour of a CPU is 3600 CPU-seconds; a GPU counts as ten CPUs."""
    holdings = [held(), held("bob", gpus=1.0)]
    use = decayed_use(holdings, 1e9 * DAY, NOVEMBER + 2 * HOUR)
    assert use == {"alice": pytest.approx(3600, rel=1e-3), "bob": pytest.approx(36000, rel=1e-3)}


def test_the_factor_of_a_share() -> None:
    rules = QueueRules(shares={"alice": 3.0})
    assert fairness({}, ["alice"], rules) == {"alice": 1.0}
    found = fairness({"alice": 75.0, "bob": 25.0}, ["alice"], rules)
    assert found == {"alice": 0.5, "bob": 0.5}, "both have used what their shares are"
    assert fairness({"alice": 100.0}, ["alice", "bob"], rules)["bob"] == 1.0


def test_without_weights_the_order_is_priority_then_time() -> None:
    rules = QueueRules()
    assert score(11, 0.0, 0.0, 0.0, rules) > score(10, 1e9, 1.0, 1.0, rules)
    assert score(10, 60.0, 0.0, 0.0, rules) > score(10, 59.0, 1.0, 1.0, rules)


def _simulated(seed: int, jobs: int) -> tuple[dict[str, float], float]:
    """One CPU for a queue that is never empty: what each owner held of it, and the longest wait in job lengths."""
    source = random.Random(seed)
    rules = QueueRules(share_weight=1000.0, half_life=2000.0, shares={"alice": 4.0, "bob": 2.0, "carol": 1.0})
    use = dict.fromkeys(rules.shares, 0.0)
    held_for = dict.fromkeys(rules.shares, 0.0)
    last = dict.fromkeys(rules.shares, 0.0)
    now, longest = 0.0, 0.0
    for _job in range(jobs):
        fair = fairness(use, use, rules)
        owner = max(sorted(fair), key=lambda one: score(10, now - last[one], fair[one], 0.0, rules))
        seconds = source.uniform(5.0, 15.0)
        longest = max(longest, (now - last[owner]) / 10.0)
        use = {one: amount * 0.5 ** (seconds / rules.half_life) for one, amount in use.items()}
        use[owner] += seconds
        now += seconds
        held_for[owner] += seconds
        last[owner] = now
    return {owner: amount / now for owner, amount in held_for.items()}, longest


def test_a_hundred_queues_of_a_thousand_jobs_keep_their_shares_and_no_owner_starves() -> None:
    wanted = {"alice": 4 / 7, "bob": 2 / 7, "carol": 1 / 7}
    for seed in range(100):
        found, longest = _simulated(seed, 1000)
        for owner, share in wanted.items():
            assert found[owner] == pytest.approx(share, rel=0.05), (seed, found)
        assert longest < 30
