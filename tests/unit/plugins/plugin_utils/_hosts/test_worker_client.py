# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Steps by what modules leave on the host, with real processes: the host is this machine."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import pytest
from steps_on_a_host import Host, eventually, run_module

from ansible_collections.cluster.compute.plugins.module_utils._shared.codec import Json
from ansible_collections.cluster.compute.plugins.module_utils._worker import module as _module
from ansible_collections.cluster.compute.plugins.plugin_utils._hosts import worker_client
from ansible_collections.cluster.compute.plugins.plugin_utils._hosts.results import with_failure_message
from ansible_collections.cluster.compute.plugins.plugin_utils._session.reports import report_options

MODULE = """
import os, signal, sys
from ansible_collections.cluster.compute.plugins.module_utils._worker import worker

def answer(request):
    word = request["options"]["params"].get("word")
    if word == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    login = {"asking": worker.client_pid(), "engine": os.environ.get("DOCKER_HOST"), "lost": os.environ.get("PYTHONPATH")}
    said = {**login, "word": word, "pid": os.getpid(), "parent": os.getppid(), "check": request["check"], "diff": request["diff"]}
    return said, word != "fail"

worker.IDLE = float(sys.argv[2])
worker.daemonize(answer, worker.own_directory(sys.argv[1]))
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
FAILS = """
import os, sys
from ansible_collections.cluster.compute.plugins.module_utils._worker import worker

def refuse(*_arguments, **_options):
    raise OSError("no")

real = os.fork
if "%(fails)s" == "os.fork":
    os.fork = refuse
else:
    def fork():
        pid = real()
        if pid == 0:
            %(fails)s = refuse
        return pid
    os.fork = fork
worker.daemonize(lambda _request: ({}, True), sys.argv[1])
print("the result")
"""
PLACED = "session.place"
MODULE_NAME = "head_step"


class Hostile(Host):
    """A host on which a process of its user says something else."""

    def __init__(self, base: Path, said: str) -> None:
        super().__init__(base)
        self._said = said

    def _low_level_execute_command(self, command: str, in_data: bytes) -> Json:
        assert command
        assert in_data
        return {"rc": 0, "stdout": self._said, "stderr": ""}


def place(base: Path, interpreter: str = "") -> Path:
    """The directory of the process: homes may be common to hosts."""
    found = worker_client.directory(Host(base), MODULE_NAME, interpreter)  # type: ignore[arg-type]
    return Path(f"{found}-{socket.gethostname().partition('.')[0]}")


def leave(base: Path, idle: float = 30) -> int:
    """Run a module that leaves a process there, and return that."""
    where = worker_client.directory(Host(base), MODULE_NAME, "")  # type: ignore[arg-type]
    command = [sys.executable, "-c", MODULE, where, str(idle)]
    path = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    # The module ends although the process stays: that holds none of its streams.
    subprocess.run(command, env=path, capture_output=True, check=True, timeout=60)
    return int(asked(base)["parent"])


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A directory with a short name, wherever pytest has its own: the path of a socket has at most 107 bytes."""
    with TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder)


@pytest.fixture
def base(tmp_path: Path) -> Iterator[Path]:
    """The directory of a host on which a process stays."""
    process = leave(tmp_path / "tmp")
    yield tmp_path / "tmp"
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGTERM)
    eventually(lambda: not list((tmp_path / "tmp").iterdir()))


def asked(base: Path, call: str = PLACED, host: Host | None = None, **params: Any) -> Any:
    options = {"call": call, "params": params}
    return worker_client.answer(host or Host(base), MODULE_NAME, options, "")  # type: ignore[arg-type]


def test_each_step_is_answered_by_a_copy_of_one_process(base: Path) -> None:
    first, second = asked(base, word="été"), asked(base, word="x" * 300_000)
    assert (first["word"], first["check"], first["diff"]) == ("été", True, False)
    assert len(second["word"]) == 300_000
    assert first["parent"] == second["parent"]
    assert first["pid"] != second["pid"]


def test_a_step_has_the_login_of_its_client_not_of_the_module(base: Path) -> None:
    client = Host(base)
    client.prefix = "export DOCKER_HOST=tcp://own; echo $$ >&2; exec "
    found = asked(base, host=client)
    assert (found["engine"], found["lost"]) == ("tcp://own", None)
    assert found["asking"] == int(client.errors)


