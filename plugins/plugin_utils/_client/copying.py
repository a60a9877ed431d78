# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Copies between the controller and the containers of a session."""

from __future__ import annotations

import os
import posixpath
import shlex
import shutil
import subprocess
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Iterator, List, Sequence

from ...module_utils._shared.constants import RUNTIME_PATH
from ...module_utils._shared.errors import ComputeError, InputError, visible_lines
from ...module_utils._shared.parallel import map_bounded
from ...module_utils._shared.units import show_bytes
from .answers import LATE, Answer
from .shell import OPTIONS, Shell, kill, pipe, start_process, stop_process
from .tar_stream import TarReader, pack

PARALLEL = 16
# What a container without rsync answers; the exit code of rsync differs between versions.
_MISSING = "cluster-compute-no-rsync"
# The answer of a copy that had nothing to send.
NOTHING = b"nothing to copy, by rsync"
_BLOCK = 1 << 16
_BUSYBOX = RUNTIME_PATH + "/bin/busybox"
_MOST_COMPLAINT = 1 << 16
# Runs a program, and ends it when the process that holds the standard input ends, however that happens.
_HELD = """
exec 3<&0
"$@" </dev/null 3<&- &
child=$!
{ cat >/dev/null; kill $child; } <&3 3<&- >/dev/null 2>&1 &
wait $child
"""


@dataclass(frozen=True)
class Copy:
    """One copy: what, where to, and until when (of the monotonic clock)."""

    shell: Shell
    source: str
    target: str
    deadline: float

    def to_all(self, hosts: Sequence[str]) -> List[Answer]:
        """To every container; a failure in one does not end the others."""
        if not os.path.lexists(self.source):
            raise InputError("session_copy_source", self.source, "there is no such file or directory on the controller")
        return self._each(self._to, hosts)

    def from_all(self, hosts: Sequence[str]) -> List[Answer]:
        """From every container, into a folder of its name."""
        name = posixpath.basename(self.source)
        if name in ("", ".", ".."):
            raise InputError("session_copy_source", self.source, "must end in the name of a file or directory")
        return self._each(self._from, hosts)

    def _each(self, copy: Any, hosts: Sequence[str]) -> List[Answer]:
        outcomes = map_bounded(copy, hosts, PARALLEL, keep_going=True)
        return [outcome.value or _failed(outcome.item, outcome.error) for outcome in outcomes]

    def _to(self, host: str) -> Answer:
        if shutil.which("rsync"):
            answer = self._rsync(host)
            if answer is not None:
                return answer
        return self._tar_to(host)

    def _rsync(self, host: str) -> Answer | None:
        """rsync compares first, and sends what differs. None if the container has no rsync."""
        remote = "command -v rsync >/dev/null || { echo %s >&2; exit 127; }; %s mkdir -p %s && rsync"
        remote = remote % (_MISSING, _BUSYBOX, _quoted(self.target))
        connection = " ".join(map(shlex.quote, ["ssh", "-F", self.shell.config, *OPTIONS]))
        flags = ["-rlpt", "--protect-args", "--out-format=%n", "--rsync-path=" + remote, "-e", connection]
        place = f"{host}:{_dotted(self.target)}/"
        command = ["sh", "-c", _HELD, "sh", "rsync", *flags, "--", self.source, place]
        with self._running(command, stdin=subprocess.PIPE) as run:
            sent = sum(block.count(b"\n") for block in iter(lambda: pipe(run.process.stdout).read(_BLOCK), b""))
        if run.failed:
            return None if _MISSING.encode() in run.complaint else run.failure(host)
        return Answer(host, 0, b"%d changed, by rsync" % sent if sent else NOTHING)

    def _tar_to(self, host: str) -> Answer:
        target = _quoted(self.target)
        script = f"{_BUSYBOX} mkdir -p {target} && cd {target} && exec {_BUSYBOX} tar -x -o -f -"
        files = size = 0
        with self._running(self.shell.command(host, script), stdin=subprocess.PIPE) as run:
            with suppress(BrokenPipeError):  # tar has ended: its complaint says why
                files, size = pack(self.source, pipe(run.process.stdin))
            with suppress(BrokenPipeError):
                pipe(run.process.stdin).close()
        return run.failure(host) if run.failed else Answer(host, 0, _amount(files, size).encode())

    def _from(self, host: str) -> Answer:
        folder, name = posixpath.split(self.source)
        script = f"cd {_quoted(folder or '.')} && exec {_BUSYBOX} tar -c -f - {shlex.quote('./' + name)}"
        place = os.path.join(self.target, host)
        os.makedirs(place, exist_ok=True)
        refused = None
        with self._running(self.shell.command(host, script), stdin=subprocess.DEVNULL) as run:
            reader = TarReader(pipe(run.process.stdout), place, name, host)
            try:
                reader.run()
                while pipe(run.process.stdout).read(_BLOCK):
                    pass
            except ComputeError as error:
                refused = error
                pipe(run.process.stdout).close()
        if run.is_late or (run.failed and (run.complaint or not refused)):
            return run.failure(host)
        if refused:
            raise refused
        left_out = ", %d links or devices left out" % reader.left_out if reader.left_out else ""
        return Answer(host, 0, (_amount(reader.files, reader.bytes) + left_out).encode())

    @contextmanager
    def _running(self, command: Sequence[str], **streams: Any) -> Iterator[_Run]:
        run = _Run(start_process(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **streams), self.deadline)
        try:
            yield run
            run.wait()
        finally:
            run.stop()


