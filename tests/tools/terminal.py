# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A shell in a terminal: a test types lines into it as a user does, and keeps what the terminal has shown, and when."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Sequence
from pathlib import Path

# The title of the terminal, which each prompt sets and no line shows, has the number of the next command and the exit code of the
# last one. A shell shows a prompt again when the terminal gets its size.
PROMPT = r"\[\e]0;ready \# $?\a\]$ "
READY = r"\x1b\]0;ready %d (\d+)\x07"
NOT_SHOWN = re.compile(r"\x1b\[\?2004[hl]\r?|\x1b\]0;[^\x07]*\x07")


class Terminal:
    """A terminal whose program is a shell with this prompt, such as ``docker exec -it … bash --norc`` with it as ``PS1``."""

    def __init__(self, command: Sequence[str], columns: int = 110, lines: int = 32) -> None:
        self.columns, self.lines = columns, lines
        self.events: list[tuple[float, str]] = []
        self._master, other = pty.openpty()
        fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self._process = subprocess.Popen(command, stdin=other, stdout=other, stderr=other, start_new_session=True)
        os.close(other)
        self._begun = time.monotonic()
        self._next = 1
        self._read(re.compile(READY % self._next), 60)

    def type(self, line: str, timeout: float = 900, code: int = 0) -> str:
        """Type a line and return what it shows until the next prompt; its exit code must be this one."""
        os.write(self._master, (line + "\r").encode())
        self._next += 1
        shown, found = self._read(re.compile(READY % self._next), timeout)
        assert found[1] == str(code), shown
        return NOT_SHOWN.sub("", shown)

    def paste(self, lines: str) -> str:
        """Paste lines, which the shell runs as one command, and return what it shows until the next prompt."""
        return self.type(f"\x1b[200~{lines}\x1b[201~")

    def press(self, keys: str, pattern: str, timeout: float = 300) -> str:
        """Press keys, such as Return, Tab or Ctrl-C, and return what the pattern finds in the output."""
        os.write(self._master, keys.encode())
        return self._read(re.compile(pattern), timeout)[1][0]

    def interrupt(self, timeout: float = 60) -> str:
        """Press Ctrl-C, and return what the program shows until the next prompt."""
        os.write(self._master, b"\x03")
        self._next += 1
        return NOT_SHOWN.sub("", self._read(re.compile(READY % self._next), timeout)[0])

    def close(self) -> None:
        self._process.kill()  # interactive shells ignore TERM
        self._process.wait(timeout=30)
        os.close(self._master)

    def begin(self) -> None:
        """Forget what was shown before this prompt."""
        self.events, self._begun = [(0.0, "$ ")], time.monotonic()

    def save(self, file: Path, title: str) -> None:
        """Write what the terminal has shown as a recording that asciinema plays: asciicast, version 2."""
        header = {"version": 2, "width": self.columns, "height": self.lines, "idle_time_limit": 2, "title": title}
        events = [[round(seconds, 2), "o", text] for seconds, text in self.events]
        lines = [{**header, "license": "SPDX-License-Identifier: GPL-3.0-or-later"}, *events]
        file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")

    def _read(self, pattern: re.Pattern[str], timeout: float) -> tuple[str, re.Match[str]]:
        text, rest, deadline = "", b"", time.monotonic() + timeout
        while True:
            found = pattern.search(text)
            if found:
                return text, found
            assert select.select([self._master], [], [], max(0, deadline - time.monotonic()))[0], f"too slow:\n{text}"
            rest += os.read(self._master, 65536)
            # A character can arrive in two parts.
            whole = rest.decode(errors="ignore")
            rest = rest[len(whole.encode()) :]
            text += whole
            shown = NOT_SHOWN.sub("", whole)
            if shown:
                self.events.append((time.monotonic() - self._begun, shown))
