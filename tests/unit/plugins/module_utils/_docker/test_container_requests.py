# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Answers in pieces: read as a file, without their frames, and cut to their last lines."""

from __future__ import annotations

import io
import socket
import tarfile
from collections.abc import Iterator
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import docker
import pytest

from ansible_collections.cluster.compute.plugins.module_utils._core import label
from ansible_collections.cluster.compute.plugins.module_utils._core.errors import ConflictError, EngineError
from ansible_collections.cluster.compute.plugins.module_utils._core.waiting import deadline_in
from ansible_collections.cluster.compute.plugins.module_utils._docker import connection
from ansible_collections.cluster.compute.plugins.module_utils._docker.client import AbsentError, Engine
from ansible_collections.cluster.compute.plugins.module_utils._docker.container_requests import (
    MIB,
    Pieces,
    _reading,
    last,
    unframed,
    until,
)
from ansible_collections.cluster.compute.plugins.module_utils._docker.removal import kill_all


def endless() -> Iterator[bytes]:
    while True:
        yield b"0123456789"


def frame(text: bytes, stream: int = 1) -> bytes:
    return bytes([stream, 0, 0, 0]) + len(text).to_bytes(4, "big") + text


def test_no_more_is_taken_than_is_read() -> None:
    pieces = Pieces(endless())
    assert pieces.read(3) == b"012"
    assert pieces.read(9) == b"345678901"
    assert pieces.read(0) == b""


def test_the_end_is_shorter() -> None:
    pieces = Pieces([b"ab", b"", b"c"])
    assert [pieces.read(2), pieces.read(2), pieces.read(2)] == [b"ab", b"c", b""]


@pytest.mark.parametrize("size", [1, 3, 100])
def test_frames_however_they_are_cut(size: int) -> None:
    whole = frame(b"one\n") + frame(b"") + frame(b"two\n", 2)
    pieces = [whole[start : start + size] for start in range(0, len(whole), size)]
    assert b"".join(unframed(pieces)) == b"one\ntwo\n"


def test_a_frame_that_was_cut_short_ends_it() -> None:
    assert list(unframed([frame(b"one\n"), frame(b"two\n")[:5]])) == [b"one\n"]


def test_a_short_log_is_whole() -> None:
    assert last([b"one\n", b"two\n"], 8) == b"one\ntwo\n"
    assert last([], 8) == b""


@pytest.mark.parametrize("piece", [1, 7, 4096, 3 * MIB])
def test_of_a_long_log_the_last_lines_are_kept(piece: int) -> None:
    whole = b"".join(b"line %d\n" % number for number in range(300000))
    pieces = (whole[start : start + piece] for start in range(0, len(whole), piece))
    head, _end, rest = last(pieces, MIB).partition(b"\n")
    assert head == b"(only the last 1 MiB of this log)"
    assert whole.endswith(b"\n" + rest)
    assert MIB - 20 < len(rest) <= MIB


def test_a_line_that_is_too_long_is_cut() -> None:
    assert last([b"x" * MIB, b"y" * MIB], MIB) == b"(only the last 1 MiB of this log)\n" + b"y" * MIB


def test_a_stream_without_an_end_is_read_until_the_deadline() -> None:
    assert last(until(endless(), deadline_in(0.05)), 4096).startswith(b"(only the last 4 KiB of this log)\n")


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


def test_output_that_arrives_with_the_headers_of_the_answer_is_read() -> None:
    """The SDK has read the headers through a buffer."""
    near, far = socket.socketpair()
    far.sendall(b"HTTP/1.1 101 UPGRADED\r\n\r\n" + frame(b"text"))
    far.close()
    buffered = near.makefile("rb")
    while buffered.readline().strip():
        pass
    answer = SimpleNamespace(_response=SimpleNamespace(raw=SimpleNamespace(_fp=SimpleNamespace(fp=buffered))))
    assert b"".join(unframed(iter(lambda: _reading(answer, near)(4096), b""))) == b"text"
    near.close()


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
