# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The way to a port of an agent: a TCP connection, or the standard input and output of a ProxyCommand."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import os
import re
import socket
import subprocess
import tempfile
from contextlib import suppress

# Seconds between two attempts: a jump host logs in at each.
_PAUSE, _PAUSE_OF_PROXY = 0.1, 1.0
_MOST_COMPLAINT = 4096


class Gateway:
    """Connects to a host and port, again after each attempt. At the end, the command of a proxy is terminated."""

    def __init__(self, host: str, port: int, proxy: str = "") -> None:
        self._host, self._port = host, port
        values = {"%%": "%", "%h": host, "%p": str(port)}
        self._command = re.sub("%.", lambda token: values.get(token.group(), token.group()), proxy)
        self._process: subprocess.Popen[bytes] | None = None
        self._errors = tempfile.TemporaryFile() if proxy else None  # noqa: SIM115 (closed at the end)

    @property
    def pause(self) -> float:
        return _PAUSE_OF_PROXY if self._command else _PAUSE

    @property
    def complaint(self) -> str:
        """The last line that the command of the proxy has written as an error."""
        if self._errors is None:
            return ""
        self._errors.seek(0)
        lines = self._errors.read(_MOST_COMPLAINT).decode("utf-8", "replace").split("\n")
        return next((line.strip().rstrip(".") for line in reversed(lines) if line.strip()), "")

    def connect(self, seconds: float) -> socket.socket:
        """A new connection, with this timeout."""
        if self._errors is None:
            return socket.create_connection((self._host, self._port), timeout=seconds)
        self._stop()
        self._errors.seek(0)
        self._errors.truncate()
        ours, theirs = socket.socketpair()
        ours.settimeout(seconds)
        with theirs:
            self._process = subprocess.Popen(
                [os.environ.get("SHELL") or "/bin/sh", "-c", "exec " + self._command],
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=self._errors,
                start_new_session=True,  # without a terminal, nothing can ask for a password
            )
        return ours

    def _stop(self) -> None:
        if self._process is None:
            return
        self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(2)
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._process = None

    def __enter__(self) -> Gateway:
        return self

    def __exit__(self, *_error: object) -> None:
        self._stop()
        if self._errors is not None:
            self._errors.close()
