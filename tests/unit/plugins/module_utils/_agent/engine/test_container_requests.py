# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests for containers: programs in them, their files, and what PID 1 is sent."""

from __future__ import annotations

import io
import select
import socket
import tarfile
import threading
import time
from contextlib import nullcontext, suppress
from types import SimpleNamespace
from typing import Any

import docker
import pytest

from ansible_collections.cluster.compute.plugins.module_utils._agent.engine import connection, container_requests
from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.client import AbsentError, Engine
from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.removal import kill_all
from ansible_collections.cluster.compute.plugins.module_utils._shared import label
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import ConflictError, EngineError


def frame(text: bytes, stream: int = 1) -> bytes:
    return bytes([stream, 0, 0, 0]) + len(text).to_bytes(4, "big") + text


class Torn:
    """A client whose archives of a file are cut short so many times: a program shortens the file while the engine reads it."""

    def __init__(self, times: int) -> None:
        self.left = times

    def get_archive(self, _identity: str, _path: str) -> tuple[list[bytes], dict[str, object]]:
        whole = io.BytesIO()
        with tarfile.open(fileobj=whole, mode="w") as archive:
            entry = tarfile.TarInfo("state")
            entry.size = 8
            archive.addfile(entry, io.BytesIO(b"running\n"))
        self.left -= 1
        return [whole.getvalue()[: 515 if self.left >= 0 else None]], {}


