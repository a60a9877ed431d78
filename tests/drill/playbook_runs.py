# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Commands that are watched, timed, and interrupted at a chosen line of their output: for drills and fault tests."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_PATIENCE = 10  # seconds for processes to stop
Matcher = Callable[[str], bool]
# Runs the command that follows with the default action of SIGINT. A function of Popen would not be safe beside threads.
_INTERRUPTIBLE = (
    sys.executable,
    "-c",
    "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execvp(sys.argv[1], sys.argv[1:])",
)


@dataclass(frozen=True)
class Ended:
    """The end of a command: exit code, output, seconds, and whether it was interrupted. A negative code is a signal."""

    code: int
    text: str
    seconds: float
    interrupted: bool = False


@dataclass(frozen=True)
class Interruption:
    """A signal that is sent as soon as a line of the output matches.

    SIGKILL goes to all processes that the command has started, or ``alone`` to the command. Other signals go to its process group,
    as a terminal sends them.
    """

    matches: Matcher
    number: int = signal.SIGKILL
    alone: bool = False

    def send(self, pid: int) -> None:
        if self.number == signal.SIGKILL:
            _signal([pid], self.number) if self.alone else kill_family(pid)
            return
        with suppress(ProcessLookupError):
            os.killpg(pid, self.number)


def run_watched(
    command: Sequence[str], timeout: float, interruption: Interruption | None = None, **options: Any
) -> Ended:
    """Run a command to its end, its interruption or its timeout. After SIGKILL, what the command has left running is not awaited.

    The command does not inherit that SIGINT is ignored, as it is in what a shell without job control runs in the background.
    """
    begun = time.monotonic()
    streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with (
        subprocess.Popen(
            [*_INTERRUPTIBLE, *command], text=True, errors="replace", start_new_session=True, **streams, **options
        ) as process,
        _killed_after(timeout, process.pid),
    ):
        try:
            lines, hit = _read(process, interruption)
        except BaseException:  # Ctrl-C does not reach the command, which has a session of its own
            kill_family(process.pid)
            raise
    return Ended(process.returncode, "".join(lines), time.monotonic() - begun, hit)


def _read(process: subprocess.Popen[str], interruption: Interruption | None) -> tuple[list[str], bool]:
    """The output, and whether the interruption was sent."""
    lines: list[str] = []
    hit = False
    for line in process.stdout or ():
        lines.append(line)
        if not interruption or hit or not interruption.matches(line):
            continue
        hit = True
        interruption.send(process.pid)
        if interruption.number == signal.SIGKILL:
            break
    return lines, hit


@contextmanager
def _killed_after(timeout: float, pid: int) -> Iterator[None]:
    """Kill a command and all that it has started at a deadline."""
    timer = threading.Timer(timeout, lambda: kill_family(pid))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def kill_family(pid: int) -> None:
    """Kill a process and all its descendants. They are stopped first: one that runs could start another one meanwhile."""
    members: list[int] = []
    while new := [member for member in family(pid) if member not in members]:
        _signal(new, signal.SIGSTOP)
        # A fork that has begun goes on until the process has its child.
        limit = time.monotonic() + _PATIENCE
        while not all(map(_rests, new)) and time.monotonic() < limit:
            time.sleep(0.001)
        members += new
    _signal(members, signal.SIGKILL)


def _rests(pid: int) -> bool:
    """Whether a process is stopped or has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0] in "TZX"
    except OSError:
        return True


def _signal(pids: Sequence[int], number: int) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def family(pid: int) -> list[int]:
    """A process and all its descendants, the process first."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parent = int(path.read_text(errors="replace").rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(path.parent.name))
    found = [pid]
    for member in found:
        found += children.get(member, [])
    return found
