# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from samples import GIB, NEVER, agent, carried_out, context, request, seen_with, with_apps

from ansible_collections.cluster.compute.plugins.module_utils._head.listing import list_agents, list_sessions
from ansible_collections.cluster.compute.plugins.module_utils._head.maintenance import adopt
from ansible_collections.cluster.compute.plugins.module_utils._head.scheduler import launch
from ansible_collections.cluster.compute.plugins.module_utils._head.session_view import (
    finished_sessions,
    sessions_to_repair,
)
from ansible_collections.cluster.compute.plugins.module_utils._head.store import Store
from ansible_collections.cluster.compute.plugins.module_utils._head.usage import held_on
from ansible_collections.cluster.compute.plugins.module_utils._shared import states
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.decision import Holder
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import Plan
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.report import AgentReport
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.schema import fault, rules_of
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.usage import Amounts
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.view import SessionView
from ansible_collections.cluster.compute.plugins.module_utils._steps import sessions
from ansible_collections.cluster.compute.plugins.module_utils._steps.step import Head
from ansible_collections.cluster.compute.plugins.plugin_utils._output.lists import state_column

A, B = agent("a"), agent("b", gpus=["x"])
WIDE = request(cluster_size=6, cluster_mode="multi-node")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(str(tmp_path / "state"))
    yield opened
    opened.close()


def running(store: Store) -> Plan:
    outcome = launch(store, WIDE, context(A, B))
    store.change(store.need(outcome.session.id), states.RUNNING, 1005.0, "every container is verified")
    assert outcome.plan is not None
    return outcome.plan


def listed(store: Store, *agents: AgentReport) -> SessionView:
    (session,) = list_sessions(store.select(None, None, ended=True), agents)
    return session


def conditions(session: SessionView) -> dict[str, str]:
    return {one.hostname: one.state for one in session.containers}


def test_a_list_of_sessions_that_wait_looks_at_the_containers_of_agents_once(store: Store) -> None:
    for number in range(20):
        launch(store, request(name=f"waits-{number}", cpus=5), context(replace(A, reachable=False), B))
    looks: list[None] = []

    class Counted(tuple):  # type: ignore[type-arg]
        def __iter__(self) -> Iterator[object]:
            looks.append(None)
            return super().__iter__()

    found = list_sessions(store.live({states.PENDING}), [replace(A, containers=Counted(()))])
    assert ([one.containers for one in found], len(looks)) == ([()] * 20, 1)


def test_a_running_session(store: Store) -> None:
    plan = running(store)
    session = listed(store, *carried_out([A, B], plan))
    assert (session.name, session.state, session.size, session.mode) == (
        "train",
        "RUNNING",
        6,
        "multi-node",
    )
    assert (session.agents, session.degraded, session.request) == (("a", "b"), (), None)
    assert session.each.millicpus == 1000
    assert conditions(session) == {one.hostname: "running" for one in plan.containers}
    assert [one.rank for one in session.containers] == list(range(6))
    assert [note.after for note in session.history] == ["PENDING", "SCHEDULED", "PREPARING", "RUNNING"]


def test_a_degraded_session_names_what_it_is_without(store: Store) -> None:
    there = carried_out([A, B], running(store), states={"sub1": "gone", "sub2": "exited"})
    session = listed(store, there[0], replace(there[1], reachable=False, containers=()))
    assert session.degraded == ("sub1", "sub2", "sub4", "sub5")
    assert [conditions(session)[name] for name in ("main1", "sub1", "sub2", "sub4")] == [
        "running",
        "missing",
        "exited",
        "unknown",
    ]
    exited = next(one for one in session.containers if one.hostname == "sub2")
    assert (exited.exit_code, exited.oom_killed) == (137, False)


@pytest.mark.parametrize("on_failure", ["terminate", "restart", "restart_all"])
def test_a_paused_container_is_no_loss(store: Store, on_failure: str) -> None:
    """The user goes on with it: a pass neither ends the session, nor repairs it, nor restarts the other containers."""
    decision = launch(store, request(cluster_size=3, on_failure=on_failure), context(A))
    store.change(store.need(decision.session.id), states.RUNNING, 1005.0, "every container is verified")
    assert decision.plan is not None
    session = listed(store, *carried_out([A], decision.plan, states={"sub1": "paused"}))
    assert (finished_sessions([session]), sessions_to_repair([session])) == ([], [])
    assert (session.degraded, state_column(session)) == ((), "RUNNING (paused)")
    assert session.what_happened.startswith("sub1 on a is paused; `docker unpause` lets it go on")


