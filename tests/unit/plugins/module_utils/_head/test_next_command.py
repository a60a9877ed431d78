# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Another batch command for a session that runs: when it is accepted, and what the store keeps of the former."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from samples import agent, carried_out, context, request, seen_with

from ansible_collections.cluster.compute.plugins.module_utils._head.scheduler import launch
from ansible_collections.cluster.compute.plugins.module_utils._head.store import Store
from ansible_collections.cluster.compute.plugins.module_utils._head.transitions import Change, make_change
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import Plan
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.report import AgentReport
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import InputError, StateError
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.plan import with_user_environment

A = agent("a")
FIRST = request(command="exit 3", cluster_size=2)
NEXT = replace(FIRST, command="exit 0", command_timeout=60)
RUNS = {"exit_code": None, "oom_killed": False, "reason": "", "begun": True}
ENDED = {**RUNS, "exit_code": 3}
REPLACED = "another session_command replaces the former"


def running(store: Store) -> Plan:
    decision = launch(store, FIRST, context(A))
    assert decision.plan
    make_change(store, "running", Change(decision.session.id, "", "", "", "", 1010.0, 0.0))
    return decision.plan


def reported(plan: Plan, batch: dict[str, Any], **states: str) -> AgentReport:
    """The agent with the containers of the plan, and this state of the command."""
    [found] = carried_out([A], plan, states=states)
    main, *subs = found.containers
    with_batch = seen_with(main, batch=batch)
    return replace(found, containers=(with_batch, *subs))


def reasons(store: Store, plan: Plan) -> list[str]:
    return [entry.reason for entry in store.history(plan.session.id)]


@pytest.mark.parametrize("batch", [ENDED, {**RUNS, "begun": False}], ids=["ended", "lost by a restart"])
def test_a_command_that_has_ended_is_replaced_and_the_containers_stay(store: Store, batch: dict[str, Any]) -> None:
    plan = running(store)
    decision = launch(store, NEXT, context(reported(plan, batch)))
    assert (decision.outcome, decision.has_next_command, decision.new_limits) == ("running", True, ())
    assert decision.plan
    session = decision.plan.session
    assert (session.command, session.command_timeout) == ("exit 0", 60)
    again = with_user_environment(decision.plan, [{}, {}])
    assert [one.labels for one in again.containers] == [one.labels for one in plan.containers]
    assert Plan.from_json(decision.plan.to_short_json()) == decision.plan
    repeated = launch(store, NEXT, context(reported(plan, ENDED)))
    assert (repeated.outcome, repeated.has_next_command) == ("running", False)


def test_the_history_has_the_result_of_each_command_once(store: Store) -> None:
    plan = running(store)
    of_first = Change(plan.session.id, "", "", "the command ended with exit code 3", "FAILURE", 1020.0, 0.0)
    make_change(store, "running", of_first)
    launch(store, NEXT, context(reported(plan, ENDED), now=1030.0))
    assert (store.need(plan.session.id).result, store.need(plan.session.id).reason) == ("", REPLACED)
    launch(store, FIRST, context(reported(plan, {**ENDED, "exit_code": 0}), now=1040.0))
    make_change(store, "running", replace(of_first, now=1050.0))
    ends = ["the command ended with exit code %d" % code for code in (3, 0, 3)]
    assert reasons(store, plan)[-5:] == [ends[0], REPLACED, ends[1], REPLACED, ends[2]]


def test_a_command_that_runs_is_not_replaced(store: Store) -> None:
    plan = running(store)
    with pytest.raises(StateError, match="the former command of session train still runs on a; wait for its end"):
        launch(store, NEXT, context(reported(plan, RUNS)))


def test_a_command_that_died_with_main1_is_replaced_by_the_repair(store: Store) -> None:
    plan = running(store)
    decision = launch(store, NEXT, context(reported(plan, RUNS, main1="exited")))
    assert (decision.outcome, decision.missing, decision.has_next_command) == ("repair", ("main1",), True)


@pytest.mark.parametrize(
    "asked", [replace(FIRST, command=""), replace(NEXT, memory=1 << 29), replace(NEXT, terminate_when_done=True)]
)
def test_a_request_that_differs_in_more_is_another_session(store: Store, asked: Any) -> None:
    plan = running(store)
    with pytest.raises(InputError, match="with other settings"):
        launch(store, asked, context(reported(plan, ENDED)))
