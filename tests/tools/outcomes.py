# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the tests of a step ended, read from the reports that pytest writes, and the tests that only a second run passes.

A step writes ``.cache/reports/STEP.1.xml``, and ``STEP.2.xml`` if it runs its failed tests a second time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

REPORTS = Path(".cache/reports")
RUNS = (1, 2)
LINES = 12  # of the message of a failure


@dataclass(frozen=True)
class Outcome:
    """One test of a step: how often it ran, and the message of each failure."""

    step: str
    name: str
    runs: int
    failures: tuple[str, ...] = ()
    skipped: bool = False

    @property
    def failed(self) -> bool:
        """Whether the last run failed."""
        return len(self.failures) == self.runs

    @property
    def passed(self) -> bool:
        return not self.failed and not self.skipped

    @property
    def needed_second(self) -> bool:
        return self.passed and bool(self.failures)


def forget(step: str) -> None:
    """Remove the reports of an earlier run."""
    for number in RUNS:
        _report(step, number).unlink(missing_ok=True)


def outcomes(step: str) -> list[Outcome]:
    """The tests of a step that has ended; none if it runs no tests."""
    found: dict[str, Outcome] = {}
    for number in RUNS:
        for name, failure, skipped in _cases(_report(step, number)):
            before = found.get(name, Outcome(step, name, 0))
            failures = before.failures + ((failure,) if failure and len(before.failures) < number else ())
            found[name] = Outcome(step, name, number, failures, skipped)
    return list(found.values())


def summary(all_outcomes: Iterable[Outcome], seed: str) -> list[str]:
    """The last lines of a run: each test that passed at its second run only, with its first failure, and the totals."""
    tests = list(all_outcomes)
    second = [test for test in tests if test.needed_second]
    lines = [] if not second else ["=== passed at the second run only"]
    for test in second:
        lines += [f"{test.name} (make {test.step}, SEED={seed})"]
        lines += [f"    {line}" for line in test.failures[0].splitlines()[:LINES]]
    lines.append(f"{len(second):,} of {len(tests):,} needed a second run")
    lines.append(f"{sum(test.passed for test in tests):,} passed, {sum(test.failed for test in tests):,} failed")
    return lines


def _report(step: str, number: int) -> Path:
    return REPORTS / f"{step}.{number}.xml"


def _cases(report: Path) -> list[tuple[str, str, bool]]:
    """Name, message of the failure and whether it was skipped, of each test of a report, which may not exist."""
    if not report.exists():
        return []
    try:
        tree = ElementTree.parse(report)
    except ElementTree.ParseError:  # its process was killed
        return []
    return [_case(case) for case in tree.iter("testcase")]


def _case(case: ElementTree.Element) -> tuple[str, str, bool]:
    folder = case.get("classname", "").replace(".", "/")
    name = f"{folder}.py::{case.get('name')}" if folder else str(case.get("name"))
    failure = next((part for part in case if part.tag in ("failure", "error")), None)
    message = "" if failure is None else failure.get("message") or failure.text or failure.tag
    return name, message, case.find("skipped") is not None
