# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A module that is called has the same options, result and errors as a module in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from samples import request

from ansible_collections.cluster.compute.plugins.action import session
from ansible_collections.cluster.compute.plugins.module_utils._steps import ssh
from ansible_collections.cluster.compute.plugins.module_utils._worker import module
from ansible_collections.cluster.compute.plugins.plugin_utils._hosts.action import _HERE
from ansible_collections.cluster.compute.plugins.plugin_utils._hosts.direct_call import call, is_here

REPORT = {"name": "a", "reachable": False, "reason": "no route"}
HOLDER = {"host": "h", "user": "alice", "pid": 1}


def called(step: str, params: Any, *, check: bool = False, diff: bool = False, **place: Any) -> Any:
    return call({"call": step, "params": params, **place}, check_mode=check, diff=diff)


def asked(**more: Any) -> Any:
    return {"request": request(cluster_size=2).to_json(), "agents": [REPORT], "holder": HOLDER, **more}


def test_a_step_does_its_work_and_its_result_is_a_document(tmp_path: Path) -> None:
    state = {"state_dir": str(tmp_path / "state")}
    result = called("session.place", asked(), **state)
    assert (result["outcome"], result["changed"], result["missing"]) == ("pending", True, [])
    assert "a cannot be reached (no route)" in result["reason"]
    assert isinstance(result["duration"], float)
    listed = called("sessions.list_all", {"agents": []}, **state)
    assert [one["name"] for one in listed["sessions"]] == ["train"]


def test_a_flag_among_the_secrets_hides_nothing() -> None:
    spec: Any = {"secrets": {"type": "dict"}}
    options = {"secrets": {"tokens": True, "password": "hush"}}
    result = module.called(spec, lambda _params, _check: {"found": "True hush"}, options, check_mode=False, diff=False)
    assert result["found"] == f"True {module.HIDDEN}"


def test_check_mode_reaches_it(tmp_path: Path) -> None:
    result = called("session.place", asked(), check=True, state_dir=str(tmp_path / "state"))
    assert result["outcome"] == "pending"
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize("diff", [True, False])
def test_a_difference_is_shown_to_whom_asks_for_it(diff: bool, tmp_path: Path) -> None:
    result = called("store.provide", {"docker_host": "tcp://127.0.0.1:1"}, diff=diff, state_dir=str(tmp_path / "state"))
    assert result["changed"]
    assert ("diff" in result) == diff


@pytest.mark.parametrize(
    ("step", "params", "code", "message"),
    [
        ("session.vanish", {}, "input", "call: 'session.vanish': is no step of the head."),
        ("session.place", {"agents": []}, "failed", "session.place lacks its parameter request."),
        (
            "session.place",
            {"colour": "red"},
            "input",
            "session.place: 'colour': has only the parameters request, agents, ",
        ),
        (
            "queue.begin",
            {"owner": "a", "holder": {}, "lease": "soon"},
            "input",
            "queue.begin: lease: 'soon': must be of type int.",
        ),
    ],
)
def test_a_wrong_call_is_an_error_that_names_the_step(
    step: str, params: Any, code: str, message: str, tmp_path: Path
) -> None:
    result = called(step, params, state_dir=str(tmp_path))
    assert (result["failed"], result["failure"]["code"]) == (True, code)
    assert result["msg"].startswith(message)


def test_numbers_and_booleans_may_be_text_as_in_yaml(tmp_path: Path) -> None:
    begun = {"owner": "alice", "holder": HOLDER, "lease": "60", "takeover": "no"}
    assert called("queue.begin", begun, state_dir=str(tmp_path / "state"))["begun"] is True


def test_a_warning_comes_along(tmp_path: Path) -> None:
    state = {"state_dir": str(tmp_path / "state")}
    called("session.place", asked(), **state)
    [row] = called("sessions.list_all", {"agents": []}, **state)["sessions"]
    (tmp_path / "state" / row["id"]).write_text("in the way")
    logs = [{"logs": [{"hostname": "main1", "text": "x"}]}]
    change = {"id": row["id"], "reason": "no", "logs": logs, "holder": HOLDER}
    result = called("session.record", {"state": "failed", "change": change}, **state)
    assert result["session"]["state"] == "ERROR"
    assert len(result["warnings"]) == 1


def test_no_secret_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def install(_agent: Any, bundle: str) -> dict[str, str]:
        return {"said": f"the bundle is {bundle}"}

    install.__module__ = ssh.__name__
    monkeypatch.setattr(ssh, "install", install)
    assert "hush-hush" not in str(called("ssh.install", {}, agent="a", secrets={"bundle": "hush-hush"}))


def test_a_controller_imports_no_sdk_for_agents_that_are_other_hosts() -> None:
    program = "import sys, %s; print('docker' in sys.modules)" % session.__name__
    command, path = [sys.executable, "-c", program], {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, env=path, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "False\n"


def test_only_steps_that_leave_nothing_running_are_carried_out_here() -> None:
    assert not {"batch", "batch.start", "folders", "image", "ports", "swarm"} & _HERE


@pytest.mark.parametrize(
    ("transport", "become", "environment", "interpreter", "here"),
    [
        ("local", None, [], sys.executable, True),
        ("ansible.builtin.local", None, [{}], sys.executable, True),
        ("ssh", None, [], sys.executable, False),
        ("local", "sudo", [], sys.executable, False),
        ("local", None, [{"DOCKER_HOST": "tcp://x"}], sys.executable, False),
        ("local", None, [], "/usr/bin/another-python", False),
        ("local", None, [], "", False),
    ],
)
def test_here_is_this_python_as_this_user(
    transport: str, become: str | None, environment: Any, interpreter: str, here: bool
) -> None:
    connection = SimpleNamespace(transport=transport, become=become)
    assert is_here(connection, environment, interpreter) == here
