# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Steps in a process that stays on the host, with real processes: the host is this machine."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._core.documents import Json
from ansible_collections.cluster.compute.plugins.plugin_utils._dead_module import explained
from ansible_collections.cluster.compute.plugins.plugin_utils._resident_steps import Residents

MODULE = """
import json, os, signal, sys
from ansible_collections.cluster.compute.plugins.module_utils._core import resident

def answer(request):
    word = request["options"]["params"].get("word")
    if word == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    return {"word": word, "pid": os.getpid(), "parent": os.getppid(), "check": request["check"], "diff": request["diff"]}

resident.IDLE = float(sys.argv[2])
print(json.dumps(resident.stay(answer, sys.argv[1])))
"""
CONNECTS = """
import json, socket, sys
one = socket.socket(socket.AF_UNIX)
one.connect(sys.argv[1])
print("connected", flush=True)
one.sendall(json.dumps({"options": {"params": {"word": "late"}}, "check": False, "diff": False}).encode())
one.shutdown(socket.SHUT_WR)
print(one.recv(1 << 16).decode())
"""
PLACED = "session.place"


class Host:
    """This machine as an action reaches it: commands run in a shell."""

    def __init__(self) -> None:
        self._task = SimpleNamespace(check_mode=True, diff=False)

    def _low_level_execute_command(self, command: str, in_data: bytes) -> Json:
        done = subprocess.run(["/bin/sh", "-c", command], input=in_data, capture_output=True, check=False, timeout=60)
        return {"rc": done.returncode, "stdout": "a banner\n" + done.stdout.decode(), "stderr": done.stderr.decode()}


def left_by_a_module(base: Path, idle: float) -> Json:
    """What a module says that has left a process there."""
    command = [sys.executable, "-c", MODULE, str(base), str(idle)]
    path = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    # The module ends although the process stays: that holds none of its streams.
    found: Json = json.loads(subprocess.run(command, env=path, capture_output=True, check=True, timeout=60).stdout)
    return found


@pytest.fixture
def said(tmp_path: Path) -> Iterator[Json]:
    found = left_by_a_module(tmp_path, 30)
    process = asked(found)["parent"]
    yield found
    os.kill(process, signal.SIGTERM)
    eventually(lambda: not list(tmp_path.iterdir()))


def eventually(is_true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def residents(said: Any) -> Residents:
    found = Residents()
    found.note("head_step", said)
    return found


def asked(said: Any, call: str = PLACED, **params: Any) -> Any:
    return residents(said).answer(Host(), "head_step", {"call": call, "params": params})  # type: ignore[arg-type]


def test_each_step_is_answered_by_a_copy_of_one_process(said: Json) -> None:
    first, second = asked(said, word="été"), asked(said, word="x" * 300_000)
    assert (first["word"], first["check"], first["diff"]) == ("été", True, False)
    assert len(second["word"]) == 300_000
    assert first["parent"] == second["parent"]
    assert first["pid"] != second["pid"]


def test_only_its_user_can_enter_its_directory(said: Json) -> None:
    mode = os.stat(os.path.dirname(said["socket"])).st_mode
    assert stat.S_IMODE(mode) == 0o700


def test_a_step_whose_library_it_has_not_imported_is_sent_as_a_module(said: Json) -> None:
    assert asked(said, "queue.begin") is None


def test_a_copy_that_dies_is_a_failure_that_names_the_host_and_the_step(said: Json) -> None:
    failure = explained(asked(said, word="die"), PLACED, "node1")
    assert (failure["failed"], failure["failure"]["where"]) == (True, "node1")
    assert failure["msg"].startswith("node1: step session.place ended without a result (a banner)")
    assert asked(said, word="again")["word"] == "again"


def test_it_ends_without_work_and_leaves_nothing(tmp_path: Path) -> None:
    found = left_by_a_module(tmp_path, 0.2)
    process = asked(found)["parent"]
    eventually(lambda: not Path(f"/proc/{process}").exists())
    assert list(tmp_path.iterdir()) == []
    gone = residents(found)
    assert gone.answer(Host(), "head_step", {"call": PLACED, "params": {}}) is None  # type: ignore[arg-type]
    assert gone._found == {}


def test_a_request_that_arrives_at_its_end_is_answered(tmp_path: Path) -> None:
    found = left_by_a_module(tmp_path, 30)
    process = asked(found)["parent"]
    os.kill(process, signal.SIGSTOP)
    command = [sys.executable, "-c", CONNECTS, found["socket"]]
    client = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    with client:
        assert client.stdout is not None
        assert client.stdout.readline() == "connected\n"
        os.kill(process, signal.SIGTERM)
        os.kill(process, signal.SIGCONT)
        assert json.loads(client.stdout.read())["word"] == "late"


@pytest.mark.parametrize(
    "said",
    [
        None,
        {},
        "text",
        {"python": "/usr/bin/python3"},
        {"python": "/usr/bin/python3; reboot", "socket": "/tmp/x"},
        {"python": "/usr/bin/python3", "socket": "/tmp/x\n/y"},
        {"python": "python3", "socket": ["/tmp/x"]},
    ],
)
def test_a_host_that_says_something_else_has_none(said: Any) -> None:
    assert residents(said)._found == {}


def test_a_path_too_long_for_a_socket_means_no_process(tmp_path: Path) -> None:
    base = tmp_path / ("d" * 120)
    base.mkdir()
    assert left_by_a_module(base, 30) == {}
    assert list(base.iterdir()) == []