def test_the_process_of_an_agent_that_is_the_head_takes_the_steps_of_the_store(tmp_path: Path) -> None:
    """The head needs no second module, which would be packed, sent and started after the first."""
    host, base, state = Host(tmp_path / "tmp"), tmp_path / "tmp", str(tmp_path / "state")
    run_module(host, "head_step")
    listed = {"call": "sessions.list_all", "params": {"agents": []}, "state_dir": state}
    found = worker_client.answer(host, MODULE_NAME, listed, "")  # type: ignore[arg-type]
    assert found is not None
    assert found["sessions"] == []
    # A step that fails ends it.
    wrong = {"call": "sessions.list_all", "params": {"color": "red"}, "state_dir": state}
    assert worker_client.answer(host, MODULE_NAME, wrong, "")["failed"]  # type: ignore[arg-type, index]
    eventually(lambda: not list(base.iterdir()))


def test_the_module_of_agents_stays_until_a_step_finds_no_engine(tmp_path: Path) -> None:
    """The user may not have been in the group of the engine when the process began."""
    host = Host(tmp_path / "tmp")

    def step(call: str, **params: Any) -> Json:
        engine = {"docker_host": f"unix://{tmp_path}/none", "agent": "a1"}
        asked = {"call": call, "params": params, **engine}
        found = worker_client.answer(host, "agent_step", asked, "")  # type: ignore[arg-type]
        return {} if found is None else found

    run_module(host, "agent_step")
    assert step("folders.find", marks={}, token="x")["folders"] == []
    options = report_options({"name": "a1", "address": "192.0.2.1"})
    assert step("report.collect", options=options)["agent"]["reachable"] is False
    eventually(lambda: not list((tmp_path / "tmp").iterdir()))
    assert step("folders.find", marks={}, token="x") == {}


