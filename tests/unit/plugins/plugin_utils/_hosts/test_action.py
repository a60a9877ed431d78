# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import gc
from types import SimpleNamespace
from typing import Any

import pytest
from ansible import constants
from played import NO_PIPELINING

from ansible_collections.cluster.compute.plugins.action.agent_step import ActionModule
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import NotLaunchedError
from ansible_collections.cluster.compute.plugins.plugin_utils._hosts.action import ComputeAction
from ansible_collections.cluster.compute.plugins.plugin_utils._hosts.call import Call, as_sent


class Asked(ComputeAction):
    """The options with which the module of a step is called."""

    def act(self) -> Any:
        raise NotImplementedError

    def _execute_module(self, module_name: str, module_args: Any, task_vars: Any) -> Any:  # type: ignore[override]
        return {"name": module_name, **module_args}


def test_the_garbage_collector_of_a_worker_looks_at_nothing_that_was_imported() -> None:
    gc.unfreeze()
    try:
        type("ActionModule", (Asked,), {})
        assert gc.get_freeze_count() > len(gc.get_objects())
    finally:
        gc.unfreeze()


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
    connection = SimpleNamespace(transport="ssh", **vars(NO_PIPELINING))
    action = Asked(task, connection, None, None, SimpleNamespace(template=lambda text: text), None)
    given = {"docker_host": named} if named else {}
    action.task_vars = {"hostvars": HOSTVARS, **({} if own is None else {"agent_docker_host": own})}
    assert action.step(Call("image.pull", given, as_sent)).get("docker_host") == engine
    assert "docker_host" not in action.step(Call("store.provide", {}, as_sent))


@pytest.mark.parametrize("is_found", [True, False])
def test_an_answer_of_a_host_adds_no_host_and_no_variable(is_found: bool) -> None:
    """A task with C(run_once) gives the facts of one host to all of them. Where a host's Python is, Ansible finds itself."""
    task = SimpleNamespace(delegate_to=None, async_val=0, environment=[])
    action: Any = Asked(task, NO_PIPELINING, None, None, SimpleNamespace(template=lambda text: text), None)
    facts = {
        "agent_users": ["mallory"],
        "ansible_connection": "local",
        "discovered_interpreter_python": "/tmp/evil",
        "discovered_interpreter_ruby": "/tmp/evil",
    }
    answer = {"swarm": {}, "add_host": {"host_name": "x"}, "add_group": "x", "ansible_facts": facts}
    answer.update(ansible_stats={"data": {"x": 1}}, _ansible_notify=["x"], _ansible_delegated_vars={"x": "y"})

    def execute(*_arguments: Any, **_options: Any) -> dict[str, Any]:
        if is_found:
            action._discovered_interpreter_key = "discovered_interpreter_python"
            action._discovered_interpreter = "/usr/bin/python3"
        return dict(answer)

    action._execute_module = execute
    found = action.step(Call("swarm.describe", {}, as_sent))
    kept = {"discovered_interpreter_python": "/usr/bin/python3"} if is_found else None
    assert {name: found.get(name) for name in answer} == {**dict.fromkeys(answer), "swarm": {}, "ansible_facts": kept}


def test_the_options_of_a_module_are_not_written_to_the_system_log() -> None:
    """A plan has the user's environment, and every user of a host may be able to read its system log."""
    task = SimpleNamespace(check_mode=False, diff=False, args={}, async_val=0, delegate_to=None)
    action: Any = ActionModule(task, NO_PIPELINING, None, None, SimpleNamespace(template=lambda text: text), None)
    seen: list[dict[str, object]] = []
    action._execute_module = lambda _name, **options: seen.append(options["task_vars"]) or {}
    given: dict[str, object] = {"ansible_connection": "ssh"}
    action.task_vars = given
    action.step(Call("image.pull", {}, as_sent))
    assert constants.config.get_config_value("DEFAULT_NO_TARGET_SYSLOG", variables=seen[0]) is True
    assert given == {"ansible_connection": "ssh"}


@pytest.mark.parametrize(("verbosity", "kept"), [(0, False), (2, False), (3, True)])
def test_a_result_has_the_options_of_its_module_only_where_ansible_shows_them(
    verbosity: int, kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = SimpleNamespace(check_mode=False, diff=False, args={}, async_val=0, delegate_to=None)
    action: Any = ActionModule(task, NO_PIPELINING, None, None, SimpleNamespace(template=lambda text: text), None)
    action._execute_module = lambda _name, **_options: {"invocation": {"module_args": {"plan": {}}}}
    monkeypatch.setattr(action._display, "verbosity", verbosity)
    assert ("invocation" in action.step(Call("image.pull", {}, as_sent))) == kept


@pytest.mark.parametrize("check", [True, False])
def test_check_mode_goes_on_where_an_earlier_task_would_launch_the_session(check: bool) -> None:
    task = SimpleNamespace(check_mode=check, diff=False, args={}, async_val=0, delegate_to=None)
    action: Any = ActionModule(task, NO_PIPELINING, None, None, SimpleNamespace(template=lambda text: text), None)
    result = action.failure(NotLaunchedError("session_name", "train", "has no session.json"))
    assert (result.get("changed"), result.get("failed")) == ((True, None) if check else (None, True))
