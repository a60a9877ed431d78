# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A module that is called has the same options, result and errors as a module in a process of its own."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from samples import request

from ansible_collections.cluster.compute.plugins.plugin_utils import _direct_call as direct_call
from ansible_collections.cluster.compute.plugins.plugin_utils._direct_call import MODULES, call, is_here

REPORT = {"name": "a", "reachable": False, "reason": "no route"}
HOLDER = {"host": "h", "user": "alice", "pid": 1}


def called(module: str, *, check: bool = False, diff: bool = False, **args: Any) -> Any:
    return call(module, args, check_mode=check, diff=diff)


def asked(folder: Path, **more: Any) -> Any:
    document = request(cluster_size=2).to_json()
    return {"request": document, "agents": [REPORT], "holder": HOLDER, "state_dir": str(folder / "state"), **more}


def test_a_module_does_its_work_and_its_result_is_a_document(tmp_path: Path) -> None:
    result = called("schedule", **asked(tmp_path))
    assert (result["outcome"], result["changed"], result["missing"]) == ("pending", True, [])
    assert "a cannot be reached (no route)" in result["reason"]
    assert isinstance(result["duration"], float)
    listed = called("session_info", state_dir=str(tmp_path / "state"))
    assert [one["name"] for one in listed["sessions"]] == ["train"]


def test_check_mode_reaches_it(tmp_path: Path) -> None:
    assert called("schedule", check=True, **asked(tmp_path))["outcome"] == "pending"
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize("diff", [True, False])
def test_a_difference_is_shown_to_whom_asks_for_it(diff: bool, tmp_path: Path) -> None:
    called("schedule", **asked(tmp_path))
    ended = {"state": "terminating", "name": "train", "owner": "alice", "holder": HOLDER}
    result = called("session_state", diff=diff, state_dir=str(tmp_path / "state"), **ended)
    assert result["session"]["state"] == "CANCELLED"
    assert ("diff" in result) == diff


@pytest.mark.parametrize(
    ("name", "args", "message"),
    [
        ("session_state", {"state": "running"}, "state is running but all of the following are missing: id"),
        ("session_state", {"state": "asleep"}, "value of state must be one of: running, failed, "),
        ("schedule", {"agents": []}, "missing required arguments: request"),
        ("network", {"state": "present"}, "state is present but all of the following are missing: plan"),
        ("logs_info", {"session": "a", "colour": "red"}, "colour. Supported parameters include: "),
    ],
)
def test_wrong_options_are_told_as_ansible_does(name: str, args: Any, message: str) -> None:
    result = called(name, **args)
    assert result["failed"]
    assert message in result["msg"]


def test_an_error_is_a_sentence_and_a_failure_for_playbooks(tmp_path: Path) -> None:
    result = called("schedule", **asked(tmp_path, lease=0))
    assert (result["failed"], result["msg"]) == (True, "lease: 0: must be at least 1.")
    assert result["failure"] == {"code": "input", "message": result["msg"], "where": "lease"}


def test_a_warning_comes_along(tmp_path: Path) -> None:
    called("schedule", **asked(tmp_path))
    [row] = called("session_info", state_dir=str(tmp_path / "state"))["sessions"]
    (tmp_path / "state" / row["id"]).write_text("in the way")
    logs = [{"logs": [{"hostname": "main1", "text": "x"}]}]
    ended = {"state": "failed", "id": row["id"], "reason": "no", "logs": logs}
    result = called("session_state", state_dir=str(tmp_path / "state"), **ended)
    assert result["session"]["state"] == "ERROR"
    assert len(result["warnings"]) == 1


def test_no_secret_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module("ansible_collections.cluster.compute.plugins.modules.ssh")
    monkeypatch.setattr(module, "work", lambda params, _check: {"said": "the bundle is %s" % params["bundle"]})
    plan = {"session": {}}
    assert "hush-hush" not in str(called("ssh", plan=plan, bundle="hush-hush"))


def test_the_process_that_forks_the_workers_has_the_sdk() -> None:
    program = "import sys, %s; print('docker' in sys.modules)" % direct_call.__name__
    command, path = [sys.executable, "-c", program], {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, env=path, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "True\n"


def test_only_modules_that_leave_nothing_running() -> None:
    assert not {"batch", "folder_marks", "image", "port_listener", "swarm"} & MODULES


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
