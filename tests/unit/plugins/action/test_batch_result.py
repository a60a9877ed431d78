# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The wait for a batch command, with simulated agents."""

from __future__ import annotations

import threading
from contextvars import ContextVar
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.errors import AnsibleConnectionFailure
from played import played
from samples import plan, request

from ansible_collections.cluster.compute.plugins.action import batch_result
from ansible_collections.cluster.compute.plugins.module_utils._core.documents import Json
from ansible_collections.cluster.compute.plugins.module_utils._core.errors import StateError
from ansible_collections.cluster.compute.plugins.plugin_utils import _other_hosts as other_hosts

RUNS: Json = {"exit_code": None, "oom_killed": False, "reason": "", "dead": []}
ENDED = {**RUNS, "exit_code": 0}
DEAD = {**RUNS, "dead": [{"hostname": "sub2", "agent": "b", "state": "exited", "exit_code": 137, "oom_killed": False}]}
LOST = AnsibleConnectionFailure("no route to host")


class Agents:
    """Replaces the connections: an answer of each agent for every round; the last answer repeats."""

    def __init__(self, **answers: list[Json | Exception]) -> None:
        self.answers = answers
        self.asked: list[tuple[str, float]] = []
        self.opened: list[str] = []
        self.closed: list[str] = []
        self.log: str | Exception = ""
        self.queries: list[Json] = []
        self.shown: list[str] = []

    def meet(self) -> None:
        """What happens in each call."""

    def __call__(self, _action: Any, host: str, _task_vars: Json) -> Any:
        self.opened.append(host)
        agents = self

        class Agent:
            def module(self, name: str, args: Json) -> Json:
                if name == "logs_info":
                    agents.queries.append(args)
                    if isinstance(agents.log, Exception):
                        raise agents.log
                    return {"logs": [{"hostname": "main1", "state": "running", "text": agents.log}]}
                assert (name, args["agent"]) == ("batch_info", host)
                agents.meet()
                agents.asked.append((host, args["wait"]))
                left = agents.answers[host]
                answer = left.pop(0) if len(left) > 1 else left[0]
                if isinstance(answer, Exception):
                    raise answer
                return answer

            def close(self) -> None:
                agents.closed.append(host)

        return Agent()


def wait(monkeypatch: pytest.MonkeyPatch, agents: Agents, **variables: Any) -> Json:
    monkeypatch.setattr(other_hosts, "OtherHost", agents)
    monkeypatch.setattr(batch_result, "SILENT_PAUSE", 0.0)
    asked = request(cluster_size=4, command="train", **variables)
    action = played(batch_result.ActionModule)
    action._display = SimpleNamespace(display=agents.shown.append)
    result: Json = action.act({"plan": plan(asked, "aabb").to_json()}, {})
    return result


def test_the_agent_of_main1_waits_longer_in_each_round_and_the_others_answer_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    agents = Agents(a=[RUNS, RUNS, ENDED], b=[RUNS])
    result = wait(monkeypatch, agents)
    assert (result["result"], result["terminate"]) == ("SUCCESS", False)
    waits = [seconds for host, seconds in agents.asked if host == "a"]
    assert waits == sorted(set(waits))
    assert {seconds for host, seconds in agents.asked if host == "b"} == {0.0}
    assert (sorted(agents.opened), sorted(agents.closed)) == (["a", "b"], ["a", "b"])


@pytest.mark.parametrize(("policy", "terminate"), [("keep", False), ("terminate", True)])
def test_a_command_that_fails_may_terminate_the_session(
    monkeypatch: pytest.MonkeyPatch, policy: str, terminate: bool
) -> None:
    agents = Agents(a=[{**RUNS, "exit_code": 3}], b=[RUNS])
    result = wait(monkeypatch, agents, on_failure=policy)
    assert (result["result"], result["terminate"]) == ("FAILURE", terminate)


def test_a_container_that_dies_on_any_agent_ends_the_wait_if_the_policy_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    result = wait(monkeypatch, Agents(a=[RUNS], b=[RUNS, DEAD]), on_failure="terminate")
    assert result["reason"] == "sub2 on b ended with exit code 137"


def test_an_agent_may_be_silent_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    agents = Agents(a=[RUNS] * 4 + [ENDED], b=[RUNS, LOST, LOST, RUNS])
    assert wait(monkeypatch, agents)["result"] == "SUCCESS"
    assert sorted(agents.opened) == ["a", "b", "b", "b"]


def test_an_agent_that_stays_silent_ends_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    agents = Agents(a=[RUNS], b=[LOST])
    with pytest.raises(StateError, match=r"b did not answer .*: b cannot be reached: no route to host\. "):
        wait(monkeypatch, agents)
    assert sorted(set(agents.closed)) == ["a", "b"]


CURRENT: ContextVar[str] = ContextVar("CURRENT")


def test_agents_are_asked_at_the_same_time_and_in_the_context_of_the_task(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each waits for the other one: asked one after the other, the first would never answer."""
    meeting = threading.Barrier(2, timeout=30)

    class Meeting(Agents):
        def meet(self) -> None:
            assert CURRENT.get() == "task"
            meeting.wait()

    CURRENT.set("task")
    assert wait(monkeypatch, Meeting(a=[ENDED], b=[RUNS]))["result"] == "SUCCESS"


def test_what_the_command_writes_is_shown_once_while_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    agents = Agents(a=[RUNS, RUNS, ENDED], b=[RUNS])
    agents.log = "2026-01-01T00:00:07.000000001Z epoch \x1b[2J1\n2026-01-01T00:00:07.000000002Z epoch 2\n"
    wait(monkeypatch, agents)
    assert agents.shown == [r"main1: epoch \x1b[2J1", "main1: epoch 2"]
    assert [query["since"] for query in agents.queries] == [0, 1767225607, 1767225607]


def test_a_log_that_cannot_be_read_does_not_end_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    agents = Agents(a=[RUNS, ENDED], b=[RUNS])
    agents.log = LOST
    assert wait(monkeypatch, agents)["result"] == "SUCCESS"
    assert agents.shown == []
