# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A lifetime and an idle timeout: they may change while a session runs, and the next run records what they have ended."""

from __future__ import annotations

from dataclasses import replace

import pytest
from samples import agent, carried_out, context, request, seen_with

from ansible_collections.cluster.compute.plugins.module_utils._head.listing import list_sessions
from ansible_collections.cluster.compute.plugins.module_utils._head.scheduler import launch
from ansible_collections.cluster.compute.plugins.module_utils._head.session_view import finished_sessions, is_overdue
from ansible_collections.cluster.compute.plugins.module_utils._head.store import Store
from ansible_collections.cluster.compute.plugins.module_utils._head.transitions import Change, make_change
from ansible_collections.cluster.compute.plugins.module_utils._shared import states
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.decision import Holder
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import Plan
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.report import AgentReport
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.request import Request
from ansible_collections.cluster.compute.plugins.plugin_utils._output.lists import remarks

A = agent("a")
OVER, IDLE = "ended: its lifetime is over", "ended: it was idle for session_idle_timeout"
LIMITED = request(cluster_size=2, lifetime=3600)


def running(store: Store, asked: Request = LIMITED) -> Plan:
    decision = launch(store, asked, context(A, now=1000.0))
    assert decision.plan
    make_change(store, "running", Change(decision.session.id, "", "", "", "", 1010.0, 0.0))
    return decision.plan


def ended(plan: Plan, *codes: int) -> AgentReport:
    """The agent once these containers have ended, in rank order, with these exit codes."""
    [found] = carried_out([A], plan)
    containers = list(found.containers)
    for rank, code in enumerate(codes):
        containers[rank] = replace(containers[rank], state="exited", exit_code=code)
    return replace(found, containers=tuple(containers))


def test_the_lifetime_counts_from_the_placement(store: Store) -> None:
    plan = running(store)
    [listed] = list_sessions(store.live(), [])
    assert (plan.session.began, listed.lifetime, listed.ends) == (1000.0, 3600, 4600.0)


def test_another_limit_is_no_other_session(store: Store) -> None:
    plan = running(store)
    raised = replace(LIMITED, lifetime=7200, idle_timeout=600)
    decision = launch(store, raised, context(*carried_out([A], plan), now=2000.0))
    assert (decision.outcome, decision.new_limits) == ("running", ("lifetime", "idle_timeout"))
    [row] = store.live()
    assert row.request == raised
    assert row.plan
    assert (row.plan.session.lifetime, row.plan.session.idle_timeout) == (7200, 600)
    assert [one.labels for one in row.plan.containers] == [one.labels for one in plan.containers]
    again = launch(store, raised, context(*carried_out([A], plan), now=2000.0))
    assert (again.outcome, again.new_limits) == ("running", ())


def test_a_command_that_is_refused_because_another_controller_repairs_changes_no_limit(store: Store) -> None:
    plan = running(store)
    row = store.need(plan.session.id)
    row = replace(row, holder=Holder(pid=1), lease=9000.0)
    store.save(row)
    shorter = replace(LIMITED, lifetime=60)
    assert launch(store, shorter, context(*carried_out([A], plan), now=2000.0)).outcome == "held"
    kept = store.need(plan.session.id)
    assert (kept.request, kept.plan) == (row.request, row.plan)


@pytest.mark.parametrize(
    ("codes", "reason"),
    [
        ((80, 80), OVER),
        ((81,), IDLE),
    ],
)
def test_the_next_launch_of_any_session_removes_one_that_has_ended_by_itself(
    store: Store, codes: tuple[int, ...], reason: str
) -> None:
    plan = running(store)
    decision = launch(store, request(name="other"), context(ended(plan, *codes), now=9000.0))
    row = store.need(plan.session.id)
    assert (row.state, row.result, row.reason) == (states.TERMINATED, "", reason)
    assert decision.remove == (plan.session.id,)
    assert [entry.reason for entry in store.history(row.id)][-1] == reason


