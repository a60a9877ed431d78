# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command lines and environments of all processes of this machine while a test does something."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


class Watcher(threading.Thread):
    """Reads every process again and again, until it is stopped.

    A process runs another program soon after its start, or rarely: it is read in its first five rounds, then twice a second.
    To read all of them in each round would take a processor of its own.
    """

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.seen: set[bytes] = set()
        self.environments: set[bytes] = set()
        self.over = threading.Event()

    def run(self) -> None:
        ages: dict[str, int] = {}
        while not self.over.wait(0.02):
            ages = {name: ages.get(name, -1) + 1 for name in os.listdir("/proc") if name.isdigit()}
            for name, age in ages.items():
                if age < 5 or age % 25 == 0:
                    self._read(Path("/proc", name))

    def _read(self, process: Path) -> None:
        with suppress(OSError):
            self.seen.add((process / "cmdline").read_bytes())
        with suppress(OSError):
            self.environments.add((process / "environ").read_bytes())


@contextmanager
def watched() -> Iterator[Watcher]:
    watcher = Watcher()
    watcher.start()
    try:
        yield watcher
    finally:
        watcher.over.set()
        watcher.join()