@pytest.mark.parametrize(("on_failure", "heals"), [("terminate", 0), ("restart", 1), ("restart_all", 1)])
def test_a_container_that_was_detached_is_repaired_and_ends_no_session(
    store: Store, on_failure: str, heals: int
) -> None:
    asked = request(cluster_size=3, on_failure=on_failure)
    decision = launch(store, asked, context(A))
    store.change(store.need(decision.session.id), states.RUNNING, 1005.0, "every container is verified")
    assert decision.plan is not None
    (there,) = carried_out([A], decision.plan)
    apart = [
        seen_with(one, network="", address="", published=[]) if one.hostname == "sub1" else one
        for one in there.containers
    ]
    session = listed(store, replace(there, containers=tuple(apart)))
    assert (len(finished_sessions([session])), len(sessions_to_repair([session]))) == (0, heals)
    assert (session.degraded, state_column(session)) == (("sub1",), "RUNNING (degraded)")
    assert session.what_happened.startswith(
        "sub1 on a is not on the network of the session; run cluster_session.yml again"
    )
    again = launch(store, asked, context(replace(there, containers=tuple(apart)), now=1010.0))
    assert (again.outcome, again.missing, again.restarts_all) == ("repair", ("sub1",), False)


def test_an_app_or_a_command_that_has_failed_makes_a_session_unhealthy(store: Store) -> None:
    there = carried_out([A, B], running(store))
    assert listed(store, *there).unhealthy == ()
    failed, back = (
        {"name": "web", "state": "failed", "exit_code": 3},
        {"name": "lab", "state": "ready", "exit_code": None},
    )
    down = with_apps(there, failed, back)
    assert (listed(store, *down).unhealthy, listed(store, *down).degraded) == (("app web",), ())
    main = down[0].containers[0]
    batch = {"exit_code": 1, "oom_killed": False, "reason": "", "begun": True}
    both = replace(down[0], containers=(seen_with(main, batch=batch), *down[0].containers[1:]))
    assert listed(store, both, down[1]).unhealthy == ("app web", "command")
    sub = down[0].containers[1]
    role = replace(
        down[0],
        containers=(down[0].containers[0], seen_with(sub, batch=batch), *down[0].containers[2:]),
    )
    shown = listed(store, role, down[1])
    assert (shown.unhealthy, shown.command) == (("app web", "command of sub1"), None)


def test_an_agent_cannot_make_a_list_be_refused_by_a_long_text(store: Store) -> None:
    there = carried_out([A, B], running(store))
    batch = {"exit_code": 1, "oom_killed": False, "reason": "x" * (1 << 20), "begun": True}
    main = seen_with(there[0].containers[0], batch=batch)
    shown = listed(store, replace(there[0], containers=(main, *there[0].containers[1:])), there[1])
    whole = replace(shown, reason=shown.what_happened)
    assert whole.reason.startswith("the command has ended, but xxx")
    assert fault(rules_of(SessionView), whole.to_json()) is None


def test_a_waiting_session_shows_what_it_asks_for(store: Store) -> None:
    launch(store, WIDE, context(A))
    session = listed(store, A)
    assert (session.state, session.size, session.agents, session.containers) == ("PENDING", 6, (), ())
    assert session.reason == NEVER % "a: needs 6 CPUs, 4 free"
    assert session.request == WIDE.to_json()
    assert session.each.memory == GIB


def test_an_ended_session_holds_nothing(store: Store) -> None:
    there = carried_out([A, B], running(store))
    row = store.live()[0]
    row = store.change(row, states.TERMINATING, 1100.0, "ended by bob")
    row = store.change(row, states.TERMINATED, 1101.0, "every container is removed")
    session = listed(store, *there)
    assert (session.state, session.containers, session.agents, session.degraded) == (
        "TERMINATED",
        (),
        (),
        (),
    )
    assert (session.size, session.reason) == (6, "every container is removed")


def test_a_session_known_from_its_labels_is_listed_from_them(store: Store, tmp_path: Path) -> None:
    plan = running(store)
    there = carried_out([A, B], plan)
    other = Store(str(tmp_path / "other"), read_only=True)
    with other.transaction(keep=False):
        adopt(other, there, 1000.0)
        session = listed(other, *there)
        silent = listed(other, *(replace(one, reachable=False, containers=()) for one in there))
    other.close()
    assert (session.name, session.size, session.mode) == ("train", 6, "multi-node")
    assert (session.agents, session.degraded) == (("a", "b"), ())
    assert set(conditions(session).values()) == {"running"}
    assert (silent.size, silent.containers) == (0, ())


def test_agents_show_what_is_used_of_what_there_is(store: Store) -> None:
    running(store)
    waiting = launch(store, request(name="other", gpus=1), context(A, B))
    assert waiting.plan is not None
    agents = [A, replace(B, reachable=False, reason="timed out")]
    first, second = list_agents(held_on(agents, store.ends_on(agents), store.held_plans()), agents)
    assert first.used == Amounts(4000, 4 * GIB, 0)
    assert second.used == Amounts(3000, 3 * GIB, 1.0)
    assert second.capacity == Amounts(4000, 16 * GIB, 1)
    assert (first.reachable, second.reachable, second.reason) == (True, False, "timed out")


@pytest.mark.parametrize(("seconds", "is_held"), [(60.0, True), (-60.0, False)])
def test_a_session_is_held_while_the_lease_of_its_controller_lasts(
    store: Store, tmp_path: Path, seconds: float, is_held: bool
) -> None:
    row = store.need(running(store).session.id)
    row = replace(row, holder=Holder(pid=1), lease=time.time() + seconds)
    store.save(row)
    [found] = sessions.list_all(Head(str(tmp_path / "state")))["sessions"]
    assert found["held"] is is_held
