# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The results of several agents as one, and of a module that dies: its message never says that JSON is missing."""

from __future__ import annotations

import json
from inspect import signature
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from played import NO_PIPELINING

from ansible_collections.cluster.compute.plugins.action.agent_step import ActionModule
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import Failure
from ansible_collections.cluster.compute.plugins.plugin_utils._hosts.call import Call, as_sent
from ansible_collections.cluster.compute.plugins.plugin_utils._hosts.results import (
    VARIABLE,
    failure_of,
    joint_failure,
    joint_result,
    write_result,
)

AGAIN = "run the same command again."
DEATHS: list[tuple[dict[str, Any], str]] = [
    ({"rc": 137}, f"step swarm.join was ended by SIGKILL; if memory ran out there, free some, and {AGAIN}"),
    ({"rc": -9}, f"the connection of step swarm.join was ended by SIGKILL on the controller; {AGAIN}"),
    (
        {"rc": 127, "stderr": "\nsh: 1: /usr/bin/python9: not found\n"},
        f"step swarm.join ended with exit code 127 and without a result (sh: 1: /usr/bin/python9: not found); correct that, and {AGAIN}",
    ),
    (
        {"rc": 0, "stdout": "Killed"},
        f"step swarm.join ended with exit code 0 and without a result (Killed); correct that, and {AGAIN}",
    ),
    ({}, f"step swarm.join ended without a result (it wrote nothing); {AGAIN}"),
    (
        # The login shell /bin/false.
        {"rc": 1, "module_stderr": ""},
        f"step swarm.join ended with exit code 1 and wrote nothing; check that the login shell of its user there runs commands, and {AGAIN}",
    ),
]


def result_of(answer: dict[str, Any], delegate: str | None = None) -> Any:
    """What an action returns for what a connection has returned."""
    task = SimpleNamespace(check_mode=False, diff=False, args={}, async_val=0, delegate_to=delegate)
    action: Any = ActionModule(task, NO_PIPELINING, None, None, SimpleNamespace(template=lambda text: text), None)
    action._used_interpreter = None
    action.is_here = lambda: False
    parse = action._parse_returned_data
    profile = ["legacy"] * (len(signature(parse).parameters) - 1)

    def execute(_name: str, **_options: Any) -> Any:
        parsed = parse({"stdout": "", "stderr": "", "rc": None, **answer}, *profile)
        # From ansible-core 2.21 on, an object.
        return parsed if isinstance(parsed, dict) else parsed.as_result_dict(for_round_trip=True)

    action._execute_module = execute
    action.task_vars = {"inventory_hostname": "node1"}
    return action.step(Call("swarm.join", {}, as_sent))


@pytest.mark.parametrize(("answer", "said"), DEATHS)
def test_a_module_without_a_result_is_a_failure_of_its_host(answer: dict[str, Any], said: str) -> None:
    result = result_of(answer)
    assert result["msg"] == f"node1: {said}"
    assert (result["failed"], result["failure"]["code"], result["failure"]["where"]) == (True, "unreachable", "node1")
    assert "deserialization" not in str(result)


def test_the_host_is_the_one_that_ran_the_module() -> None:
    assert result_of({"rc": 137}, delegate="head1")["failure"]["where"] == "head1"


def test_a_failure_that_a_module_reports_is_its_own() -> None:
    assert result_of({"rc": 1, "stdout": '{"failed": true, "msg": "no room."}'})["msg"] == "no room."


MADE = {"changed": True, "changed_names": ["x.main1"], "containers": [{"hostname": "main1"}], "duration": 1.5}


def test_lists_follow_the_order_of_the_agents_and_the_slowest_counts() -> None:
    other = {"changed": False, "changed_names": ["x.sub1"], "containers": [], "duration": 0.5, "network_duration": 0.2}
    assert joint_result({"b": MADE, "a": other}) == {
        "changed": True,
        "changed_names": ["x.main1", "x.sub1"],
        "duration": 1.5,
        "network_duration": 0.2,
    }


def test_differences_become_one_list() -> None:
    one, several = {"before": "a"}, [{"before": "b"}, {"before": "c"}]
    assert joint_result({"a": {"diff": one}, "b": {"diff": several}})["diff"] == [one, *several]


def test_no_agent_is_no_change() -> None:
    assert joint_result({}) == {"changed": False}


def test_each_different_failure_is_named_once() -> None:
    full = Failure("Full.", "engine", "b")
    assert joint_failure([full, full, Failure("Y.", "x")]) == Failure("Full. Y.", "engine", "b")


def test_a_lost_engine_comes_before_the_failures_that_follow_from_it() -> None:
    """The engine of the head has the network of all: without it, no other engine can attach a container."""
    found = joint_failure([Failure("Could not attach.", "engine"), Failure("No answer of b.", "unreachable")])
    assert (found.message, found.code) == ("No answer of b. Could not attach.", "unreachable")


def test_a_long_failure_keeps_its_advice() -> None:
    sentence = "The engine could not do it: %s; free some space." % ("x" * 400)
    assert joint_failure([Failure(sentence)]).message == sentence


def test_a_failure_that_another_placement_avoids_decides() -> None:
    assert joint_failure([Failure("Full.", "engine"), Failure("Port 80 is used.", "taken")]).code == "taken"


def test_a_module_that_breaks_off_says_what_it_printed() -> None:
    assert (
        failure_of({"failed": True, "msg": "", "module_stderr": "python3: not found"}).message == "python3: not found"
    )


def test_a_failure_is_the_same_after_its_way_through_a_module() -> None:
    made = Failure("a: it is full.", "engine", "a", "Traceback", "it is full")
    assert failure_of(made.to_result()) == made
    assert failure_of({"failed": True, "msg": "Of Ansible."}) == Failure("Of Ansible.")


RESULT = {"changed": True, "sessions": [], "lines": ["text"], "invocation": {}, "_ansible_verbose": True}


def test_a_result_is_written_without_what_is_for_people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = SimpleNamespace(action="cluster.compute.session", no_log=False)
    monkeypatch.delenv(VARIABLE, raising=False)
    write_result(task, RESULT)
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    write_result(task, RESULT)
    [file] = tmp_path.iterdir()
    assert (file.name, json.loads(file.read_text())) == ("session.json", {"changed": True, "sessions": []})


def test_a_result_that_cannot_be_written_is_still_that_of_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk may be full, or the directory gone with its command."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "gone"))
    result: dict[str, Any] = {"changed": True, "warnings": ["one"]}
    write_result(SimpleNamespace(action="cluster.compute.session", no_log=False), result)
    path = tmp_path / "gone/session.json"
    assert result["warnings"] == ["one", f"The result cannot be written to {path}: No such file or directory."]


def test_a_result_that_is_not_for_logs_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    write_result(SimpleNamespace(action="cluster.compute.session", no_log=True), RESULT)
    assert list(tmp_path.iterdir()) == []
