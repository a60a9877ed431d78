# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A pass over the queue: which sessions fit, why the others wait, and one pass at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import GIB, agent, carried_out, context, request
from store_sessions import memory_store, row_of, running

from ansible_collections.cluster.compute.plugins.module_utils._head.maintenance import keep_pass
from ansible_collections.cluster.compute.plugins.module_utils._head.queue_pass import Round, begin, decide, end
from ansible_collections.cluster.compute.plugins.module_utils._head.scheduler import launch
from ansible_collections.cluster.compute.plugins.module_utils._head.snapshot import Context
from ansible_collections.cluster.compute.plugins.module_utils._head.store import Store
from ansible_collections.cluster.compute.plugins.module_utils._head.transitions import Change, make_change
from ansible_collections.cluster.compute.plugins.module_utils._shared import states
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.decision import Holder
from ansible_collections.cluster.compute.plugins.module_utils._shared.names import ALL_OWNERS
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.policy import (
    STRICT,
    Policy,
    parse_policy,
)

A, NOTHING = agent("a"), agent("a", cpus=0)
KEPT = "%s (room is kept for %s, before it in the queue; schedule.yml launches what fits)"
MINE = Holder(host="controller", user="alice", pid=42, start="1")
OTHER = replace(MINE, pid=43)


def wait_for(store: Store, *requests: dict[str, Any]) -> None:
    """Record sessions in the queue, in this order."""
    for number, variables in enumerate(requests):
        launch(store, request(**variables), context(NOTHING, now=1000.0 + number))


def decided(store: Store, owner: str = "alice", there: Context | None = None, tried: tuple[str, ...] = ()) -> Round:
    return decide(store, owner, tried, there or context(A, now=1100.0))


def names(found: Round) -> list[str]:
    return [row.name for row in found.fitting]


def reasons(found: Round) -> dict[str, str]:
    return {row.name: row.reason for row in found.waiting}


JOBS = [{"name": "job-%d" % number, "cpus": cpus} for number, cpus in enumerate((1, 2, 3, 1))]


def test_one_round_names_all_sessions_that_fit_and_records_why_the_others_wait(store: Store) -> None:
    wait_for(store, *JOBS)
    found = decided(store)
    reason = KEPT % ("a: needs 3 CPUs, 1 free", "job-0, job-1")
    assert (names(found), reasons(found), found.is_last) == (["job-0", "job-1", "job-3"], {"job-2": reason}, False)
    assert (row_of(store, "job-2").reason, row_of(store, "job-2").state) == (reason, states.PENDING)
    assert {row_of(store, name).state for name in names(found)} == {states.PENDING}


def test_a_session_that_was_tried_is_not_tried_again_and_keeps_its_room_and_its_reason(store: Store) -> None:
    wait_for(store, {"name": "first", "cpus": 3}, {"name": "second", "cpus": 2})
    first = row_of(store, "first")
    store.save(replace(first, reason="No port is free"))
    found = decided(store, tried=(first.id,))
    assert (names(found), list(reasons(found)), found.is_last) == ([], ["second"], True)
    assert row_of(store, "first").reason == "No port is free"


def test_sessions_of_other_owners_keep_their_room_and_are_left_to_them(store: Store) -> None:
    wait_for(store, {"name": "of-bob", "owner": "bob", "cpus": 3}, {"name": "of-alice", "cpus": 2})
    before = row_of(store, "of-bob", "bob").reason
    found = decided(store)
    assert (names(found), reasons(found)) == ([], {"of-alice": KEPT % ("a: needs 2 CPUs, 1 free", "of-bob")})
    assert row_of(store, "of-bob", "bob").reason == before
    assert names(decided(store, "bob")) == ["of-bob"]


@pytest.mark.parametrize(
    ("policy", "fitting"), [(Policy(), ["small-job"]), (Policy(STRICT), []), (Policy(age_bound=50.0), [])]
)
def test_strict_and_the_age_bound_hold_back_all_sessions_behind(
    store: Store, policy: Policy, fitting: list[str]
) -> None:
    busy = carried_out([A], running(store, request(name="busy", cpus=2), A))
    wait_for(store, {"name": "big-job", "cpus": 4}, {"name": "small-job"})
    found = decided(store, there=context(*busy, now=1100.0, policy=policy))
    assert names(found) == fitting
    if not fitting:
        assert reasons(found)["small-job"] == "waits behind big-job, which comes first: a: needs 4 CPUs, 2 free"


def test_priority_goes_first(store: Store) -> None:
    wait_for(store, {"name": "early", "cpus": 4}, {"name": "urgent", "cpus": 4, "priority": 50})
    assert names(decided(store)) == ["urgent"]


def test_a_quota_lets_as_many_start_as_it_permits(store: Store) -> None:
    site = parse_policy({"owners": {"alice": {"sessions": 2}}})
    wait_for(store, *({"name": "job-%d" % number, "cpus": 0.5} for number in range(4)))
    found = decided(store, there=context(A, now=1100.0, site=site))
    assert names(found) == ["job-0", "job-1"]
    assert reasons(found)["job-2"].startswith("alice has 2 of the 2 sessions that the policy of this site permits")


