# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Changes of state of sessions whose containers are on agents: what is left there, taken over or noted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from samples import agent, carried_out, context, request

from ansible_collections.cluster.compute.plugins.module_utils._head.maintenance import adopt
from ansible_collections.cluster.compute.plugins.module_utils._head.scheduler import launch
from ansible_collections.cluster.compute.plugins.module_utils._head.session_record import SessionRecord
from ansible_collections.cluster.compute.plugins.module_utils._head.store import Store
from ansible_collections.cluster.compute.plugins.module_utils._head.transitions import Change, make_change
from ansible_collections.cluster.compute.plugins.module_utils._shared import states
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.decision import Holder
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import Plan
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.report import AgentReport

BOB = Holder(host="controller", user="bob", pid=7, start="2")


def change(store: Store, what: str, **fields: Any) -> tuple[str, SessionRecord | None]:
    blank = Change(id="id", name="", owner="", reason="", result="", now=2000.0, lease=600.0, holder=BOB)
    return make_change(store, what, replace(blank, **fields))


A, B = agent("a"), agent("b")
WIDE = request(cluster_size=6, cluster_mode="multi-node")
LEFT_ON_B = "not reached: b; what it holds is removed when it is back"


@pytest.mark.parametrize(
    ("reached", "reason"),
    [
        (("a", "b", "z"), "every container is removed"),
        (("a", "z"), "not reached: b; what it holds is removed when it is back"),
        ((), "not reached: a, b; what it holds is removed when it is back"),
    ],
    ids=["all", "one is left out or gone from the inventory", "none"],
)
def test_agents_that_were_not_reached_are_named(store: Store, reached: tuple[str, ...], reason: str) -> None:
    row = store.need(launch(store, WIDE, context(A, B)).session.id)
    change(store, "terminating", id=row.id)
    change(store, "terminated", id=row.id, reached=reached)
    assert store.need(row.id).reason == reason


def test_the_lease_of_an_end_covers_the_grace_of_the_containers(store: Store) -> None:
    """Another controller must not take a slow end for lost, and launch a session of that name beside its containers."""
    row = store.need(launch(store, request(grace=3600), context(A)).session.id)
    change(store, "terminating", id=row.id)
    assert store.need(row.id).lease == 2000.0 + 3600 + 600


def adopted(store: Store, tmp_path: Path) -> tuple[SessionRecord, tuple[AgentReport, ...]]:
    lost = Store(str(tmp_path / "lost"))
    outcome = launch(lost, WIDE, context(A, B))
    lost.close()
    assert isinstance(outcome.plan, Plan)
    there = carried_out([A, B], outcome.plan)
    adopt(store, there, 1000.0)
    return store.need(outcome.session.id), there


def test_a_session_of_a_lost_store_is_ended_from_its_labels(store: Store, tmp_path: Path) -> None:
    row, there = adopted(store, tmp_path)
    store.forget(row)
    before, ended = change(store, "terminating", id="", name="train", owner="alice", agents=there)
    assert ended is not None
    assert (before, ended.id, ended.state) == (states.RUNNING, row.id, "TERMINATING")


@pytest.mark.parametrize(
    ("seen", "reason"),
    [
        (lambda there: there, LEFT_ON_B),
        (lambda there: there[:1], LEFT_ON_B),
        (lambda there: [replace(one, containers=()) for one in there], LEFT_ON_B),
        (lambda there: [replace(there[0], containers=())], "every container is removed"),
    ],
    ids=["both are asked", "one is left out", "neither holds a container", "nothing is known of another"],
)
def test_what_an_adopted_session_may_have_left_is_named(
    store: Store, tmp_path: Path, seen: Callable[[tuple[AgentReport, ...]], tuple[AgentReport, ...]], reason: str
) -> None:
    row, there = adopted(store, tmp_path)
    change(store, "terminating", id=row.id, agents=there)
    change(store, "terminated", id=row.id, agents=seen(there), reached=("a",))
    assert store.need(row.id).reason == reason


@pytest.mark.parametrize(
    ("lost", "fields", "result"),
    [
        ("sub1", {"on_failure": "terminate"}, "FAILURE"),
        ("sub1", {"on_failure": "keep"}, ""),
        ("sub1", {"command": "train"}, ""),
        ("main1", {"command": "train"}, "FAILURE"),
    ],
)
def test_a_dead_container_is_noted_before_the_end(store: Store, lost: str, fields: dict[str, Any], result: str) -> None:
    outcome = launch(store, request(cluster_size=6, cluster_mode="multi-node", **fields), context(A, B))
    assert isinstance(outcome.plan, Plan)
    row = store.need(outcome.session.id)
    row = store.change(row, "RUNNING", 1001.0, "on its way")
    there = carried_out([A, B], outcome.plan, states={lost: "exited"})
    change(store, "terminating", id=row.id, agents=there)
    where = next(one.agent for one in outcome.plan.containers if one.hostname == lost)
    noted = [one.reason for one in store.history(row.id) if one.before == one.after]
    assert noted == [f"{lost} on {where} ended with exit code 137"]
    assert store.need(row.id).result == result


@pytest.mark.parametrize("late", ["running", "failed"])
def test_a_repair_that_was_overtaken_changes_nothing(store: Store, late: str) -> None:
    """A repair whose lease expired does not change the holder and lease of the repair that took over."""
    asked = request(cluster_size=3)
    first = launch(store, asked, context(A))
    store.change(store.need(first.session.id), "RUNNING", 1001.0, "on its way")
    assert first.plan is not None
    there = carried_out([A], first.plan, states={"sub1": "gone"})
    slow, other = (launch(store, asked, context(*there, now=now, holder=BOB)) for now in (2000.0, 2700.0))
    assert slow.plan is not None
    assert other.plan is not None
    before = store.need(first.session.id)
    seen, row = change(store, late, id=before.id, launch=slow.plan.session.launch, reason="It did not answer.")
    assert (seen, row) == ("RUNNING", before)
    assert store.need(before.id) == before
    assert (before.holder, before.lease) == (BOB, 3300.0)
    change(store, late, id=before.id, launch=other.plan.session.launch, reason="It did not answer.")
    assert (store.need(before.id).holder, store.need(before.id).lease) == (None, 0.0)


def test_a_session_that_is_ended_with_a_paused_container_has_not_failed(store: Store) -> None:
    wanted = request(cluster_size=2, on_failure="terminate")
    row = store.need(launch(store, wanted, context(A)).session.id)
    change(store, "running", id=row.id)
    assert row.plan is not None
    change(store, "terminating", id=row.id, agents=tuple(carried_out([A], row.plan, states={"sub1": "paused"})))
    assert store.need(row.id).result == ""
