#!/usr/bin/env python3
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run make targets in lanes side by side, each lane one after the other; say at the end what each took and how it went.

Usage: steps.py "TARGET TARGET ..." ["TARGET ..." ...]

What a step writes is shown in one piece when it ends. All steps run, whatever fails; the exit code is 1 if any failed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass

LIMIT = 4500.0  # seconds that one step may take


@dataclass(frozen=True)
class Step:
    """How one target went."""

    name: str
    code: int
    seconds: float
    output: str

    @property
    def verdict(self) -> str:
        """In one word, or the exit code."""
        return "ok" if self.code == 0 else f"FAILED ({self.code})"


def run(name: str) -> Step:
    """Make one target."""
    begun = time.monotonic()
    try:
        done = subprocess.run(
            ["make", "--no-print-directory", name],
            env={**os.environ, "NO_COLOR": "1", "ANSIBLE_NOCOLOR": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=LIMIT,
            check=False,
        )
        code, output = done.returncode, done.stdout
    except subprocess.TimeoutExpired as late:
        code, output = 124, f"{late.stdout or ''}\nnot done after {LIMIT:.0f} s"
    return Step(name, code, time.monotonic() - begun, output)


class Report:
    """Writes whole steps, so that lanes do not mix."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self._lock = threading.Lock()

    def begin(self, name: str) -> None:
        """Say that a step runs now."""
        with self._lock:
            print(f"... {name}", flush=True)

    def add(self, step: Step) -> None:
        """Show a step that ended."""
        with self._lock:
            self.steps.append(step)
            print(f"\n=== {step.name}: {step.verdict}, {step.seconds:.1f} s\n{step.output.rstrip()}\n", flush=True)

    def close(self) -> int:
        """The table, and the exit code."""
        print("=== all steps")
        for step in self.steps:
            print(f"{step.name:<14} {step.seconds:>7.1f} s  {step.verdict}")
        failed = [step.name for step in self.steps if step.code != 0]
        print(f"failed: {', '.join(failed)}" if failed else "all passed")
        return 1 if failed else 0


def lane(names: list[str], report: Report) -> None:
    """One after the other."""
    for name in names:
        report.begin(name)
        report.add(run(name))


def main(lanes: list[str]) -> int:
    """All lanes at once."""
    report = Report()
    threads = [threading.Thread(target=lane, args=(names.split(), report)) for names in lanes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return report.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