def test_what_only_lacks_a_port_waits_and_what_cannot_be_launched_is_left_to_its_launch(store: Store) -> None:
    wait_for(
        store,
        {"name": "no-port", "port_range": "30000-30000"},
        {"name": "no-folder", "mounts": [{"source": "/data", "target": "/data"}]},
    )
    taken = replace(A, ports=(30000,), paths={"/data": False})
    found = decided(store, there=context(taken, now=1100.0))
    assert (names(found), list(reasons(found))) == (["no-folder"], ["no-port"])
    assert reasons(found)["no-port"].startswith("No port is free in 30000-30000")


def test_sessions_that_wait_name_the_time_at_which_they_probably_start(store: Store) -> None:
    busy = carried_out([A], running(store, request(name="busy", cpus=4, lifetime=3600), A, now=1000.0))
    wait_for(store, {"name": "first", "cpus": 4}, {"name": "second", "cpus": 4})
    found = decided(store, there=context(*busy, now=1100.0))
    short = "a: needs 4 CPUs, 0 free"
    assert reasons(found) == {"first": short + "; it starts by 1970-01-01 01:16 UTC", "second": short}


@given(
    st.lists(st.tuples(st.integers(1, 5), st.integers(0, 3), st.booleans()), max_size=7),
    st.sampled_from([Policy(), Policy(STRICT)]),
)
def test_what_fits_in_a_round_is_what_each_session_is_told_alone(
    asked: list[tuple[int, int, bool]], policy: Policy
) -> None:
    """The decision about the whole queue is that of ``schedule`` about each session."""
    jobs = [
        {"name": "job-%d" % index, "cpus": cpus, "priority": priority, "owner": "alice" if is_mine else "bob"}
        for index, (cpus, priority, is_mine) in enumerate(asked)
    ]
    with memory_store() as store:
        wait_for(store, *jobs)
        there = context(agent("a", cpus=6, memory=64 * GIB), now=1100.0, policy=policy)
        with store.transaction(keep=False):
            found = decided(store, there=there)
        for job in jobs:
            with store.transaction(keep=False):
                alone = launch(store, request(**job), there)
            if job["owner"] == "alice":
                assert (alone.outcome == "placed") == (job["name"] in names(found))
                assert alone.outcome == "placed" or alone.reason == reasons(found)[job["name"]]


def test_an_owner_has_one_pass_at_a_time(store: Store) -> None:
    assert begin(store, "alice", MINE, 1000.0, 600.0) is None
    assert begin(store, "alice", OTHER, 1001.0, 600.0) == MINE
    assert begin(store, "bob", OTHER, 1001.0, 600.0) is None
    end(store, "alice", OTHER)
    assert begin(store, "alice", OTHER, 1002.0, 600.0) == MINE
    end(store, "alice", MINE)
    assert begin(store, "alice", OTHER, 1003.0, 600.0) is None


def test_a_pass_whose_controller_is_gone_or_whose_lease_has_run_out_is_taken_over(store: Store) -> None:
    begin(store, "alice", MINE, 1000.0, 600.0)
    keep_pass(store, MINE, 1700.0)
    keep_pass(store, OTHER, 9000.0)
    assert begin(store, "alice", OTHER, 1650.0, 600.0) == MINE
    assert begin(store, "alice", OTHER, 1650.0, 600.0, takeover=True) is None
    assert begin(store, "alice", MINE, 1650.0, 600.0) == OTHER
    assert begin(store, "alice", MINE, 2251.0, 600.0) is None


@pytest.mark.parametrize("owner", ["alice", ALL_OWNERS])
def test_an_end_that_takes_longer_than_the_lease_of_its_pass_extends_it(store: Store, owner: str) -> None:
    """A session may have hours between TERM and KILL: no other pass begins meanwhile."""
    running(store, request(name="slow", grace=3600), A)
    begin(store, owner, MINE, 1000.0, 600.0)
    make_change(store, "terminating", Change("", "slow", "alice", "", "", now=1100.0, lease=600.0, holder=MINE))
    assert begin(store, owner, OTHER, 1100.0 + 600 + 3600, 600.0) == MINE
    assert begin(store, owner, OTHER, 1101.0 + 600 + 3600, 600.0) is None


def test_a_pass_makes_another_round_if_another_command_has_freed_something_meanwhile(store: Store) -> None:
    begin(store, "alice", MINE, 1000.0, 600.0)
    begin(store, "alice", OTHER, 1001.0, 600.0)
    assert not decided(store).is_last
    assert begin(store, "alice", OTHER, 1002.0, 600.0) == MINE
    assert [decided(store).is_last for _round in range(2)] == [False, True]
    assert begin(store, "alice", OTHER, 1200.0, 600.0) is None
