# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Waiting sessions: their order, the resources that are reserved for them, and the end of the wait."""

from __future__ import annotations

from dataclasses import replace

import pytest
from samples import GIB, NEVER, agent, carried_out, context, exactly, request
from store_sessions import row_of, running, turns_of

from ansible_collections.cluster.compute.plugins.module_utils._head.listing import list_sessions
from ansible_collections.cluster.compute.plugins.module_utils._head.scheduler import launch
from ansible_collections.cluster.compute.plugins.module_utils._head.store import Store
from ansible_collections.cluster.compute.plugins.module_utils._shared import states
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import EngineError
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.policy import STRICT, Policy, QueueRules

A, B = agent("a"), agent("b")
TRAIN = request(cluster_size=3)


def test_a_session_waits_and_is_placed_once_it_fits(store: Store) -> None:
    small = agent("a", cpus=2)
    first = launch(store, TRAIN, context(small))
    assert (first.outcome, first.reason, first.is_new) == ("pending", NEVER % "a: needs 3 CPUs, 2 free", True)
    assert (row_of(store).state, row_of(store).reason) == ("PENDING", first.reason)
    second = launch(store, TRAIN, context(small, now=1100.0))
    assert (second.outcome, second.is_new, second.session.id) == ("pending", False, first.session.id)
    third = launch(store, TRAIN, context(A, now=1200.0))
    assert (third.outcome, third.is_new, third.session.id) == ("placed", False, first.session.id)
    assert [note.after for note in store.history(first.session.id)] == ["PENDING", "SCHEDULED", "PREPARING"]


def test_what_no_wait_can_start_is_refused_and_not_recorded(store: Store) -> None:
    """A session that waits already stays in the queue: its agents worked when it was requested."""
    broken = agent("a", reachable=False, may_return=False, reason="The Python library docker is missing; install it.")
    message = "Session train cannot be launched: no agent can hold it: a cannot be reached (%s)." % broken.reason
    with pytest.raises(EngineError, match=exactly(message)), store.transaction():
        launch(store, TRAIN, context(broken))
    assert store.live() == []
    launch(store, TRAIN, context(agent("a", cpus=2)))
    assert launch(store, TRAIN, context(broken)).outcome == "pending"


def test_how_a_waiting_session_is_launched_is_what_was_asked_last(store: Store) -> None:
    launch(store, request(bootstrap_timeout=1200), context(agent("a", cpus=0)))
    assert launch(store, request(bootstrap_timeout=600), context(agent("a", cpus=0))).outcome == "pending"
    [listed] = list_sessions([row_of(store)], [])
    assert listed.request
    assert listed.request["bootstrap_timeout"] == 600


def test_the_queue_keeps_its_order_and_room(store: Store) -> None:
    full = context(agent("a", cpus=0))
    for number, (name, size) in enumerate([("big-job", 3), ("small-job", 2)]):
        assert (
            launch(store, request(name=name, cluster_size=size), replace(full, now=1000.0 + number)).outcome
            == "pending"
        )
    # Four CPUs: the first keeps its three, although the second comes by before it.
    second = request(name="small-job", cluster_size=2)
    waits = launch(store, second, context(A, now=1010.0))
    kept = "a: needs 2 CPUs, 1 free (room is kept for big-job, before it in the queue; schedule.yml launches what fits)"
    assert (waits.outcome, waits.reason) == ("pending", kept)
    assert launch(store, request(name="big-job", cluster_size=3), context(A, now=1011.0)).outcome == "placed"
    assert launch(store, second, context(A, now=1012.0)).outcome == "pending"
    assert launch(store, second, context(agent("a", cpus=5), now=1013.0)).outcome == "placed"


@pytest.mark.parametrize(
    ("policy", "now", "outcome"),
    [
        (Policy(), 1100.0, "placed"),
        (Policy(), 5000.0, "pending"),
        (Policy(age_bound=10000), 5000.0, "placed"),
        (Policy(STRICT), 1100.0, "pending"),
    ],
    ids=["backfill", "past the age bound", "not past it", "strict"],
)
def test_backfill(store: Store, policy: Policy, now: float, outcome: str) -> None:
    running(store, request(name="busy", cluster_size=2), A)
    assert launch(store, request(name="big-job", cluster_size=4), context(A)).outcome == "pending"
    mine = launch(store, request(name="small-job"), context(A, now=now, policy=policy))
    assert mine.outcome == outcome
    if outcome == "pending":
        assert mine.reason == "waits behind big-job, which comes first: a: needs 4 CPUs, 2 free"


