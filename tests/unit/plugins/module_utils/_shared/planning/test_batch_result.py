# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from samples import exactly

from ansible_collections.cluster.compute.plugins.module_utils._shared.codec import Json
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.container_view import BatchStatus
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import Failure, StateError
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.batch_result import (
    BatchResult,
    BatchWait,
    batch_result,
)

RUNS: Json = {"exit_code": None, "oom_killed": False, "reason": "", "dead": []}
MAIN: Json = {"hostname": "main1", "agent": "a", "state": "exited", "exit_code": 137, "oom_killed": True}
SUB: Json = {"hostname": "sub1", "agent": "b", "state": "missing", "exit_code": None, "oom_killed": False}
WELL = BatchStatus()
SILENT = Failure("agent b: connection refused.")


@pytest.mark.parametrize(
    ("statuses", "on_failure", "result", "reason"),
    [
        ([RUNS, RUNS], "terminate", "", ""),
        ([{**RUNS, "exit_code": 0}, RUNS], "keep", "SUCCESS", "the command ended with exit code 0"),
        ([RUNS, {**RUNS, "exit_code": 2}], "keep", "FAILURE", "the command ended with exit code 2"),
        (
            [{**RUNS, "exit_code": 137, "oom_killed": True}],
            "keep",
            "FAILURE",
            "the command ended with exit code 137, out of memory",
        ),
        (
            [{**RUNS, "exit_code": 124}],
            "keep",
            "FAILURE",
            "the command exceeded session_command_timeout and was terminated",
        ),
        (
            [{**RUNS, "exit_code": 255, "reason": "no number"}],
            "keep",
            "FAILURE",
            "the command has ended, but no number",
        ),
        ([{**RUNS, "exit_code": 0, "dead": [MAIN]}], "terminate", "SUCCESS", "the command ended with exit code 0"),
        ([RUNS, {**RUNS, "dead": [SUB]}], "keep", "", ""),
        ([RUNS, {**RUNS, "dead": [SUB]}], "terminate", "FAILURE", "sub1 on b is gone"),
        ([{**RUNS, "dead": [MAIN]}], "keep", "FAILURE", "main1 on a ended with exit code 137, out of memory"),
        ([], "terminate", "", ""),
        (
            [{**RUNS, "begun": False}, {**RUNS, "begun": True}],
            "keep",
            "FAILURE",
            "main1 was restarted, and the command has ended with it",
        ),
    ],
)
def test_the_result_follows_from_the_answers_of_all_agents(
    statuses: list[Json], on_failure: str, result: str, reason: str
) -> None:
    assert batch_result([BatchStatus.from_json(one) for one in statuses], on_failure) == BatchResult(result, reason)


def test_rounds_grow_to_ten_seconds() -> None:
    wait, rounds = BatchWait(), []
    for _number in range(11):
        rounds.append(wait.round_seconds)
        wait = wait.after_round({"a": WELL}, "keep")
    assert rounds[:3] == [2.0, 3.0, 4.5]
    assert rounds[-1] == 10.0


def test_silent_rounds_are_counted_and_an_answer_of_all_forgets_them() -> None:
    wait = BatchWait().after_round({"a": WELL, "b": SILENT}, "keep").after_round({"a": WELL, "b": SILENT}, "keep")
    assert (wait.silent, wait.silent_rounds) == (("b",), 2)
    wait = wait.after_round({"a": WELL, "b": WELL}, "keep")
    assert (wait.silent, wait.silent_rounds, wait.error) == ((), 0, "")


def test_the_user_reads_once_that_an_agent_is_silent() -> None:
    wait = BatchWait().after_round({"a": WELL, "b": SILENT}, "keep")
    assert wait.warning == "The wait goes on without an answer of b: agent b: connection refused."
    assert wait.after_round({"a": WELL, "b": SILENT}, "keep").warning == ""
    assert wait.after_round({"a": WELL, "b": WELL}, "keep").warning == ""


def test_an_agent_that_is_silent_for_thirty_rounds_ends_the_wait() -> None:
    wait = BatchWait()
    for _number in range(29):
        wait = wait.after_round({"a": WELL, "b": SILENT}, "keep")
        wait.check_patience("train")
    wait = wait.after_round({"a": WELL, "b": SILENT}, "keep")
    message = (
        "Session train still runs, but b did not answer in 30 rounds: agent b: connection refused. Run schedule.yml when "
        "every agent answers, or end the session with terminate.yml."
    )
    with pytest.raises(StateError, match=exactly(message)):
        wait.check_patience("train")


def test_a_result_counts_although_another_agent_is_silent() -> None:
    wait = BatchWait(silent_rounds=29).after_round({"a": BatchStatus(0), "b": SILENT}, "keep")
    wait.check_patience("train")
    assert wait.result.result == "SUCCESS"