@pytest.mark.parametrize(
    ("code", "oom", "result"), [(0, False, "SUCCESS"), (3, False, "FAILURE"), (137, True, "FAILURE")]
)
def test_the_next_launch_of_any_session_gets_what_a_finished_job_had(
    store: Store, code: int, oom: bool, result: str
) -> None:
    """PID 1 has ended it. The engine says of main1 that memory ran out, whichever process the kernel has ended."""
    job = replace(LIMITED, lifetime=0, command="train", terminate_when_done=True, millicpus=2000)
    plan = running(store, job)
    own = ended(plan, 84 if code else 83, 83)
    batch = {"exit_code": code, "oom_killed": oom, "reason": "", "begun": True}
    main = seen_with(own.containers[0], batch=batch, oom_killed=oom)
    over = replace(own, containers=(main, *own.containers[1:]))
    assert launch(store, replace(job, name="other"), context(over, now=9000.0)).outcome == "placed"
    row = store.need(plan.session.id)
    memory = ", out of memory" if oom else ""
    assert (row.state, row.result) == (states.TERMINATED, result)
    assert row.reason == f"the command ended with exit code {code}{memory}"


def test_the_end_of_a_job_names_the_containers_that_had_died(store: Store) -> None:
    plan = running(store, replace(LIMITED, lifetime=0, command="train", on_failure="terminate"))
    launch(store, request(name="other"), context(ended(plan, 83, 137), now=9000.0))
    row = store.need(plan.session.id)
    assert (row.state, row.reason) == (states.TERMINATED, "sub1 on a ended with exit code 137; ended with its command")
    assert row.result == "SUCCESS", "its exit code could not be read, but that of the container says it"


@pytest.mark.parametrize(("on_failure", "state"), [("terminate", states.TERMINATED), ("keep", states.RUNNING)])
def test_the_next_launch_of_any_session_ends_one_that_ends_with_a_container(
    on_failure: str, state: str, store: Store
) -> None:
    """Its other containers run, and would hold their processors until a pass."""
    plan = running(store, replace(LIMITED, lifetime=0, on_failure=on_failure))
    there = carried_out([A], plan, states={"sub1": "exited"})
    decision = launch(store, request(name="other"), context(*there, now=9000.0))
    row = store.need(plan.session.id)
    is_over = state == states.TERMINATED
    assert (row.state, row.result, decision.remove) == (state, "FAILURE" * is_over, (plan.session.id,) * is_over)
    assert not is_over or row.reason == "sub1 on a ended with exit code 137"


def test_a_session_of_another_store_is_left_to_that_store(store: Store, lost_store: Store) -> None:
    plan = running(lost_store)
    decision = launch(store, request(name="other"), context(ended(plan, 80, 80), now=9000.0))
    assert decision.remove == ()
    assert store.need(plan.session.id).state == states.RUNNING


@pytest.mark.parametrize(("now", "state"), [(8999.0, states.RUNNING), (9000.5, states.TERMINATED)])
def test_a_session_that_has_ended_by_itself_is_left_to_its_repair_until_the_lease_is_over(
    store: Store, now: float, state: str
) -> None:
    plan = running(store)
    row = store.need(plan.session.id)
    row = replace(row, holder=Holder(pid=7), lease=9000.0)
    store.save(row)
    launch(store, request(name="other"), context(ended(plan, 80, 80), now=now))
    assert store.need(plan.session.id).state == state


def test_the_same_request_launches_a_session_that_has_ended_by_itself_again(store: Store) -> None:
    plan = running(store)
    decision = launch(store, LIMITED, context(ended(plan, 80, 80), now=9000.0))
    assert decision.outcome == "placed"
    assert decision.session.id != plan.session.id


@pytest.mark.parametrize("codes", [(143, 80), (137,), (1, 1)])
def test_another_end_of_main1_is_no_end_of_the_session(store: Store, codes: tuple[int, ...]) -> None:
    plan = running(store)
    launch(store, request(name="other"), context(ended(plan, *codes), now=9000.0))
    assert store.need(plan.session.id).state == states.RUNNING


