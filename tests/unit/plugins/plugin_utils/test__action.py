# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from ansible import constants

from ansible_collections.cluster.compute.plugins.module_utils._core.names import check_owner
from ansible_collections.cluster.compute.plugins.plugin_utils import _action
from ansible_collections.cluster.compute.plugins.plugin_utils._action import (
    ComputeAction,
    StepAction,
    _machine,
    _started,
    holder,
    is_gone,
    login,
)

HERE = _machine()


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "60"]) as started:
        yield started
        started.kill()


def test_the_holder_is_the_process_that_ansible_playbook_is() -> None:
    other = holder()
    assert other == {
        "host": socket.gethostname(),
        "machine": HERE,
        "user": login(),
        "pid": os.getppid(),
        "start": _started(os.getppid()),
    }
    assert other["start"]
    assert not is_gone(other)


def test_the_login_is_an_owner() -> None:
    assert check_owner(login()) == login()


def test_a_living_process_is_not_gone(process: subprocess.Popen[bytes]) -> None:
    assert not is_gone({"machine": HERE, "pid": process.pid, "start": _started(process.pid)})


def test_an_ended_process_is_gone(process: subprocess.Popen[bytes]) -> None:
    other = {"machine": HERE, "pid": process.pid, "start": _started(process.pid)}
    process.kill()
    process.wait()
    assert is_gone(other)


def test_another_process_of_the_same_number_is_another_process(process: subprocess.Popen[bytes]) -> None:
    assert is_gone({"machine": HERE, "pid": process.pid, "start": "1"})


@pytest.mark.parametrize(
    "other", [{}, {"machine": "elsewhere", "pid": 2**22, "start": "1"}, {"pid": 2**22, "start": "1"}]
)
def test_nothing_is_known_of_other_machines(other: dict[str, object]) -> None:
    assert not is_gone(other)


@pytest.mark.parametrize("pid", [0, -1, None])
def test_a_holder_without_a_process_is_not_certain_to_be_gone(pid: object) -> None:
    assert not is_gone({"machine": HERE, "pid": pid, "start": "1"})


def test_a_process_that_may_not_be_looked_at_is_not_gone(process: subprocess.Popen[bytes], monkeypatch: Any) -> None:
    """With /proc mounted with hidepid, another user's process cannot be distinguished from a later process with the same ID."""
    other = {"machine": HERE, "pid": process.pid, "start": _started(process.pid)}
    monkeypatch.setattr(_action, "_started", lambda _pid: "")
    assert not is_gone(other)


class Asked(ComputeAction):
    """The options with which the module of a step is called."""

    def act(self, args: Any, task_vars: Any) -> Any:
        raise NotImplementedError

    def _execute_module(self, module_name: str, module_args: Any, task_vars: Any) -> Any:  # type: ignore[override]
        return {"name": module_name, **module_args}


# A host on which no process stays for further steps.
NO_PIPELINE = SimpleNamespace(is_pipelining_enabled=lambda _is_async: False)
HOSTVARS = {"head": {"agent_docker_host": "tcp://head"}, "plain": {}}


@pytest.mark.parametrize(
    ("delegate", "own", "named", "engine"),
    [
        (None, "tcp://own", "", "tcp://own"),
        (None, "tcp://own", "tcp://named", "tcp://named"),
        (None, None, "", None),
        (None, "", "", None),
        ("head", "tcp://own", "", "tcp://head"),
        ("plain", "tcp://own", "", None),
        ("foreign", "tcp://own", "", None),
    ],
)
def test_a_module_asks_the_engine_of_the_host_it_runs_on(
    delegate: str | None, own: str | None, named: str, engine: str | None
) -> None:
    task = SimpleNamespace(delegate_to=delegate, async_val=0, environment=[])
    connection = SimpleNamespace(transport="ssh", become=None, is_pipelining_enabled=lambda _is_async: False)
    action = Asked(task, connection, None, None, SimpleNamespace(template=lambda text: text), None)
    given = {"docker_host": named} if named else {}
    task_vars = {"hostvars": HOSTVARS, **({} if own is None else {"agent_docker_host": own})}
    assert action.step("image.pull", given, task_vars).get("docker_host") == engine
    assert "docker_host" not in action.step("store.provide", {}, task_vars)


def test_the_options_of_a_module_are_not_written_to_the_system_log() -> None:
    """A plan has the user's environment, and every user of a host may be able to read its system log."""
    task = SimpleNamespace(check_mode=False, diff=False, args={}, async_val=0, delegate_to=None)
    action: Any = StepAction(task, NO_PIPELINE, None, None, SimpleNamespace(template=lambda text: text), None)
    seen: list[dict[str, object]] = []
    action._execute_module = lambda _name, **options: seen.append(options["task_vars"]) or {}
    given: dict[str, object] = {"ansible_connection": "ssh"}
    action.step("image.pull", {}, given)
    assert constants.config.get_config_value("DEFAULT_NO_TARGET_SYSLOG", variables=seen[0]) is True
    assert given == {"ansible_connection": "ssh"}


@pytest.mark.parametrize(("verbosity", "kept"), [(0, False), (2, False), (3, True)])
def test_a_result_has_the_options_of_its_module_only_where_ansible_shows_them(
    verbosity: int, kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = SimpleNamespace(check_mode=False, diff=False, args={}, async_val=0, delegate_to=None)
    action: Any = StepAction(task, NO_PIPELINE, None, None, SimpleNamespace(template=lambda text: text), None)
    action._execute_module = lambda _name, **_options: {"invocation": {"module_args": {"plan": {}}}}
    monkeypatch.setattr(action._display, "verbosity", verbosity)
    assert ("invocation" in action.step("image.pull", {}, {})) == kept