@pytest.mark.parametrize("times", [0, 1, 2, 99])
def test_a_file_that_is_written_meanwhile_is_read_again(monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    engine, client = Engine("unix:///nowhere", agent="a"), Torn(times)
    monkeypatch.setattr(engine, "_asking", lambda *_subject: nullcontext(client))
    engine._unbounded.add("main")
    if times < 99:
        assert engine.read_file("main", "/run/state", "main1") == b"running\n"
    else:
        with pytest.raises(EngineError, match="main1: /run/state changes while it is read; run this again"):
            engine.read_file("main", "/run/state", "main1")


class Program:
    """A client with a program in a container that writes ``text``, and ends after so many looks at it."""

    def __init__(self, text: bytes, looks: int, *, closes: bool = True, code: int = 3) -> None:
        self._near, self._far = socket.socketpair()
        self._far.sendall(frame(text))
        self._left, self._code = looks, code
        if closes:
            self._far.close()

    def ends(self) -> None:
        """Its output ends, and it still gets input."""
        self._far.shutdown(socket.SHUT_WR)

    def exec_create(self, *_given: Any, **_options: Any) -> dict[str, str]:
        return {"Id": "program"}

    def exec_start(self, _program: str, **_options: bool) -> socket.socket:
        return self._near

    def exec_inspect(self, _program: str) -> dict[str, Any]:
        self._left -= 1
        return {"Running": True, "ExitCode": None} if self._left >= 0 else {"Running": False, "ExitCode": self._code}

    def inspect_container(self, _identity: str) -> dict[str, Any]:
        return {"Config": {"Labels": {label.FOLDERS: "[]"}}, "State": {"Running": True}}


def running(monkeypatch: pytest.MonkeyPatch, program: Program) -> Engine:
    engine = Engine("unix:///nowhere", agent="a")
    monkeypatch.setattr(engine, "_asking", lambda *_subject: nullcontext(program))
    monkeypatch.setattr(engine, "_timeout", 0.3)
    return engine


def test_the_exit_code_may_come_after_the_output(monkeypatch: pytest.MonkeyPatch) -> None:
    assert running(monkeypatch, Program(b"text\n", 1)).execute("main", ["true"]) == (3, "text")
    assert running(monkeypatch, Program(b"text\n", 1, code=0)).read_file("main", "/run/state") == b"text\n"


@pytest.mark.parametrize("closes", [True, False])
def test_a_program_without_an_end_is_not_waited_for_and_is_no_success(
    monkeypatch: pytest.MonkeyPatch, closes: bool
) -> None:
    """Root of a container can stop each program that looks at its files: that must not keep its agent from answering."""
    for look in (
        lambda engine: engine.execute("main", ["true"], "main1"),
        lambda engine: engine.read_file("main", "/x", "main1"),
    ):
        with pytest.raises(EngineError, match=r"^main1: a program in it does not end within 0\.3 s"):
            look(running(monkeypatch, Program(b"text\n", 99, closes=closes)))


def test_a_report_waits_once_for_programs_without_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """It reads the state of the command and of the apps, of many containers."""
    programs = [Program(b"", 99, closes=False) for _read in range(2)]
    engine = running(monkeypatch, programs[0])
    monkeypatch.setattr(engine, "_timeout", 0.6)
    monkeypatch.setattr(connection, "_LEAST", 0.01)
    hasty = engine.with_one_deadline()
    for program in programs:
        monkeypatch.setattr(hasty, "_asking", lambda *_subject, program=program: nullcontext(program))
        with pytest.raises(EngineError, match="a program in it does not end"):
            hasty.read_file("main", "/x", "main1")
    assert [program._near.gettimeout() for program in programs][1] == 0.01
    assert engine._left() == 0.6


def test_a_program_that_gets_its_input_and_has_no_end_is_no_success(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EngineError, match=r"^main1: a program in it does not end within 0\.3 s"):
        running(monkeypatch, Program(b"", 99, closes=False)).feed("main", ["tar"], b"data", "main1")
    late = Program(b"", 1, closes=False)
    late.ends()
    with pytest.raises(EngineError, match="could not unpack files"):
        running(monkeypatch, late).feed("main", ["tar"], b"data", "main1")


def test_a_listed_container_without_bounded_folders_is_not_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    labels = {label.SESSION: "s", label.FOLDERS: "[]"}
    listed = [{"Id": "bounded", "Labels": labels}, {"Id": "free", "Labels": None}]
    inspected: list[str] = []
    client = SimpleNamespace(containers=lambda **_options: listed)
    client.inspect_container = lambda identity: inspected.append(identity) or {"Config": {"Labels": labels}}
    engine = Engine("unix:///nowhere", agent="a")
    monkeypatch.setattr(engine, "_asking", lambda *_subject: nullcontext(client))
    engine.containers(everyone=True)
    assert [engine._looks_inside(identity, "") for identity in ("bounded", "free")] == [False, False]
    assert inspected == ["bounded"]


class BusySwarm:
    """A client whose managers attach a container to its network at the third try, or fail for another reason."""

    def __init__(self, reason: str) -> None:
        self.reason, self.tries = reason, 0

    def start(self, _identity: str) -> None:
        self.tries += 1
        if self.tries < 3:
            raise docker.errors.APIError("500", explanation=f"attaching to network failed: {self.reason}")


@pytest.mark.parametrize(("reason", "tries"), [("context deadline exceeded", 3), ("network is gone", 1)])
def test_a_container_starts_when_busy_managers_of_the_swarm_have_time(reason: str, tries: int) -> None:
    engine, client = Engine("unix:///nowhere"), BusySwarm(reason)
    engine._borrow = lambda: client
    with nullcontext() if tries > 1 else pytest.raises(EngineError, match=reason):
        engine.start("1234", "main1")
    assert client.tries == tries


def test_a_container_that_another_end_has_removed_needs_no_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two ends of a session at the same time: the second lists what the first is removing."""

    def stop(_identity: str, **_options: int) -> None:
        raise docker.errors.NotFound("No such container")

    engine = Engine("unix:///nowhere", agent="a")
    monkeypatch.setattr(engine, "_borrow", lambda: SimpleNamespace(stop=stop))
    with pytest.raises(AbsentError, match=r"main1: .*No such container"):
        engine.stop("main", 0, "main1")
    assert [outcome.error for outcome in kill_all(engine, [{"Id": "main", "Names": ["/main1"]}])] == [None]


def test_what_a_program_could_not_read_is_no_empty_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of a container sends TERM to that program, too: a batch command would seem to have ended with 255."""
    for code, content in ((0, b"text\n"), (44, None)):
        assert running(monkeypatch, Program(b"text\n", 0, code=code)).read_file("main", "/run/state") == content
    engine = running(monkeypatch, Program(b"", 0))
    monkeypatch.setattr(engine, "_run", lambda *_given: (143, b""))
    with pytest.raises(EngineError, match=r"main1: no program can read /run/state \(exit code 143\); run this again"):
        engine.read_file("main", "/run/state", "main1")


@pytest.mark.parametrize(
    ("reason", "looks"), [("Container main is paused, unpause the container before exec", 1), ("it is busy", None)]
)
def test_why_an_engine_runs_no_program_that_reads_is_said(
    monkeypatch: pytest.MonkeyPatch, reason: str, looks: int | None
) -> None:
    """A container that is paused stays so: it is asked once."""
    engine, asked = running(monkeypatch, Program(b"", 0)), []

    def refuse(*_given: Any) -> tuple[int, bytes]:
        asked.append(1)
        raise ConflictError(reason)

    monkeypatch.setattr(engine, "_run", refuse)
    with pytest.raises(ConflictError, match=reason):
        engine.read_file("main", "/run/state", "main1")
    assert len(asked) == looks if looks else len(asked) > 1


def test_a_file_of_a_container_that_has_just_ended_is_read_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    class Ended(Torn):
        """Runs at the first look, and at no later one."""

        looks = iter((True, False))

        def inspect_container(self, _identity: str) -> dict[str, Any]:
            return {"Config": {"Labels": {label.FOLDERS: "[]"}}, "State": {"Running": next(self.looks)}}

        def exec_create(self, *_given: Any, **_options: Any) -> dict[str, str]:
            raise ConflictError("container main is not running")

    engine, client = Engine("unix:///nowhere", agent="a"), Ended(0)
    monkeypatch.setattr(engine, "_asking", lambda *_subject: nullcontext(client))
    assert engine.read_file("main", "/run/state", "main1") == b"running\n"


class Attached:
    """A client whose engine, as Docker 28.5, drops what it has not passed on when the other end closes. Its PID 1 reads late."""

    def __init__(self, answer: bytes) -> None:
        self._near, self._far = socket.socketpair()
        self._answer, self.got, self.waited = answer, b"", False
        self._thread = threading.Thread(target=self._pass_on)

    def attach_socket(self, _identity: str, params: dict[str, int]) -> socket.socket:
        assert params["stdin"]
        assert params["stderr"]
        self._thread.start()
        return self._near

    def wait(self, _identity: str, timeout: float) -> None:
        self.waited = True

    def _pass_on(self) -> None:
        time.sleep(0.2)
        other = select.poll()
        other.register(self._far, select.POLLRDHUP)
        self.got = b"" if other.poll(0) else self._far.recv(1 << 16)
        with suppress(OSError):
            self._far.sendall(frame(self._answer, 2))
        self._far.close()

    def sent(self, monkeypatch: pytest.MonkeyPatch) -> None:
        engine = Engine("unix:///nowhere", agent="a")
        monkeypatch.setattr(engine, "_asking", lambda *_subject: nullcontext(self))
        try:
            with engine.standard_input("main", "main1") as send:
                send(b"payload!", b"all is here")
        finally:
            self._thread.join(60)


def test_what_is_sent_to_pid_1_is_confirmed_before_the_stream_closes(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Attached(b"cluster-compute: all is here\n")
    client.sent(monkeypatch)
    assert client.got == b"payload!"


def test_a_container_that_ends_instead_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Attached(b"something else\n")
    with pytest.raises(EngineError, match="main1: the engine of a ended at its start"):
        client.sent(monkeypatch)
    assert client.waited


def test_the_answer_of_pid_1_has_a_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(container_requests, "CONFIRMATION", 0.05)
    with pytest.raises(EngineError, match=r"did not pass on what it was sent within 0\.05 s"):
        Attached(b"all is here").sent(monkeypatch)
