# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The action of ``agent_step``: steps that the controller carries out itself, and what it adds for a host."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible.module_utils.common.parameters import _list_no_log_values as list_no_log_values

from ansible_collections.cluster.compute.plugins.action import agent_step
from ansible_collections.cluster.compute.plugins.module_utils._shared.codec import Json
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import InputError, StateError
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.swarm_plan import JoinPlan
from ansible_collections.cluster.compute.plugins.module_utils._steps.step import HEAD_SPEC, OF_AGENT, AgentHandle
from ansible_collections.cluster.compute.plugins.plugin_utils._hosts.call import Call, as_sent
from ansible_collections.cluster.compute.plugins.plugin_utils._session.controller_steps import STEPS

HOSTS = ["a1", "a2", "a3"]


class Played(agent_step.ActionModule):  # type: ignore[misc]
    """The action on a host that has these answers: to a command, and to the step of an agent."""

    answer: Any = None
    asked = ""

    def _low_level_execute_command(self, command: str) -> Json:
        assert command.endswith("id -u")
        self.asked = command
        if isinstance(self.answer, Exception):
            raise self.answer
        return dict(self.answer)

    def _execute_module(self, module_name: str, module_args: Json, task_vars: Json) -> Json:
        return {"asked": module_args, "name": module_name}

    def _make_tmp_path(self) -> str:
        return "/tmp/none"


def made(call: str, answer: Any = None, **options: Any) -> Any:
    args = {"call": call, **options}
    task = SimpleNamespace(
        check_mode=False,
        diff=False,
        args=args,
        async_val=0,
        delegate_to=None,
        action="",
        name="",
        _uuid="",
        environment=(),
    )
    shell = SimpleNamespace(tmpdir="/tmp/none", join_path=lambda *parts: "/".join(parts))
    # Until ansible-core 2.18, an action asks for the option itself.
    pipelining = {"is_pipelining_enabled": lambda _is_async: False, "always_pipeline_modules": False}
    connection = SimpleNamespace(
        _shell=shell, transport="ssh", become=None, has_pipelining=False, get_option=lambda _name: False, **pipelining
    )
    action = Played(task, connection, None, None, SimpleNamespace(template=lambda value: value), None)
    action.answer = answer
    return action


def step(call: str, task_vars: Json | None = None, **params: Any) -> Json:
    task = made(call, params=params)
    task.task_vars = task_vars or {}
    result: Json = task.act()
    return result


def test_a_step_of_the_head_gets_its_store_and_no_engine() -> None:
    task = made("store.provide", params={"docker_host": "unix:///e.sock"}, state_dir="/srv/store", timeout=30)
    given = {"params": {"docker_host": "unix:///e.sock"}, "state_dir": "/srv/store"}
    task.task_vars = {"inventory_hostname": "a1"}
    asked = task.act()
    assert asked == {"asked": {"call": "store.provide", **given}, "name": "cluster.compute.head_step"}


def test_a_host_is_the_head_for_the_steps_of_its_engine_too() -> None:
    action = made("network.absent", params={})
    action.head = "a1"
    found = [action.step(Call("network.absent", {}, as_sent), host)["name"].rpartition(".")[2] for host in HOSTS]
    assert found == ["head_step", "agent_step", "agent_step"]


def test_no_step_of_the_controller_hides_one_of_an_agent() -> None:
    for call in STEPS:
        with pytest.raises(InputError, match="is no step of an agent"):
            OF_AGENT.call(call, AgentHandle("a1", ""), {})


def member(number: int, **changes: Any) -> Json:
    found = {"name": f"a{number}", "state": "inactive", "address": f"192.0.2.{number}", "node_id": f"n{number}"}
    return {"swarm": {**found, **changes}}


def test_agents_that_answered_join_the_head() -> None:
    memberships = [member(1), member(2), {"failed": True}, {"skipped": True}]
    plan = step("swarm.plan_join", memberships=memberships, head="a1", managers=["a2"])["plan"]
    assert plan["steps"] == {"a1": "init", "a2": "join"}
    assert plan["managers"] == ["a1", "a2"]
    assert plan["peers"] == {"a1": ["192.0.2.2"], "a2": ["192.0.2.1"]}


