# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run that is interrupted ends, whatever Python does at that moment."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.cluster.compute.plugins.callback.progress import (
    CallbackModule,
    _is_unread,
    _Lasting,
    message_of,
    task_facts,
)

# Python ignores what a signal raises in such a hook. Ansible forks a worker for each task.
SWALLOWED = """
import os, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
os.register_at_fork(before=lambda: os.kill(os.getpid(), signal.SIGINT) or sum(range(9)))
if not os.fork():
    os._exit(0)
print("goes on")
"""


@pytest.fixture
def handlers() -> Iterator[None]:
    kept = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in kept.items():
        signal.signal(number, handler)


def test_an_interrupt_that_python_ignores_ends_the_run_at_the_next_task(
    handlers: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("threading.Thread.start", lambda _thread: None)
    monkeypatch.setattr("atexit.register", lambda _function: None)
    asked: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _frame: asked.append(number))
    callback: Any = CallbackModule()
    callback.v2_playbook_on_start(None)
    os.kill(os.getpid(), signal.SIGINT)
    assert asked == [signal.SIGINT]
    with pytest.raises(KeyboardInterrupt):
        callback.v2_playbook_on_task_start(None, False)


@pytest.mark.parametrize(("before", "passed"), [(signal.SIG_DFL, [signal.SIGTERM]), (signal.SIG_IGN, [])])
def test_the_end_of_the_terminal_ends_the_workers_of_ansible_too(
    before: signal.Handlers, passed: list[int], handlers: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ansible passes only SIGTERM on to them. Nothing can be written then; nohup makes the run ignore that end."""
    monkeypatch.setattr("threading.Thread.start", lambda _thread: None)
    monkeypatch.setattr("atexit.register", lambda _function: None)
    monkeypatch.setattr("os.write", lambda _number, _text: os.close(-1))
    asked: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _frame: asked.append(number))
    signal.signal(signal.SIGHUP, before)
    callback: Any = CallbackModule()
    callback.v2_playbook_on_start(None)
    signal.raise_signal(signal.SIGHUP)
    assert asked == passed


@pytest.mark.parametrize("lost", ["/dev/full", "pipe"])
def test_a_run_whose_output_is_lost_goes_on_to_its_end(lost: str, checkout: Path, tmp_path: Path) -> None:
    """As after ``| head -n 1``, or with a log on a full disk: Ansible would wait forever for a result that it no longer reads."""
    given = {
        "session_state_dir": tmp_path,
        "agent_docker_host": f"unix://{tmp_path}/none",
        "sessions_file": tmp_path / "list",
    }
    own = [word for name, value in given.items() for word in ("-e", f"{name}={value}")]
    words = ["-i", "playbooks/inventory/local.yml", "playbooks/sessions.yml", *own]
    command = [sys.executable, "-m", "ansible", "playbook", *words]
    own_callback = {**os.environ, "ANSIBLE_STDOUT_CALLBACK": "cluster.compute.progress"}
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "wb") as pipe, open("/dev/full", "wb") as full:
        output = pipe if lost == "pipe" else full
        done = subprocess.run(
            command, cwd=checkout, env=own_callback, stdout=output, stderr=output, timeout=120, check=False
        )
    assert done.returncode == 0
    assert (tmp_path / "list").exists()


def test_python_ignores_an_interrupt_during_a_fork() -> None:
    done = subprocess.run([sys.executable, "-c", SWALLOWED], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "goes on\n")
    assert "KeyboardInterrupt" in done.stderr


@pytest.mark.parametrize(("name", "shown"), [("Copy : all", "Copy : all"), ("", "image : ansible.builtin.copy")])
def test_a_task_is_shown_without_its_role(name: str, shown: str) -> None:
    full = f"image : {name or 'ansible.builtin.copy'}"
    role = SimpleNamespace(get_name=lambda: "image")
    task = SimpleNamespace(name=name, get_name=lambda: full, action="ansible.builtin.copy", args={}, _role=role)
    assert task_facts(task).name == shown


@pytest.mark.parametrize("error", [False, True])
def test_a_text_of_an_agent_has_no_control_characters_on_the_terminal(
    error: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[str] = []
    callback: Any = CallbackModule()
    monkeypatch.setattr(callback, "_display", SimpleNamespace(display=lambda text, **_more: shown.append(text)))
    callback._print(["agent1: \x1b]0;title\x07 \x9b2J \u202e"], error)
    assert shown == ["agent1: \\x1b]0;title\\x07 \\x9b2J \\u202e"]


def test_each_line_is_in_a_pipe_at_once() -> None:
    """Python keeps up to 8 KiB for a pipe or a file, and loses them at SIGTERM."""
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb", buffering=0) as read, os.fdopen(writer, "w") as stream:
        lasting: Any = _Lasting(stream)
        lasting.write("main1: step 1\n")
        os.set_blocking(reader, False)
        assert read.read(99) == b"main1: step 1\n"


def test_a_pipe_that_nobody_reads_is_noticed(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    assert not _is_unread(writer)
    os.close(reader)
    assert _is_unread(writer)
    os.close(writer)
    with (tmp_path / "file").open("w") as file:
        assert not _is_unread(file.fileno())


def test_a_session_that_no_host_can_hold_is_red(monkeypatch: pytest.MonkeyPatch) -> None:
    """No end of another session starts it, so the user has to act."""
    shown: list[tuple[str, object]] = []
    callback: Any = CallbackModule()
    display = SimpleNamespace(display=lambda text, color=None, **_more: shown.append((text, color)))
    monkeypatch.setattr(callback, "_display", display)
    lines = ["Session giant is PENDING: no host can hold this as they are: x.", "Session small is PENDING: x."]
    callback._show({"msg": lines})
    assert shown == [(lines[0], "red"), (lines[1], None)]


def test_a_module_without_a_result_shows_what_the_host_wrote() -> None:
    """As sudo with requiretty does, and a login shell that lets nobody in."""
    facts = {
        "failed": True,
        "msg": "Module result deserialization failed: No start of json char found",
        "module_stdout": "",
        "module_stderr": "Shared connection closed.\nsudo: sorry, you must have a tty to run sudo\n",
    }
    assert message_of(facts) == "sudo: sorry, you must have a tty to run sudo"
    assert message_of({**facts, "module_stderr": ""}) == facts["msg"]
