# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs that listen on this machine while a test runs: their ports, their start and their end."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

PATIENCE = 300.0  # for what takes seconds: it only ends a wait that would not end
LONGEST_PAUSE = 0.5


def free_ports(count: int) -> list[int]:
    """Different ports of 127.0.0.1 that nothing uses."""
    with contextlib.ExitStack() as held:
        servers = [held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [int(server.getsockname()[1]) for server in servers]


def free_port() -> int:
    return free_ports(1)[0]


def is_open(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def until(condition: Callable[[], object], what: str, patience: float = PATIENCE) -> None:
    """Wait for a condition. To ask takes processor time, such as that of a program, so a long wait asks less often."""
    end, pause = time.monotonic() + patience, 0.1
    while not condition():
        assert time.monotonic() < end, f"not within {patience:g} s: {what}"
        time.sleep(pause)
        pause = min(1.2 * pause, LONGEST_PAUSE)


@contextlib.contextmanager
def serving(command: Sequence[str], port: int, log: Path) -> Iterator[None]:
    """The program listens at the port of 127.0.0.1; it ends with the test."""
    with (
        log.open("wb") as sink,
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink) as process,
    ):
        try:
            until(lambda: is_open(port) or process.poll() is not None, f"{command[0]} listens")
            assert process.poll() is None, f"{command[0]} did not start: {log.read_text(errors='replace')}"
            yield
        finally:
            process.terminate()