def test_priority_goes_first(store: Store) -> None:
    none = agent("a", cpus=0)
    launch(store, request(name="early", cluster_size=4), context(none, now=1000.0))
    urgent = request(name="urgent", cluster_size=4, priority=50)
    launch(store, urgent, context(none, now=1001.0))
    assert launch(store, request(name="early", cluster_size=4), context(A, now=1002.0)).outcome == "pending"
    assert launch(store, urgent, context(A, now=1003.0)).outcome == "placed"


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        (QueueRules(), ["urgent", "early", "large", "late"]),
        (QueueRules(size_weight=800.0), ["large", "urgent", "early", "late"]),
        (QueueRules(share_weight=2000.0), ["late", "urgent", "early", "large"]),
    ],
    ids=["as usual", "large sessions first", "fair shares"],
)
def test_turns_are_in_the_order_of_decisions(store: Store, rules: QueueRules, expected: list[str]) -> None:
    """Of all owners; alice has used all of the agent before, and bob nothing."""
    running(store, request(name="before", cpus=4), A, now=1000.0)
    asked = [
        request(name="early"),
        request(name="large", cluster_size=4),
        request(name="urgent", priority=50),
        request(name="late", owner="bob"),
    ]
    for number, each in enumerate(asked):
        launch(store, each, context(agent("a", cpus=0), now=2000.0 + number))
    found = turns_of(store, [A], rules, 3000.0)
    assert [store.need(identity).name for identity in found] == expected
    first = store.need(found[0]).request
    assert first
    strict = Policy(STRICT, rules=rules)
    assert launch(store, first, context(agent("b"), now=3000.0, policy=strict)).outcome == "placed"


def test_memory_counts_like_cpus(store: Store) -> None:
    waits = launch(store, request(memory="10g", cluster_size=2), context(agent("a", memory=16 * GIB)))
    assert waits.reason == NEVER % "a: needs 20g memory, 16g free"


FOLDER = request(mounts=[{"source": "/data", "target": "/data"}])


def test_a_queued_session_without_its_folder_fails_and_blocks_nothing(store: Store) -> None:
    launch(store, FOLDER, context(agent("a", cpus=0)))
    launch(store, request(name="behind", cluster_size=4), context(agent("a", cpus=0), now=1001.0))
    there = replace(A, paths={"/data": False})
    with store.transaction():
        decision = launch(store, FOLDER, context(there, now=1100.0))
    sentence = (
        "session_mounts: '/data': must exist on every agent of the session; it does not exist or does not answer on a."
    )
    assert (decision.outcome, decision.reason, decision.is_new) == ("failed", sentence, False)
    row = store.need(decision.session.id)
    assert (row.state, row.reason) == ("ERROR", sentence)
    assert launch(store, request(name="behind", cluster_size=4), context(there, now=1101.0)).outcome == "placed"


@pytest.mark.parametrize(
    ("variables", "fields", "reason"),
    [
        (
            {"port_range": "30000-30000"},
            {"ports": (30000,)},
            "No port is free in 30000-30000: end sessions, or enlarge session_port_range",
        ),
        (
            {"network_pool": ["10.9.0.0/27"]},
            {"routes": ("10.9.0.0/24",)},
            "No free /27 is left in the address pool 10.9.0.0/27: end sessions, or enlarge session_network_pool",
        ),
    ],
    ids=["ports", "subnets"],
)
def test_a_queued_session_waits_for_ports_and_subnets_and_keeps_no_room(
    store: Store, variables: dict[str, object], fields: dict[str, object], reason: str
) -> None:
    asked, other = request(**variables), request(name="behind", cluster_size=4)
    launch(store, asked, context(agent("a", cpus=0)))
    launch(store, other, context(agent("a", cpus=0), now=1001.0))
    taken = replace(A, **fields)  # type: ignore[arg-type]
    with store.transaction():
        waits = launch(store, asked, context(taken, now=1100.0))
    assert (waits.outcome, waits.reason, row_of(store).reason) == ("pending", reason, reason)
    assert launch(store, other, context(taken, now=1101.0)).outcome == "placed"
    store.change(row_of(store, "behind"), states.ERROR, 1102.0, "failed")
    assert launch(store, asked, context(A, now=1103.0)).outcome == "placed"


def test_a_session_that_waits_says_when_it_probably_starts(store: Store) -> None:
    """By the second end: the first frees too little, and a session without a limit has no end.

    A command, with its timeout, begins when its session runs, five seconds after the placement.
    """
    four = agent("a", cpus=4)
    first = running(store, request(name="first", lifetime=3600), four, now=1000.0)
    second = running(
        store,
        request(name="second", cpus=2, command="x", command_timeout=7200, terminate_when_done=True),
        *carried_out([four], first),
        now=1000.0,
    )
    there = carried_out([four], first, second)
    waits = launch(store, request(name="waits", cpus=4), context(*there, now=2000.0))
    assert waits.outcome == "pending"
    assert waits.reason == "a: needs 4 CPUs, 1 free; it starts by 1970-01-01 02:16 UTC"
    never = launch(store, request(name="never", cpus=5), context(*there, now=2000.0))
    assert never.reason == NEVER % "a: needs 5 CPUs, 4 free"
