#!/usr/bin/env python3
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run make targets side by side; print the time and result of each step and of their tests at the end.

Usage: steps.py [--workers N] [--again TARGET ... --] TARGET[:NEEDED,NEEDED...] ...

A free worker takes the first target in the list whose needed targets have ended, so the longest targets come first.
The output of a step is shown in one piece when the step ends. All steps run, even if some of them fail; the exit code
is 1 if any step failed. A target of --again runs its failed tests a second time, by itself after all other targets: it is made with SECOND=later,
and then, if it failed, with SECOND=now. After Ctrl-C, SIGTERM or SIGHUP, no step starts, and those that run are interrupted as by Ctrl-C. The last lines are for a reader in a hurry: the slowest tests, the steps, those that determined the
time of the whole, how busy the processors were with everything on this machine, each test that passed at its second run only, how many tests passed
and failed, and the end of the output of each step that failed.

SEED (default: 1) is the seed of Python's hashes and of tests that draw numbers.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from outcomes import forget, outcomes, summary

LIMIT = 3600.0  # seconds that one step may take
SLOWEST = 10
LINES = 25  # of the output of a step that failed, shown again at the very end
SEED = os.environ.get("SEED", "1")
# A line of the report that pytest's --durations prints.
DURATION = re.compile(r"^([0-9]+\.[0-9]+)s (setup|call|teardown) +(\S.*)$", re.MULTILINE)


def ticks() -> tuple[int, int]:
    """How long the processors of this machine have worked since its start, and how long they could have."""
    user, nice, system, idle, waiting, *others = map(int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9])
    used = user + nice + system + sum(others)
    return used, used + idle + waiting


@dataclass(frozen=True)
class Step:
    """The result of one target. ``cpu`` are seconds of its processes: without the engine, its containers and other services."""

    name: str
    code: int
    seconds: float
    output: str
    cpu: float = 0.0
    start: float = 0.0

    @property
    def end(self) -> float:
        return self.start + self.seconds

    @property
    def verdict(self) -> str:
        """``ok``, or the exit code."""
        return "ok" if self.code == 0 else f"FAILED ({self.code})"


def interrupt(number: int, groups: set[int]) -> None:
    """Send a signal to each process of these targets."""
    for group in groups:
        with suppress(ProcessLookupError):
            os.killpg(group, number)


class Running:
    """The process groups of the targets that run. After C(stop), a target that a worker had taken already is interrupted, too."""

    def __init__(self) -> None:
        self._groups: set[int] = set()
        self._is_stopped = False
        self._lock = threading.Lock()

    def add(self, group: int) -> None:
        with self._lock:
            self._groups.add(group)
            if self._is_stopped:
                interrupt(signal.SIGINT, {group})

    def discard(self, group: int) -> None:
        with self._lock:
            self._groups.discard(group)

    def stop(self) -> None:
        with self._lock:
            self._is_stopped = True
            interrupt(signal.SIGINT, self._groups)


RUNNING = Running()