def test_the_end_of_another_session_records_it_too(store: Store) -> None:
    plan = running(store)
    nothing = Change("", "none", "alice", "", "", 9000.0, 60.0, agents=(ended(plan, 80, 80),))
    make_change(store, "terminating", nothing)
    assert store.need(plan.session.id).state == states.TERMINATED


def test_its_own_end_keeps_its_logs_first(store: Store) -> None:
    plan = running(store)
    own = Change(plan.session.id, "", "", "", "", 9000.0, 60.0, agents=(ended(plan, 80, 80),))
    make_change(store, "terminating", own)
    assert store.need(plan.session.id).state == states.TERMINATING


@pytest.mark.parametrize(
    ("reached", "note"), [(("a",), ""), ((), "; not reached: a; what it holds is removed when it is back")]
)
def test_its_own_end_keeps_the_reason_for_which_it_has_ended(store: Store, reached: tuple[str, ...], note: str) -> None:
    plan = running(store)
    for state in ("terminating", "terminated"):
        own = Change(
            plan.session.id,
            "",
            "",
            "",
            "",
            9000.0,
            60.0,
            agents=(ended(plan, 80, 80),),
            reached=reached,
            holder=Holder(user="root"),
        )
        make_change(store, state, own)
    assert store.need(plan.session.id).reason == OVER + note
    assert [entry.reason for entry in store.history(plan.session.id) if "ended by" in entry.reason] == []


@pytest.mark.parametrize(("code", "reason"), [(80, OVER), (81, IDLE)])
def test_a_session_that_has_ended_by_itself_is_listed_with_that_reason_before_and_after_its_removal(
    store: Store, code: int, reason: str
) -> None:
    plan = running(store)
    agents = (ended(plan, code, code),)
    [before] = list_sessions(store.live(), agents)
    assert (before.degraded, remarks(before), before.what_happened) == ((), ["ended"], reason)
    own = Change(
        plan.session.id, "", "", "", "", 9000.0, 60.0, agents=agents, holder=Holder(user="root"), reached=("a",)
    )
    make_change(store, "terminating", own)
    make_change(store, "terminated", own)
    [after] = list_sessions(store.select(None, None, ended=True), ())
    assert (after.state, after.what_happened) == (states.TERMINATED, reason)
    assert "ended by root" not in [entry.reason for entry in after.history]


# What PID 1 may take beyond the lifetime: the grace of the session (10 s), and its own pause between two checks.
@pytest.mark.parametrize(("now", "is_late"), [(4599.0, False), (4620.0, False), (4640.0, True)])
def test_a_session_that_outlives_its_lifetime_is_ended_from_outside(store: Store, now: float, is_late: bool) -> None:
    """Root in a container can empty the file that PID 1 reads its limits from."""
    plan = running(store)
    agents = carried_out([A], plan)
    row = store.need(plan.session.id)
    [listed] = list_sessions([row], agents)
    assert [one.name for one in finished_sessions([replace(listed, overdue=is_overdue(row, now))])] == [
        "train"
    ] * is_late
    own = Change(plan.session.id, "", "", "", "", now, 60.0, agents=agents, holder=Holder(user="root"), reached=("a",))
    make_change(store, "terminating", own)
    assert store.need(row.id).reason == (OVER if is_late else "ended by root")
    make_change(store, "terminated", own)
    assert (store.need(row.id).state, store.need(row.id).reason == OVER) == (states.TERMINATED, is_late)


def test_a_session_without_a_lifetime_outlives_nothing(store: Store) -> None:
    decision = launch(store, request(), context(A, now=1000.0))
    make_change(store, "running", Change(decision.session.id, "", "", "", "", 1010.0, 0.0))
    assert not is_overdue(store.need(decision.session.id), 1e10)
