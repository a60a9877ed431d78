# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ledger equals what was booked over time, and shares of it decide the order of the queue."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import agent, context, request
from store_sessions import memory_store, row_of, running

from ansible_collections.cluster.compute.plugins.module_utils._head.scheduler import launch
from ansible_collections.cluster.compute.plugins.module_utils._head.store import Store
from ansible_collections.cluster.compute.plugins.module_utils._shared import states
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.policy import Policy, QueueRules
from ansible_collections.cluster.compute.plugins.module_utils._steps.step import Head
from ansible_collections.cluster.compute.plugins.module_utils._steps.store import usage

A = agent("a", cpus=8, memory=64 << 30)
STEPS = st.lists(
    st.tuples(st.sampled_from(["launch", "end", "fail", "again"]), st.integers(1, 4), st.floats(0, 5000)),
    min_size=1,
    max_size=15,
)


def _step(store: Store, what: str, number: int, size: int, now: float) -> None:
    live = store.live(states.HOLDING)
    if what == "launch" or not live:
        launch(
            store,
            request(name="job-%d" % number, owner="owner%d" % (number % 3), cluster_size=size),
            context(A, now=now),
        )
        return
    row = live[size % len(live)]
    if what == "fail" and row.state == states.PREPARING:
        row = store.change(row, states.ERROR, now, "failed")
    elif what == "again" and row.state == states.PREPARING:
        row = store.change(row, states.PENDING, now, "its port was taken")
    else:
        row = store.change(row, states.TERMINATING, now, "ended")
        row = store.change(row, states.TERMINATED, now, "ended")


@settings(max_examples=40, deadline=None)
@given(STEPS)
def test_the_ledger_is_the_integral_of_what_was_booked(steps: list[tuple[str, int, float]]) -> None:
    now, booked = 1000.0, 0.0
    with memory_store() as store:
        for number, (what, size, seconds) in enumerate(steps):
            with store.transaction():
                _step(store, what, number, size, now)
            cpus = sum(one.resources.millicpus for plan in store.held_plans() for one in plan.containers) / 1000
            booked += cpus * seconds
            now += seconds
        ledger = sum(one.millicpus / 1000 * one.seconds(now) for one in store.holdings())
    assert ledger == pytest.approx(booked, rel=1e-9, abs=1e-6)


def test_an_owner_who_has_used_less_comes_first(store: Store) -> None:
    running(store, request(name="before", cpus=8), A, now=1000.0)
    fair = {"policy": Policy("strict", rules=QueueRules(share_weight=1000.0))}
    mine = launch(store, request(name="mine", cpus=8), context(A, now=2000.0, **fair))
    theirs = launch(store, request(name="theirs", owner="bob", cpus=8), context(A, now=2001.0, **fair))
    assert (mine.outcome, theirs.outcome) == ("pending", "pending")
    row = store.find("before", "alice")
    assert row
    row = store.change(row, states.TERMINATING, 3000.0, "")
    row = store.change(row, states.TERMINATED, 3000.0, "")
    again = launch(store, request(name="mine", cpus=8), context(A, now=3001.0, **fair))
    assert "room is kept for theirs, before it in the queue" in again.reason
    assert (
        launch(store, request(name="theirs", owner="bob", cpus=8), context(A, now=3002.0, **fair)).outcome == "placed"
    )


def test_the_ledger_stays_when_the_history_of_a_session_goes(store: Store) -> None:
    running(store, request(), A)
    row = store.find("train", "alice")
    assert row
    row = store.change(row, states.TERMINATING, 4600.0, "")
    row = store.change(row, states.TERMINATED, 4600.0, "")
    store.forget(row)
    [held] = store.holdings()
    assert (held.owner, held.seconds(9e9)) == ("alice", 3600.0)


@pytest.mark.parametrize(
    ("month", "months"),
    [(None, ["1970-01", "1970-02"]), ("1970-02", ["1970-02"]), ("1970-03", [])],
)
def test_the_use_of_a_month_is_the_same_in_all_formats(tmp_path: Path, month: str | None, months: list[str]) -> None:
    """The session holds its CPUs over the end of a month."""
    with closing(Store(str(tmp_path / "state"))) as store:
        running(store, request(), A)
        row = row_of(store)
        row = store.change(row, states.TERMINATING, 40 * 86400.0, "")
        row = store.change(row, states.TERMINATED, 40 * 86400.0, "")
    found = usage(Head(str(tmp_path / "state")), "alice", month)
    table = [line.split()[0] for line in found["lines"][1:]]
    assert [one["month"] for one in found["usage"]] == table == [line[:7] for line in found["csv"].splitlines()[1:]]
    assert table == months
    assert months or found["lines"] == [f"No session has held anything in {month}."]