def test_no_agent_that_answered_has_no_plan() -> None:
    assert step("swarm.plan_join", memberships=[{"skipped": True}])["plan"] == JoinPlan().to_json()


def test_an_agent_that_leaves_has_a_manager_that_stays() -> None:
    leaving = [member(3, state="active", cluster_id="c")]
    staying = [member(1, state="active", cluster_id="c", manager=True, data_path_port=4790), {"failed": True}]
    plan = step("swarm.plan_leave", leaving=leaving, agents=HOSTS, staying=staying)["plan"]
    assert (plan.pop("peers"), plan.pop("port")) == ({"a1": ["192.0.2.3"], "a3": ["192.0.2.1"]}, 4790)
    assert plan == {"keepers": {"a3": "a1"}, "refused": {}, "staying": ["a1", "a2"]}


def test_the_head_builds_the_reference_image_and_the_others_get_it() -> None:
    images = [{"image": {"agent": host, "present": False, "host": "x86_64"}} for host in HOSTS]
    plan = step("image.plan", images=[*images[:2], {}], head="a2", hosts=HOSTS[:2])["plan"]
    assert (plan["builders"], plan["takers"]) == (["a2"], ["a1"])
    assert step("image.plan", images=[{}], head="a2", hosts=HOSTS)["plan"]["takers"] == []


def test_no_agent_builds_if_none_says_what_it_has() -> None:
    with pytest.raises(StateError, match=r"^No agent can say which images it has: a1: no engine"):
        step("image.plan", images=[{"msg": "a1: no engine"}, {"msg": "timed out"}], head="a1", hosts=HOSTS)


def test_settings_come_from_variables_facts_and_groups() -> None:
    task_vars = {"inventory_hostname": "a2", "groups": {"agents": HOSTS}, "ansible_facts": {"effective_user_id": 0}}
    settings = step("settings.of_agent", task_vars, become="yes", swarm_manager="False", engine_timeout="7")
    assert (settings["name"], settings["head"], settings["is_head"]) == ("a2", "a1", False)
    assert (settings["become"], settings["swarm"], settings["swarm_manager"]) == (True, True, False)
    assert settings["swarm_addresses"] == ["a2"]
    assert step("settings.of_agent", task_vars, become=None)["become"] is False


def test_the_engine_gets_at_least_a_second() -> None:
    with pytest.raises(InputError, match=r"^agent_engine_timeout: 0: must be at least 1"):
        step("settings.of_agent", {"inventory_hostname": "a1"}, engine_timeout=0)


# root.check

PREMATURE = "Premature end of stream waiting for become success.\n>>> Standard Error\nsudo: a password is required"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (AnsibleError(PREMATURE), "sudo: a password is required"),
        ({"rc": 1, "stdout": "", "stderr": "sudo: a password is required\n"}, "sudo: a password is required"),
        ({"rc": 1, "stdout": "no sudo\r\n", "stderr": ""}, "no sudo"),
        (
            {"rc": 1, "stdout": "", "stderr": "sudo: not\x1b[31m found\nShared connection to a1 closed.\n"},
            "sudo: not[31m found",
        ),
        ({"rc": 0, "stdout": "1000\n", "stderr": ""}, "1000"),
        ({"rc": 1, "stdout": "", "stderr": ""}, "no reason was given"),
    ],
)
def test_a_user_who_cannot_become_root_is_a_result_with_the_reason(answer: Any, reason: str) -> None:
    """On every ansible-core: a refusal is a result or an exception there."""
    result = made("root.check", answer).run()
    assert (result["is_root"], result["reason"]) == (False, reason)
    assert not result.get("failed")


def test_root_is_root() -> None:
    result = made("root.check", {"rc": 0, "stdout": "0\r\n", "stderr": "warning: no tty"}).run()
    assert (result["is_root"], result["reason"]) == (True, "")


