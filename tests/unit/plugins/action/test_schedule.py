# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The action of ``schedule``: plans, waiting, and controllers that hold a session."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ansible.parsing.dataloader import DataLoader
from played import played
from samples import SESSION, exactly, plan, request

from ansible_collections.cluster.compute.plugins.action import schedule
from ansible_collections.cluster.compute.plugins.module_utils._core.documents import Json
from ansible_collections.cluster.compute.plugins.module_utils._core.errors import (
    ComputeError,
    EngineError,
    InputError,
    StateError,
)
from ansible_collections.cluster.compute.plugins.module_utils._core.model import Plan
from ansible_collections.cluster.compute.plugins.module_utils._head.row import Row
from ansible_collections.cluster.compute.plugins.modules import schedule as modules
from ansible_collections.cluster.compute.plugins.plugin_utils._action import _machine
from ansible_collections.cluster.compute.plugins.plugin_utils._artifacts import Artifacts
from ansible_collections.cluster.compute.plugins.plugin_utils._kept_requests import FOLDER, KeptRequests
from ansible_collections.cluster.compute.plugins.plugin_utils._plan_text import unpacked

ASKED = request(cluster_size=2, environment={"A": "<% rank %>"})


def answer(outcome: str, **fields: Any) -> Json:
    made = plan(ASKED)
    row = Row(made.session.id, "Train-X", "alice", "default", "PENDING", plan=made).to_json()
    answer = {
        "outcome": outcome,
        "session": {**row, "holder": fields.pop("holder", None)},
        "reason": "because",
        "missing": [],
        "plan": None,
    }
    return {**answer, **({"plan": made.to_json()} if outcome in ("placed", "repair", "running") else {}), **fields}


@pytest.fixture(autouse=True)
def no_command_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    here = str(tmp_path / "kept")
    monkeypatch.setattr(schedule, "KeptRequests", lambda base: KeptRequests(here if base == "/nonexistent" else base))
    monkeypatch.setattr(schedule, "load_extra_vars", lambda _loader: {})


def ask(action: Any, **args: Any) -> Json:
    given = {"request": ASKED.to_json(), "agents": [{"agent": {"name": "a"}}], "artifacts": "/nonexistent", **args}
    result: Json = action.act(given, {})
    return result


@pytest.mark.parametrize("outcome", ["placed", "repair", "running"])
def test_a_plan_has_the_users_variables(outcome: str) -> None:
    action = played(schedule.ActionModule, answer(outcome), diff=True)
    result = ask(action)
    made = Plan.from_json(result["plan"])
    assert [one.environment["A"] for one in made.containers] == ["0", "1"]
    assert ("diff" in result) == (outcome != "running")
    (call,) = action.asked
    assert call["agents"] == [{"name": "a"}]
    assert (call["holder"]["pid"], call["holder"]["host"]) == (os.getppid(), socket.gethostname())


@pytest.mark.parametrize(("outcome", "deploys"), [("placed", True), ("pending", False)])
def test_the_role_gets_the_plan_as_a_text_and_what_it_reads_of_it_apart(outcome: str, deploys: bool) -> None:
    result = ask(played(schedule.ActionModule, answer(outcome, remove=["old"])), plan_format="text")
    assert [result[step] for step in ("removes", "deploys", "has_follow_up")] == [True, deploys, False]
    shown = (
        "Enter it: ssh -F /nonexistent/Train-X/ssh_config main1" if deploys else "Session Train-X is PENDING: because."
    )
    assert result["summary"][-1] == shown
    assert result.get("planned") == (unpacked(result)["plan"]["session"] if deploys else None)


@pytest.mark.parametrize(("outcome", "left"), [("placed", []), ("pending", [".requests", "train"])])
def test_a_folder_of_an_ended_session_goes_when_the_next_is_placed(
    outcome: str, left: list[str], tmp_path: Path
) -> None:
    """The head learns which session the folder belongs to, and refuses the launch if that session is live."""
    Artifacts(str(tmp_path), "train").identity("ended", create=True)
    action = played(schedule.ActionModule, answer(outcome))
    ask(action, artifacts=str(tmp_path))
    assert action.asked[0]["kept"] == "ended"
    assert "artifacts" not in action.asked[0]
    assert sorted(os.listdir(tmp_path)) == left


@pytest.fixture
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "_INTERVAL", 0.0)


@pytest.mark.usefixtures("no_pause")
def test_a_session_waits_for_its_turn() -> None:
    action = played(schedule.ActionModule, answer("pending"), answer("pending"), answer("placed"))
    assert ask(action, wait="60")["outcome"] == "placed"
    assert len(action.asked) == 3


def test_a_session_that_does_not_wait_is_pending_and_no_failure() -> None:
    action = played(schedule.ActionModule, answer("pending"))
    result = ask(action)
    assert (result["outcome"], result.get("failed", False), len(action.asked)) == ("pending", False, 1)


