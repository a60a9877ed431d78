# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps of ``make test``: their order, their exit code, and the slowest tests."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest
import steps
from steps import Step

MOST = 10.0  # seconds
DURATIONS = """
============================= slowest 10 durations =============================
4.18s call     tests/unit/test_a.py::test_first[1]
12.50s setup    tests/unit/test_b.py::test_second
0.91s teardown tests/unit/test_a.py::test_first[1]
"""


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The targets in the order in which they end; a target whose name begins with "slow" ends after another has."""
    ended: list[str] = []
    other = threading.Event()

    def run(name: str) -> Step:
        if name.startswith("slow"):
            other.wait(MOST)
        ended.append(name)
        other.set()
        return Step(name, int(name.endswith("fails")), 0.1, DURATIONS)

    monkeypatch.setattr(steps, "run", run)
    return ended


def test_a_target_waits_for_the_targets_that_it_needs_and_others_do_not(made: list[str]) -> None:
    assert steps.main(["--workers", "3", "slow-images", "hosts:slow-images", "lint"]) == 0
    assert made == ["lint", "slow-images", "hosts"]


def test_all_targets_run_even_if_a_needed_target_fails(made: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert steps.main(["images-fails", "hosts:images-fails"]) == 1
    assert made == ["images-fails", "hosts"]
    assert capsys.readouterr().out.endswith("failed: images-fails\n")


def test_an_unknown_needed_target_is_refused() -> None:
    with pytest.raises(SystemExit, match="hosts needs image, which is not in the list of targets"):
        steps.main(["images", "hosts:image"])


def test_a_target_is_made_and_its_cpu_time_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = "import sys, time; print('made'); end = time.process_time() + 0.2\nwhile time.process_time() < end: pass\nsys.exit(3)"
    (tmp_path / "busy.py").write_text(program)
    (tmp_path / "Makefile").write_text(f"busy:\n\t@{sys.executable} busy.py\n")
    monkeypatch.chdir(tmp_path)
    step = steps.run("busy")
    assert (step.code, step.output.startswith("made\n")) == (2, True)
    assert step.cpu >= 0.2


def test_the_slowest_tests_are_sorted_over_all_steps() -> None:
    found = steps.slowest([Step("a", 0, 1, DURATIONS), Step("b", 0, 1, "99.00s call     tests/c.py::test_third\n")], 2)
    assert found == [
        (99.0, "call", "tests/c.py::test_third"),
        (12.5, "setup", "tests/unit/test_b.py::test_second"),
    ]
