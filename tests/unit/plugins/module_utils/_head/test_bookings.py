# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Booked resources of agents, and leftovers of ended sessions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from samples import agent, carried_out, context, request, seen_with
from store_sessions import plan_of, row_of, running

from ansible_collections.cluster.compute.plugins.module_utils._head.maintenance import removable
from ansible_collections.cluster.compute.plugins.module_utils._head.scheduler import launch
from ansible_collections.cluster.compute.plugins.module_utils._head.store import Store
from ansible_collections.cluster.compute.plugins.module_utils._head.usage import capacity_left
from ansible_collections.cluster.compute.plugins.module_utils._shared import states
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.report import AgentReport

A, B = agent("a"), agent("b")
TRAIN = request(cluster_size=3)


def test_bookings_join_engines_and_store_without_counting_twice(store: Store) -> None:
    plan = running(store, TRAIN, A)
    there = carried_out([A, B], plan, states={"sub2": "gone"})
    waiting = plan_of(launch(store, request(name="other"), context(*there)))
    assert waiting.agents == ["a"]
    free = capacity_left(there, store.ends_on(there), store.held_plans())
    assert (free["a"].millicpus, free["b"].millicpus) == (A.capacity.millicpus - 4000, B.capacity.millicpus)


def test_what_an_unknown_session_holds_is_booked(store: Store, tmp_path: Path) -> None:
    elsewhere = Store(str(tmp_path / "elsewhere"))
    plan = running(elsewhere, TRAIN, A)
    elsewhere.close()
    there = carried_out([A], plan, states=dict.fromkeys(["main1", "sub1", "sub2"], "created"))
    waits = launch(store, request(name="other", cluster_size=2), context(*there))
    assert (waits.outcome, waits.reason) == ("pending", "a: needs 2 CPUs, 1 free")


def test_what_an_ended_session_still_holds_is_not_booked_but_removed(store: Store) -> None:
    plan = running(store, request(cluster_size=4), A)
    there = carried_out([A], plan)
    row = row_of(store)
    row = store.change(row, states.TERMINATING, 1100.0, "")
    row = store.change(row, states.TERMINATED, 1101.0, "")
    decision = launch(store, request(name="other", cluster_size=4), context(*there))
    assert (decision.outcome, decision.remove) == ("placed", (plan.session.id,))


def test_a_network_alone_is_a_leftover(store: Store) -> None:
    plan = plan_of(launch(store, TRAIN, context(A)))
    (left,) = carried_out([A], plan, states=dict.fromkeys(["main1", "sub1", "sub2"], "gone"))
    assert left.containers == ()
    assert removable(store, [left]) == ()
    store.change(row_of(store), states.ERROR, 1001.0, "failed")
    assert removable(store, [left, B]) == (plan.session.id,)
    assert removable(store, [B]) == ()


def test_nothing_of_an_unknown_session_is_removed(store: Store, tmp_path: Path) -> None:
    elsewhere = Store(str(tmp_path / "elsewhere"))
    there = carried_out([A], running(elsewhere, TRAIN, A))
    elsewhere.close()
    assert removable(store, there) == ()


def test_what_was_launched_after_an_end_is_neither_removed_nor_free(store: Store, tmp_path: Path) -> None:
    """A second store repairs a session that this store has ended meanwhile: the session runs, and holds its room."""
    launched = running(store, TRAIN, A)
    theirs = Store(str(tmp_path / "theirs"))
    degraded = carried_out([A], launched, states={"sub2": "gone"})
    assert launch(theirs, TRAIN, context(*degraded)).outcome == "repair"
    row = row_of(store)
    row = store.change(row, states.TERMINATING, 1100.0, "")
    row = store.change(row, states.TERMINATED, 1101.0, "")
    again = launch(theirs, TRAIN, context(A, now=1800.0))
    theirs.close()
    assert (again.outcome, again.missing) == ("repair", ("main1", "sub1", "sub2"))
    repaired = at(carried_out([A], plan_of(again)), 1900.0)
    decision = launch(store, request(name="other", cluster_size=2), context(*repaired, now=2000.0))
    assert (decision.outcome, decision.reason, decision.remove) == ("pending", "a: needs 2 CPUs, 1 free", ())
    assert removable(store, repaired) == ()


def test_the_clock_of_an_agent_does_not_keep_what_this_store_has_launched(store: Store) -> None:
    plan = running(store, TRAIN, A)
    repair = plan_of(launch(store, TRAIN, context(*carried_out([A], plan, states={"sub2": "gone"}), now=1050.0)))
    row = row_of(store)
    row = store.change(row, states.TERMINATING, 1100.0, "")
    row = store.change(row, states.TERMINATED, 1101.0, "")
    for launched in (plan, repair):
        assert removable(store, at(carried_out([A], launched), 9000.0)) == (plan.session.id,)


def at(agents: Iterable[AgentReport], created: float) -> tuple[AgentReport, ...]:
    """The agents, whose clocks say that all containers were created at this time."""
    return tuple(
        replace(one, containers=tuple(seen_with(each, created=created) for each in one.containers)) for one in agents
    )