@pytest.mark.usefixtures("no_pause")
def test_a_session_that_has_waited_in_vain_says_so() -> None:
    result = ask(played(schedule.ActionModule, answer("pending")), wait=0.05)
    assert result["failed"]
    assert result["msg"] == "Session Train-X is still PENDING after 0.05 s: because."


@pytest.mark.parametrize("check", [False, True])
def test_a_session_that_is_pending_is_a_failure_if_that_is_asked_for(check: bool) -> None:
    result = ask(played(schedule.ActionModule, answer("pending"), check=check), fail_when_pending=True)
    assert (result["failed"], result["msg"]) == (True, "Session Train-X is PENDING: because.")
    assert not ask(played(schedule.ActionModule, answer("placed"), check=check), fail_when_pending=True).get("failed")


def test_what_the_agents_could_never_hold_is_refused_and_not_recorded(tmp_path: Path) -> None:
    usual = {name: spec.get("default") for name, spec in modules.ARGUMENT_SPEC.items()}
    small = {"name": "a", "capacity": {"millicpus": 1000, "memory": 8 << 30}}
    large = {"name": "a", "capacity": {"millicpus": 2000, "memory": 8 << 30}}

    def work(*agents: Json, check_mode: bool = False) -> str:
        asked = {**usual, "request": ASKED.to_json(), "agents": list(agents), "state_dir": str(tmp_path / "state")}
        return str(modules.work(asked, check_mode)["outcome"])

    message = (
        "Session train cannot be launched: the agents could not hold it even without other sessions (a: needs 2 CPUs, 1 free); "
        "ask for less, or add agents."
    )
    for check_mode in (True, False):
        with pytest.raises(EngineError, match=exactly(message)):
            work(small, check_mode=check_mode)
    # An agent that does not answer might hold it. Then it waits, also when the agents that are left could not.
    assert work(small, {"name": "b", "reachable": False}) == "pending"
    assert work(small) == "pending"
    assert work(large) == "placed"


def test_check_mode_does_not_wait() -> None:
    action = played(schedule.ActionModule, answer("pending"), check=True)
    assert not ask(action, wait=3600).get("failed")
    assert len(action.asked) == 1


@pytest.mark.parametrize("wait", ["soon", -1, "nan", 10**9])
def test_a_wait_is_a_number_of_seconds(wait: object) -> None:
    with pytest.raises(InputError, match=r"^session_wait: .*must be a number of seconds from 0 to 604800\.$"):
        ask(played(schedule.ActionModule, answer("placed")), wait=wait)


def test_the_lease_covers_a_bootstrap_script_and_a_pull() -> None:
    asked = request(bootstrap="pip install x", pull="always")
    action = played(schedule.ActionModule, answer("pending"))
    ask(action, request=asked.to_json(), lease=60)
    assert action.asked[0]["lease"] == 60 + asked.bootstrap_timeout + asked.pull_timeout


def test_the_command_line_replaces_what_a_waiting_session_keeps(monkeypatch: pytest.MonkeyPatch) -> None:
    """A value from another source is ignored: the session is launched as it was requested."""
    given = {"session_verify_timeout": "90", "session_pull": ""}
    monkeypatch.setattr(schedule, "load_extra_vars", lambda _loader: given)
    asked = request(cluster_size=2, pull="never", bootstrap_timeout=7)
    action = played(schedule.ActionModule, answer("placed"))
    result = ask(action, request=asked.to_json())
    manner = {name: result["deployment"][name] for name in ("verify_timeout", "pull", "bootstrap_timeout")}
    assert manner == {"verify_timeout": 90, "pull": "never", "bootstrap_timeout": 7}
    assert action.asked[0]["request"] == asked.to_json()


def ended_process() -> Json:
    with subprocess.Popen(["true"]) as process:
        process.wait()
    return {"machine": _machine(), "user": "alice", "pid": process.pid, "start": "1"}


def test_a_controller_that_is_gone_is_taken_over_at_once() -> None:
    action = played(schedule.ActionModule, answer("held", holder=ended_process()), answer("placed"))
    assert ask(action)["outcome"] == "placed"
    assert action.asked[1]["takeover"] == plan(ASKED).session.launch


@pytest.mark.parametrize("holder", [{"machine": "elsewhere", "pid": 1}, None])
def test_a_controller_that_may_be_alive_is_respected(holder: Json | None) -> None:
    action = played(
        schedule.ActionModule, answer("held", holder=holder, reason="session Train-X is being launched by bob")
    )
    message = "Session Train-X is being launched by bob; wait for it, or terminate it with terminate.yml."
    with pytest.raises(StateError, match=exactly(message)):
        ask(action)
    assert len(action.asked) == 1


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (InputError("x", 1, "no"), {"code": "input", "message": "x: 1: no.", "where": "x"}),
        (ComputeError("It broke.", "a"), {"code": "failed", "message": "It broke.", "where": "a"}),
    ],
)
def test_an_error_is_a_sentence_and_a_failure_for_playbooks(
    monkeypatch: pytest.MonkeyPatch, error: ComputeError, failure: Json
) -> None:
    monkeypatch.setattr("ansible.plugins.action.ActionBase.run", lambda *_args, **_kwargs: {})
    action = played(schedule.ActionModule, error)
    action._task.args = {"request": ASKED.to_json()}
    result = action.run(None, {})
    assert (result["failed"], result["msg"], result["failure"]) == (True, failure["message"], failure)