@pytest.mark.parametrize(
    ("secrets", "result", "stays"),
    [
        ({}, {}, True),
        ({}, {"agent": {"reachable": True}}, True),
        ({}, {"agent": {"reachable": False}}, False),
        ({}, {"report": {"reachable": False}}, False),
        ({}, {"reachable": False}, False),
        ({}, {"failed": True, "msg": "no"}, False),
        ({"token": "hush"}, {}, False),
    ],
)
def test_a_module_that_has_failed_or_has_read_secrets_does_not_stay(
    secrets: Json, result: Json, stays: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    left: list[str] = []
    monkeypatch.setattr(_module, "daemonize", lambda _answer, directory, *_prepare: left.append(directory))
    params = {"stays": "/tmp/x", "secrets": secrets}
    ended = {"exit_json": lambda **_result: None, "fail_json": lambda **_result: None}
    module: Any = SimpleNamespace(params=params, check_mode=False, _diff=False, **ended)
    _module.run(module, {}, lambda _params, _check: dict(result), lambda: None)
    assert bool(left) == stays
    # The same for a process that starts from the files of a module.
    left.clear()
    asked, spec = _module.AskedStep({"secrets": secrets}, check=False, diff=False), {"secrets": {"type": "dict"}}
    _module.serve_once(asked, spec, lambda _params, _check: dict(result), "/tmp/x", lambda: None)
    assert bool(left) == stays


def test_a_value_that_is_text_only_when_it_is_read_arrives_as_text(base: Path) -> None:
    """As Ansible has values from a vault."""

    class Encrypted:
        def __str__(self) -> str:
            return "decrypted"

    assert asked(base, word=Encrypted())["word"] == "decrypted"


@pytest.mark.parametrize("fails", ["os.fork", "os.setsid", "os.stat"])
def test_a_process_that_cannot_stay_leaves_the_result_of_its_module(fails: str, tmp_path: Path) -> None:
    """The module prints one result, and nothing is left."""
    directory = tmp_path / "tmp" / "cluster-compute-x"
    program = FAILS % {"fails": fails}
    command = [sys.executable, "-c", program, str(directory)]
    path = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, env=path, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "the result\n"


def test_only_its_user_can_enter_its_directory(base: Path) -> None:
    assert [stat.S_IMODE(path.stat().st_mode) for path in (base, place(base))] == [0o700, 0o700]


def test_another_user_cannot_answer_in_its_place() -> None:
    """The directories above the socket may belong to that user, who is asked here for root's step."""
    with TemporaryDirectory(dir="/tmp") as folder:
        base, stranger = Path(folder), Host(Path(folder))
        process = leave(base)
        stranger.prefix = "exec setpriv --reuid 65534 --clear-groups "
        for path in (base, place(base), place(base) / "steps"):
            path.chmod(0o777)
        connects = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
        command = shlex.join(["/usr/bin/python3", "-c", connects, str(place(base) / "steps")])
        assert stranger._low_level_execute_command(command, b"")["rc"] == 0
        assert asked(base, host=stranger, word="hush") is None
        os.kill(process, signal.SIGTERM)
        eventually(lambda: not list(base.iterdir()))


def test_steps_that_it_does_not_take_are_sent_as_modules(base: Path) -> None:
    assert asked(base, host=Host(base, pipelining=False)) is None
    environment = Host(base)
    environment._task.environment = [{"DOCKER_HOST": "tcp://d"}]
    assert asked(base, host=environment) is None


def test_another_python_has_a_process_of_its_own(tmp_path: Path) -> None:
    places = {place(tmp_path), place(tmp_path, "/opt/python")}
    assert len(places) == 2


def test_a_copy_that_dies_is_a_failure_that_names_the_host_and_the_step(base: Path) -> None:
    failure = with_failure_message(asked(base, word="die"), PLACED, "node1")
    assert (failure["failed"], failure["failure"]["where"]) == (True, "node1")
    assert failure["msg"].startswith("node1: step session.place ended without a result (a banner)")


@pytest.mark.parametrize("said", ["", "no JSON", "[1]", '"text"', "{", '{"a": 1} and more'])
def test_an_answer_that_is_no_result_is_a_failure_of_the_host(said: str, tmp_path: Path) -> None:
    failure = with_failure_message(asked(tmp_path, host=Hostile(tmp_path, said)), PLACED, "node1")
    assert (failure["failed"], failure["failure"]["code"], failure["failure"]["where"]) == (
        True,
        "unreachable",
        "node1",
    )


def test_a_host_cannot_say_what_only_ansible_says(tmp_path: Path) -> None:
    said = {"outcome": "placed", "_ansible_no_log": True, "_ansible_delegated_vars": {"ansible_host": "x"}}
    assert asked(tmp_path, host=Hostile(tmp_path, json.dumps(said))) == {"outcome": "placed"}


def test_it_ends_after_a_step_that_fails(base: Path) -> None:
    """What the user then corrects may be seen only by a new process."""
    assert asked(base, word="fail")["word"] == "fail"
    eventually(lambda: asked(base) is None)
    assert list(base.iterdir()) == []


def test_it_ends_without_work_and_leaves_nothing(tmp_path: Path) -> None:
    process = leave(tmp_path, 3)
    eventually(lambda: not Path(f"/proc/{process}").exists())
    assert list(tmp_path.iterdir()) == []
    assert asked(tmp_path) is None


def test_a_request_that_arrives_at_its_end_is_answered(tmp_path: Path) -> None:
    process = leave(tmp_path)
    os.kill(process, signal.SIGSTOP)
    command = [sys.executable, "-c", CONNECTS, str(place(tmp_path) / "steps")]
    client = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    with client:
        assert client.stdout is not None
        assert client.stdout.readline() == "connected\n"
        os.kill(process, signal.SIGTERM)
        os.kill(process, signal.SIGCONT)
        assert json.loads(client.stdout.read())["word"] == "late"


def test_one_that_answers_keeps_its_place_and_one_that_was_killed_does_not(tmp_path: Path) -> None:
    first = leave(tmp_path)
    assert leave(tmp_path) == first
    os.kill(first, signal.SIGKILL)
    eventually(lambda: asked(tmp_path) is None)
    second = leave(tmp_path)
    assert second != first
    assert [path.name for path in tmp_path.iterdir()] == [place(tmp_path).name]
    os.kill(second, signal.SIGTERM)
    eventually(lambda: not list(tmp_path.iterdir()))


def test_a_path_too_long_for_a_socket_means_no_process(tmp_path: Path) -> None:
    base = tmp_path / ("d" * 120)
    with pytest.raises(TypeError):
        leave(base)
    assert list(base.iterdir()) == []


def test_the_command_of_a_step_is_one_line_that_any_login_shell_reads() -> None:
    """Shells of the csh family read line breaks and exclamation marks within quotes."""
    for program in (worker_client._CLIENT, worker_client._START):
        line = worker_client.one_line(program)
        assert not set(line) & set("\n!'$`\\")
        compile(line, "line", "eval")