def run(name: str, second: str = "later") -> Step:
    """Make one target, in a process group of its own: make passes a signal on, but its children then do not clean up.

    ``second`` is when its failed tests run a second time: ``later``, or ``now``.
    """
    if second == "later":
        forget(name)
    start = time.monotonic()
    # A file, because a process that outlives the target could keep a pipe open.
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        process = subprocess.Popen(
            ["make", "--no-print-directory", name],
            env={
                **os.environ,
                "NO_COLOR": "1",
                "ANSIBLE_NOCOLOR": "1",
                "SEED": SEED,
                "PYTHONHASHSEED": SEED,
                "SECOND": second,
            },
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        RUNNING.add(process.pid)
        timer = threading.Timer(LIMIT, interrupt, (signal.SIGKILL, {process.pid}))
        timer.start()
        _pid, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        timer.cancel()
        RUNNING.discard(process.pid)
        output.seek(0)
        text = output.read()
    seconds = time.monotonic() - start
    if seconds >= LIMIT:
        text += f"\nexceeded {LIMIT:.0f} s and was terminated"
    return Step(name, process.returncode, seconds, text, usage.ru_utime + usage.ru_stime, start)


def slowest(steps: list[Step], count: int = SLOWEST) -> list[tuple[float, str, str]]:
    """The slowest tests over all steps: seconds, phase and name, the slowest first."""
    found = [(float(seconds), phase, test) for step in steps for seconds, phase, test in DURATION.findall(step.output)]
    return sorted(found, reverse=True)[:count]


def critical_path(steps: list[Step]) -> list[Step]:
    """The steps that determined the time of the whole: the last one, before it the one whose end let it start, and so on."""
    path = [max(steps, key=lambda step: step.end)]
    while before := [step for step in steps if step.end <= path[0].start]:
        path.insert(0, max(before, key=lambda step: step.end))
    return path


class Schedule:
    """Hands out targets in the given order, each as soon as the targets that it needs have ended."""

    def __init__(self, needs: dict[str, set[str]]) -> None:
        for target, needed in needs.items():
            if unknown := needed - set(needs):
                raise SystemExit(f"{target} needs {', '.join(sorted(unknown))}, which is not in the list of targets.")
        self.start, self.before = time.monotonic(), ticks()
        self.steps: list[Step] = []
        self._left: list[str] = []
        self._is_stopped = False
        self._needs = dict(needs)
        self._changed = threading.Condition()

    def work(self) -> None:
        """Run targets until none is left."""
        while (name := self._next()) is not None:
            step = run(name)
            with self._changed:
                self.steps.append(step)
                print(f"\n=== {name}: {step.verdict}, {step.seconds:.1f} s\n{step.output.rstrip()}\n", flush=True)
                self._changed.notify_all()

    def _next(self) -> str | None:
        with self._changed:
            while self._needs:
                ended = {step.name for step in self.steps}
                name = next((target for target, needed in self._needs.items() if needed <= ended), None)
                if name is not None:
                    del self._needs[name]
                    print(f"... {name}", flush=True)
                    return name
                self._changed.wait()
            return None

    def again(self, targets: set[str]) -> None:
        """Run the failed tests of these targets a second time, one target after the other."""
        for number, step in enumerate(self.steps):
            if step.code and step.name in targets and not self._is_stopped:
                second = run(step.name, "now")
                print(f"\n=== {step.name}, second run: {second.verdict}\n{second.output.rstrip()}\n", flush=True)
                self.steps[number] = second

    def stop(self) -> None:
        """Start no further target, and interrupt those that run."""
        with self._changed:
            self._is_stopped = True
            self._left += self._needs
            self._needs.clear()
            self._changed.notify_all()
        RUNNING.stop()

    def close(self) -> int:
        """Print the tables; return the exit code."""
        print(f"=== the {SLOWEST} slowest tests")
        for seconds, phase, test in slowest(self.steps):
            print(f"{seconds:>8.1f} s  {phase:<8} {test}")
        print("=== all steps")
        for step in self.steps:
            print(f"{step.name:<14} {step.seconds:>7.1f} s  {step.cpu:>7.1f} s of CPU  {step.verdict}")
        used, possible = (after - before for after, before in zip(ticks(), self.before, strict=True))
        busy = f"the processors were busy for {used / max(1, possible):.0%} of it"
        print(f"{'in total':<14} {time.monotonic() - self.start:>7.1f} s, {busy}")
        path = (f"{step.name} {step.seconds:.0f} s" for step in critical_path(self.steps))
        print(f"critical path: {', then '.join(path)}")
        tests = [test for step in self.steps for test in outcomes(step.name)]
        print("\n".join(summary(tests, SEED)))
        failed = [step for step in self.steps if step.code != 0]
        for step in failed:
            print(f"=== the end of {step.name}, {step.verdict}", *step.output.rstrip().splitlines()[-LINES:], sep="\n")
        if self._left:
            print(f"interrupted before {', '.join(self._left)}")
        if failed:
            print(f"failed: {', '.join(step.name for step in failed)}")
        if failed or self._left:
            return 1
        print("all passed")
        return 0


def parse(words: list[str]) -> dict[str, set[str]]:
    """The needed targets of each target, from ``TARGET[:NEEDED,NEEDED...]``."""
    pairs = (word.partition(":") for word in words)
    return {name: set(needed.split(",")) - {""} for name, _colon, needed in pairs}


def main(arguments: list[str] | None = None) -> int:
    """Run all targets."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=2, help="how many targets run at the same time (default: 2)")
    parser.add_argument("--again", nargs="*", default=[], help="the targets whose failed tests run again at the end")
    parser.add_argument("targets", nargs="+", metavar="TARGET[:NEEDED,...]")
    options = parser.parse_args(arguments)
    schedule = Schedule(parse(options.targets))
    with ThreadPoolExecutor(max(1, options.workers)) as pool:
        workers = [pool.submit(schedule.work) for _ in range(max(1, options.workers))]
        while not all(worker.done() for worker in workers):
            try:
                wait(workers)
            except KeyboardInterrupt:
                schedule.stop()
    with suppress(KeyboardInterrupt):
        schedule.again(set(options.again))
    return schedule.close()


if __name__ == "__main__":
    # A shell without job control lets its background processes ignore Ctrl-C; nohup lets them ignore SIGHUP, and means it.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)
    sys.exit(main())
