# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Targets of the Makefile: the inventory of playbooks; the steps of ``make test``: their order, their exit code, and the slowest tests."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import steps
from steps import Step

from ansible_collections.cluster.compute.plugins.module_utils._shared.waiting import deadline_in, wait_until

ROOT = Path(__file__).resolve().parents[2]
MOST = 10.0  # seconds
# The first one passes at its second run, the second one never.
UNSTEADY = """
from pathlib import Path
def test_unsteady():
    ran = Path("ran").exists()
    Path("ran").touch()
    assert ran, "the engine was late"
def test_broken():
    assert False
def test_steady():
    pass
def test_elsewhere():
    __import__("pytest").skip("no GPU")
"""
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

    def run(name: str, second: str = "later") -> Step:
        if name.startswith("slow"):
            other.wait(MOST)
        ended.append(name if second == "later" else f"{name} {second}")
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
    assert capsys.readouterr().out.endswith(
        f"=== the end of images-fails, FAILED (1)\n{DURATIONS}failed: images-fails\n"
    )


def test_failed_tests_run_again_after_all_other_targets(made: list[str]) -> None:
    assert steps.main(["--again", "hosts-fails", "ssh", "--", "lint-fails", "hosts-fails", "ssh", "unit"]) == 1
    assert made == ["lint-fails", "hosts-fails", "ssh", "unit", "hosts-fails now"]


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


@pytest.mark.parametrize("arguments", ["-i other", "-iother", "--inventory other", "--inventory=other"])
def test_an_inventory_of_the_user_replaces_that_of_this_machine(arguments: str) -> None:
    command = ["make", "--dry-run", "session", "terminate", "sessions", "logs", f"ARGS={arguments}", "PYTHON=python3"]
    made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert made.count(".venv/bin/ansible-playbook ") == 4
    assert "local" not in made.replace("localhost", "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_interrupts_the_steps_as_ctrl_c_does(tmp_path: Path, number: int) -> None:
    """What a step has started can clean up, and no other step starts."""
    program = "import time\ntry:\n    open('waits', 'w')\n    time.sleep(60)\nfinally:\n    open('cleaned', 'w')\n"
    (tmp_path / "wait.py").write_text(program)
    (tmp_path / "Makefile").write_text(f"wait:\n\t@{sys.executable} wait.py\nnext:\n\t@touch next\n")
    # These tests can run with nohup.
    command = ["env", "--default-signal=HUP", sys.executable, steps.__file__, "wait", "next:wait"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        wait_until((tmp_path / "waits").exists, deadline_in(MOST))
        process.send_signal(number)
        output, _errors = process.communicate(timeout=MOST)
    assert (process.returncode, (tmp_path / "cleaned").exists(), (tmp_path / "next").exists()) == (1, True, False)
    assert output.endswith("interrupted before next\nfailed: wait\n")


def test_the_slowest_tests_are_sorted_over_all_steps() -> None:
    found = steps.slowest([Step("a", 0, 1, DURATIONS), Step("b", 0, 1, "99.00s call     tests/c.py::test_third\n")], 2)
    assert found == [
        (99.0, "call", "tests/c.py::test_third"),
        (12.5, "setup", "tests/unit/test_b.py::test_second"),
    ]


def test_a_target_that_a_worker_has_taken_before_a_signal_is_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interruptible: None
) -> None:
    (tmp_path / "Makefile").write_text(f"wait:\n\t@sleep {MOST}\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(steps, "RUNNING", steps.Running())
    steps.RUNNING.stop()
    assert steps.run("wait").code != 0


def test_the_critical_path_is_the_chain_of_steps_that_waited_for_each_other() -> None:
    images, hosts = Step("images", 0, 10, "", start=0), Step("hosts", 0, 50, "", start=10.1)
    unit, lint = Step("unit", 0, 30, "", start=0), Step("lint", 0, 5, "", start=30.1)
    assert steps.critical_path([images, unit, lint, hosts]) == [images, hosts]


def test_the_total_says_how_busy_the_processors_were(
    made: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    moments = iter([(100, 1000), (250, 1200)])
    monkeypatch.setattr(steps, "ticks", lambda: next(moments))
    steps.main(["lint"])
    assert "the processors were busy for 75% of it" in capsys.readouterr().out


def test_the_processors_work_no_longer_than_they_could() -> None:
    used, possible = steps.ticks()
    assert 0 < used <= possible


def test_what_passes_at_the_second_run_is_shown_last_with_its_first_failure_and_the_totals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = subprocess.run(["make", "--dry-run", "hosts"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    folder = tmp_path / "tests/integration/multi_host"
    folder.mkdir(parents=True)
    (folder / "test_lab.py").write_text(UNSTEADY)
    (tmp_path / "recipe.sh").write_text(recipe[recipe.index("run() {") :])
    (tmp_path / "Makefile").write_text("hosts:\n\t@bash recipe.sh\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    assert steps.main(["--again", "hosts", "--", "hosts"]) == 1
    lines = capsys.readouterr().out.splitlines()
    end = lines.index("=== the end of hosts, FAILED (2)")
    assert lines[end - 6 : end] == [
        "=== passed at the second run only",
        f"tests/integration/multi_host/test_lab.py::test_unsteady (make hosts, SEED={steps.SEED})",
        "    AssertionError: the engine was late",
        "    assert False",
        "1 of 4 needed a second run",
        "2 passed, 1 failed",
    ]


def test_reports_of_an_earlier_run_do_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".cache/reports").mkdir(parents=True)
    (tmp_path / ".cache/reports/hosts.1.xml").write_text('<testsuite><testcase classname="a" name="b"/></testsuite>')
    (tmp_path / "Makefile").write_text("hosts:\n\t@true\n")
    assert steps.main(["hosts"]) == 0
    assert capsys.readouterr().out.splitlines()[-3:] == [
        "0 of 0 needed a second run",
        "0 passed, 0 failed",
        "all passed",
    ]
