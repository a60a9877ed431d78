# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Work whose bytes are counted in a file while it goes on."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._agent.engine import counting
from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.counting import (
    LONGEST,
    LONGEST_LINE,
    ProgramOutput,
    progress_file,
    run_counted,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import StateError
from ansible_collections.cluster.compute.plugins.module_utils._shared.waiting import deadline_in

MOST = 30.0  # seconds


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "PERIOD", 0.001)
    monkeypatch.setattr(counting, "PATIENCE", 0)


def test_the_bytes_are_in_the_file_while_the_work_goes_on(tmp_path: Path) -> None:
    path, enough, asked = tmp_path / "progress", threading.Event(), []

    def count() -> int:
        asked.append(path.read_text())
        if len(asked) == 3:
            enough.set()
        return len(asked)

    def work() -> None:
        assert enough.wait(MOST)

    assert run_counted(work, count, str(path), deadline_in(MOST))
    assert asked[:3] == ["", "1\n", "2\n"]


def test_nothing_is_counted_without_a_file() -> None:
    asked: list[int] = []
    assert run_counted(lambda: None, lambda: asked.append(1) or 1, None, deadline_in(MOST))
    assert asked == []


def test_the_error_of_the_work_is_raised() -> None:
    def work() -> None:
        raise StateError("agent1: it failed.")

    with pytest.raises(StateError, match="agent1: it failed"):
        run_counted(work, lambda: 0, None, deadline_in(MOST))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_work_that_ends_its_thread_is_not_done() -> None:
    with pytest.raises(ValueError, match="not enough values"):
        run_counted(sys.exit, lambda: 0, None, deadline_in(MOST))


def test_work_that_is_late_is_left(tmp_path: Path) -> None:
    end = threading.Event()
    try:
        assert not run_counted(lambda: assert_true(end.wait(MOST)), lambda: 0, str(tmp_path / "progress"), 0.0)
    finally:
        end.set()


def assert_true(value: bool) -> None:
    assert value


def test_a_file_or_link_that_is_there_is_left_alone(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("mine")
    link = tmp_path / "link"
    link.symlink_to(target)
    for path in (target, link, tmp_path / "missing" / "progress"):
        with progress_file(str(path)) as write:
            assert write is None
    assert target.read_text() == "mine"


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("", ""),
        ("\n \n", ""),
        ("one\ntwo\n\n", "two"),
        ("10 %\r20 %\rstopped\r\n", "stopped"),
        ("E: Unable to locate package x\nI: removing files\nE: failed to run\n", "E: Unable to locate package x"),
        (
            "ERROR: No matching distribution found for x\n\nnotice: update pip\n",
            "ERROR: No matching distribution found for x",
        ),
        (
            "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE. If you have updated\n"
            "    x==1.0 from https://p.example.org/x-1.0.whl (from -r requirements.lock (line 1)):\n"
            "        Expected sha256 00\n             Got        11\n\n",
            "ERROR: x==1.0 at https://p.example.org/x-1.0.whl does not have the digest that the requirements name",
        ),
        ("a.c:3:1: error: expected ;\nmake: *** [all] Error 1\n", "a.c:3:1: error: expected ;"),
        ("error: long ago\n" + "line\n" * 30, "line"),
        ("\x1b[31mred\x1b[0m \x1b]0;title\x07", "red \\x1b]0;title\\x07"),
    ],
)
def test_the_cause(text: str, cause: str) -> None:
    output = ProgramOutput()
    output.add(text)
    assert output.cause() == cause


def test_an_endless_line_is_bounded() -> None:
    output = ProgramOutput()
    for _piece in range(100):
        output.add("x" * 1000)
    assert len(output._end) == LONGEST
    assert len(output.cause()) == LONGEST_LINE