@pytest.mark.parametrize(
    ("mode", "guards", "named"),
    [
        ("ab", (("missing", 0), ("present", 7789)), ["a"]),
        ("ab", (("missing", 0), ("missing", 0)), ["a, b"]),
        ("ab", (("", 0), ("present", 7789)), []),
        ("aa", (("missing", 0), ("", 0)), []),
        # The manager knows the port of the Swarm, and the worker has rules for another.
        ("ab", (("present", 7789), ("present", 4789)), ["b"]),
    ],
)
def test_a_launch_over_several_agents_names_those_without_the_rules_of_overlays(
    mode: str, guards: tuple[tuple[str, int], ...], named: list[str]
) -> None:
    swarms = ({"node_id": "n1", "data_path_port": 7789}, {"node_id": "n2", "managers": ["n1"]})
    agents = [
        {"agent": {"name": name, "engine": {"swarm": swarm}, "overlay_guard": {"state": state, "port": port}}}
        for name, swarm, (state, port) in zip("ab", swarms, guards, strict=True)
    ]
    asked = request(cluster_size=2, cluster_mode="multi-node")
    action = played(schedule.ActionModule, answer("placed", plan=plan(asked, mode).to_json()))
    result = ask(action, agents=agents, request=asked.to_json())
    assert [warning.partition(":")[0] for warning in result["warnings"]] == named
    assert all("run provision_agents.yml" in warning for warning in result["warnings"])


SECRET = request(cluster_size=2, secrets=[{"name": "token", "file": "/etc/hostname"}])
GIVEN = {"session_secrets": [{"name": "token", "file": "/etc/hostname"}]}


def asked_with(action: Any, folder: Path, task_vars: Json, **args: Any) -> Json:
    args = {"request": SECRET.to_json(), "agents": [{"agent": {"name": "a"}}], "artifacts": str(folder), **args}
    action._loader = DataLoader()
    result: Json = action.act(args, task_vars)
    return result


def test_the_path_of_a_secret_stays_on_the_controller_while_the_session_waits(tmp_path: Path) -> None:
    action = played(schedule.ActionModule, answer("pending"))
    asked_with(action, tmp_path, GIVEN)
    assert "/etc/hostname" not in str(action.asked[0])
    assert KeptRequests(str(tmp_path)).files(SESSION) == {"token": "/etc/hostname"}
    waiting = played(schedule.ActionModule, answer("pending"))
    asked_with(waiting, tmp_path, {}, queued=SESSION)
    assert "queued" not in waiting.asked[0]


@pytest.mark.parametrize("given", [{}, GIVEN])
def test_a_waiting_session_of_another_controller_gets_no_file_of_this_one(given: Json, tmp_path: Path) -> None:
    action = played(schedule.ActionModule, answer("placed"))
    with pytest.raises(InputError, match="has secrets and was not requested by this controller"):
        asked_with(action, tmp_path, given, queued=SESSION)
    assert action.asked == []


def test_a_changed_request_of_the_store_is_not_launched(tmp_path: Path) -> None:
    asked_with(played(schedule.ActionModule, answer("pending")), tmp_path, GIVEN)
    action = played(schedule.ActionModule, answer("placed"))
    changed = {**SECRET.to_json(), "image": "evil"}
    with pytest.raises(ComputeError, match=r"another request of session train than this controller made \(image\)"):
        asked_with(action, tmp_path, GIVEN, queued=SESSION, request=changed)
    assert action.asked == []


@pytest.mark.parametrize("outcome", ["placed", "repair", "running"])
def test_a_plan_of_the_head_with_a_further_secret_is_refused(outcome: str) -> None:
    made = plan(ASKED).to_json()
    made["session"]["secrets"] = [{"name": "token", "environment": ""}]
    action = played(schedule.ActionModule, answer(outcome, plan=made))
    with pytest.raises(ComputeError, match=r"is not what was requested: secrets is "):
        ask(action)


def test_a_request_that_needs_nothing_more_is_forgotten(tmp_path: Path) -> None:
    ask(played(schedule.ActionModule, answer("pending")), artifacts=str(tmp_path))
    assert os.listdir(tmp_path / FOLDER) == [SESSION]
    ask(played(schedule.ActionModule, answer("placed")), artifacts=str(tmp_path))
    assert os.listdir(tmp_path / FOLDER) == []


def test_a_failure_of_the_head_is_the_result(tmp_path: Path) -> None:
    """A module that fails says nothing of a session."""
    failed = {"failed": True, "msg": "session_name: 'train': is used by a RUNNING session with other settings."}
    assert ask(played(schedule.ActionModule, failed), artifacts=str(tmp_path))["msg"] == failed["msg"]
