# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""With restart_all, the death of a container restarts all of them: counted once, with growing pauses, up to session_restarts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from samples import agent, carried_out, context, request
from store_sessions import plan_of, row_of, running

from ansible_collections.cluster.compute.plugins.module_utils._head.scheduler import launch
from ansible_collections.cluster.compute.plugins.module_utils._head.session_view import sessions_to_repair
from ansible_collections.cluster.compute.plugins.module_utils._head.store import Store
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.container_view import ContainerView
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.decision import StateChange
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.report import BatchState
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.view import SessionView
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.restarts import RESTARTED, restart_turn

A = agent("a")


def after(*times: float) -> list[StateChange]:
    """A history with restarts at these times."""
    return [
        StateChange(0.0, "", "PENDING", "requested"),
        *(StateChange(time, "RUNNING", "RUNNING", RESTARTED + " (1 of 3)") for time in times),
    ]


@pytest.mark.parametrize(
    ("times", "now", "count", "reason"),
    [
        ((), 100.0, 0, ""),
        ((1000.0,), 1010.0, 1, "the next restart is due in 20 s"),
        ((1000.0,), 1030.0, 1, ""),
        ((1000.0, 1100.0), 1130.0, 2, "the next restart is due in 30 s"),
        ((1000.0, 1100.0), 1160.0, 2, ""),
        ((1000.0, 1100.0, 1200.0), 2000.0, 3, "session_restarts is reached (3); launch it again to restart it"),
        ((1000.0, 1100.0, 1200.0), 4800.0, 0, ""),
        ((1000.0, 1100.0, 4700.0), 4740.0, 1, ""),
        # The clock was set back: nothing waits until it has caught up.
        ((90000.0, 90100.0), 1000.0, 0, ""),
    ],
)
def test_the_turn_of_a_restart(times: tuple[float, ...], now: float, count: int, reason: str) -> None:
    assert restart_turn(after(*times), 3, now) == (count, reason)


def test_all_containers_restart_and_the_history_counts_it_once(store: Store) -> None:
    wanted = request(cluster_size=3, on_failure="restart_all")
    made = running(store, wanted, A)
    reports = carried_out([A], made, states={"sub1": "exited"})
    decision = launch(store, wanted, context(*reports, now=2000.0))
    assert (decision.outcome, decision.restarts_all, decision.missing) == ("repair", True, ("main1", "sub1", "sub2"))
    assert plan_of(decision).containers[1].agent == "a"
    noted = [one.reason for one in store.history(row_of(store).id) if one.reason.startswith(RESTARTED)]
    assert noted == ["all containers restart (1 of 3): sub1 on a ended with exit code 137"]


def test_a_launch_continues_a_paused_container_and_restarts_no_other(store: Store) -> None:
    wanted = request(cluster_size=3, on_failure="restart_all")
    reports = carried_out([A], running(store, wanted, A), states={"sub1": "paused"})
    decision = launch(store, wanted, context(*reports, now=2000.0))
    assert (decision.outcome, decision.restarts_all, decision.missing) == ("repair", False, ("sub1",))


def test_other_sessions_restore_only_what_has_died(store: Store) -> None:
    wanted = request(cluster_size=3, on_failure="restart")
    reports = carried_out([A], running(store, wanted, A), states={"sub1": "exited"})
    decision = launch(store, wanted, context(*reports, now=2000.0))
    assert (decision.restarts_all, decision.missing) == (False, ("sub1",))


@pytest.mark.parametrize(
    ("changes", "heals"),
    [
        ({}, True),
        ({"restart_waits": "the next restart is due in 20 s"}, False),
        ({"command": BatchState(1), "terminate_when_done": True, "restarts_left": 2}, True),
        ({"command": BatchState(1), "terminate_when_done": True, "restarts_left": 0}, False),
        ({"command": BatchState(0), "terminate_when_done": True, "restarts_left": 2}, False),
        ({"on_failure": "keep", "on_lost": "relocate"}, False),
        ({"on_failure": "keep", "on_lost": "relocate", "containers": (ContainerView("sub1", "a", "missing"),)}, True),
    ],
)
def test_a_pass_waits_for_the_turn(changes: dict[str, Any], heals: bool) -> None:
    ill = SessionView(
        id="uuid",
        name="train",
        owner="alice",
        state="RUNNING",
        on_failure="restart_all",
        degraded=("sub1",),
        request={"name": "train"},
        containers=(ContainerView("sub1", "a", "exited", exit_code=137),),
    )
    assert bool(sessions_to_repair([replace(ill, **changes)])) is heals