class _Run:
    """A process that ends when the time is over, at the latest; a thread reads its complaint."""

    def __init__(self, process: subprocess.Popen[bytes], deadline: float) -> None:
        self.process = process
        self.complaint = b""
        self.is_late = False
        self._timer = threading.Timer(max(0.0, deadline - time.monotonic()), self._expire)
        self._listener = threading.Thread(target=self._listen)
        self._timer.start()
        self._listener.start()

    @property
    def failed(self) -> bool:
        return bool(self.process.returncode)

    def wait(self) -> None:
        self.process.wait()
        self._listener.join()

    def stop(self) -> None:
        self._timer.cancel()
        kill(self.process)
        self._listener.join()
        stop_process(self.process)

    def failure(self, host: str) -> Answer:
        if self.is_late:
            return Answer(host, LATE, problem="not complete when session_copy_timeout was over")
        lines = [line.strip().rstrip(".") for line in visible_lines(self.complaint) if line.strip()]
        code = abs(self.process.returncode)
        return Answer(host, code, problem=(lines[0] if lines else "exit code %d" % code)[:300])

    def _expire(self) -> None:
        self.is_late = True
        kill(self.process)

    def _listen(self) -> None:
        for block in iter(lambda: pipe(self.process.stderr).read(_BLOCK), b""):
            self.complaint = (self.complaint + block)[:_MOST_COMPLAINT]


def _failed(host: str, error: Exception | None) -> Answer:
    if isinstance(error, ComputeError):
        return Answer(host, 1, problem=error.message.rstrip("."))
    if isinstance(error, OSError):
        where = error.filename2 or error.filename or "the controller"
        return Answer(host, 1, problem=f"{where}: {error.strerror or error}")
    raise error or ValueError("neither a value nor an error")


def _quoted(path: str) -> str:
    """A path for a shell of a container, relative to the user's home."""
    return shlex.quote(_dotted(path))


def _dotted(path: str) -> str:
    """A relative path does not begin with a hyphen."""
    return path if path.startswith("/") else "./" + path


def _amount(files: int, size: int) -> str:
    return "%d file%s, %s" % (files, "" if files == 1 else "s", "%d bytes" % size if size < 1024 else show_bytes(size))