def test_a_script_runs_as_root_alone_and_its_lines_are_what_it_prints() -> None:
    """The commands are run in a shell for real, without and with root's ID."""
    action = made(
        "root.check", {"rc": 0, "stdout": "fit\r\nmissing\r\n0\r\n", "stderr": ""}, params={"script": "echo $0"}
    )
    assert action.run()["lines"] == ["fit", "missing"]
    for user, said in (("1000", "1000\n"), ("0", "run\n0\n")):
        shell = ["sh", "-c", f"id() {{ echo {user}; }}\n{action.asked}", "run"]
        assert subprocess.run(shell, check=True, capture_output=True, text=True).stdout == said
    refused = made("root.check", {"rc": 0, "stdout": "1000\n", "stderr": ""}, params={"script": "echo fit"}).run()
    assert (refused["is_root"], refused["lines"]) == (False, [])


def test_an_unavailable_host_is_a_failure() -> None:
    assert "cannot be reached: no route" in made("root.check", AnsibleConnectionFailure("no route")).run()["msg"]


# What the action adds


def asked(call: str, **options: Any) -> Json:
    task = made(call, **options)
    task.task_vars = {"inventory_hostname": "a1", "agent_docker_host": "unix:///run/own.sock"}
    result = task.act()
    assert result["name"] == "cluster.compute.agent_step"
    found: Json = result["asked"]
    return found


def test_a_step_of_an_agent_gets_its_name_and_its_engine() -> None:
    options = asked("image.describe", params={"name": "x"})
    assert (options["agent"], options["docker_host"]) == ("a1", "unix:///run/own.sock")
    assert asked("image.describe", docker_host="tcp://d")["docker_host"] == "tcp://d"


def test_secrets_are_never_among_the_parameters_that_a_log_may_have() -> None:
    options = asked("swarm.join", params={"addresses": [], "remote": "a2"}, secrets={"token": "SWMTKN"})
    assert options["params"] == {"addresses": [], "remote": "a2"}
    assert options["secrets"] == {"token": "SWMTKN"}


def test_every_secret_of_a_step_is_an_option_that_ansible_hides() -> None:
    """Ansible replaces the values of such options in results, logs and the output of -vvv."""
    names = ("bundle", "identity_token", "password", "secrets", "token", "tokens")
    secrets = {name: {"value": f"of-{name}"} for name in names}
    options = asked("image.describe", params={"name": "x", **secrets})
    assert (options["params"], options["secrets"]) == ({"name": "x"}, secrets)
    hidden = list_no_log_values(HEAD_SPEC, {"secrets": options["secrets"]})
    assert hidden == {f"of-{name}" for name in names}


def test_the_ssh_runtime_gets_the_scripts_of_this_release() -> None:
    params = asked("runtime.install", params={"image": "x"})["params"]
    assert params["image"] == "x"
    assert "bin/init" in params["scripts"]
    assert "sh" in params["applets"]


@pytest.mark.parametrize(("call", "counted"), [("image.build", True), ("image.fill", True), ("image.describe", False)])
def test_a_step_that_counts_bytes_has_a_file_for_them(call: str, counted: bool) -> None:
    assert ("progress" in asked(call, params={})["params"]) is counted


# Parameters from YAML


def test_a_wait_has_a_deadline_of_at_least_a_second() -> None:
    with pytest.raises(InputError, match=r"^deadline: 0: must be at least 1"):
        OF_AGENT.call("image.fill", AgentHandle("a1", ""), {"argv": ["true"], "folder": "/", "deadline": "0"})


def test_a_program_that_fills_a_folder_does_not_run_in_check_mode(tmp_path: Path) -> None:
    params = {"argv": ["touch", str(tmp_path / "made")], "folder": str(tmp_path)}
    assert OF_AGENT.call("image.fill", AgentHandle("a1", "", check=True), params) == {"changed": True}
    assert not (tmp_path / "made").exists()
    OF_AGENT.call("image.fill", AgentHandle("a1", ""), params)
    assert (tmp_path / "made").exists()
