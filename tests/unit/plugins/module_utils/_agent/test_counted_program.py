# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs that fill a folder: real processes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._agent import counted_program
from ansible_collections.cluster.compute.plugins.module_utils._agent.counted_program import run_program, size_of
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import StateError


def run(*argv: str, deadline: int = 60) -> None:
    run_program("agent1", argv, "/nowhere", deadline, "")


def test_a_program_that_succeeds_says_nothing() -> None:
    run("sh", "-c", "echo E: tried again")


def test_what_a_program_makes_is_for_all_users_whatever_the_umask_of_root_is(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        run("mkdir", str(tmp_path / "root"))
        with pytest.raises(StateError):
            run("/nowhere/program")
        assert os.umask(0o077) == 0o077
    finally:
        os.umask(before)
    assert (tmp_path / "root").stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("sh", "-c", "echo E: no package x >&2; exit 4"), "agent1: sh failed (exit code 4): E: no package x."),
        (("false",), "agent1: false failed (exit code 1): no output."),
        (("/nowhere/program",), "agent1: /nowhere/program cannot be run: No such file or directory."),
    ],
)
def test_a_failure_is_one_sentence(argv: tuple[str, ...], message: str) -> None:
    with pytest.raises(StateError) as caught:
        run(*argv)
    assert caught.value.message == message


def test_at_the_deadline_all_processes_of_the_program_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first shell removes its file at TERM, as mmdebstrap does; the second process ignores TERM."""
    monkeypatch.setattr(counted_program, "GRACE", 1)
    left, child = tmp_path / "left", tmp_path / "child"
    stubborn = f"trap '' TERM; echo $$ > {child}; exec sleep 600"
    script = f"trap 'rm {left}; exit' TERM; touch {left}; sh -c \"{stubborn.replace('$', chr(92) + '$')}\" & wait"
    with pytest.raises(StateError, match=r"^agent1: sh has not ended within 3 s; raise image_build_timeout"):
        run("sh", "-c", script, deadline=3)
    assert not left.exists()
    assert has_ended(child)


def test_at_the_deadline_the_children_of_a_program_that_was_killed_end(tmp_path: Path) -> None:
    """As when memory runs out: the kernel ends the program, and not what it has started."""
    child = tmp_path / "child"
    with pytest.raises(StateError, match=r"^agent1: sh has not ended within 2 s"):
        run("sh", "-c", f"sleep 600 & echo $! >{child}; kill -KILL $$", deadline=2)
    assert has_ended(child)


def has_ended(file: Path) -> bool:
    """Whether the process whose ID is in the file has ended."""
    status = Path("/proc", file.read_text().strip(), "stat")
    return not status.exists() or status.read_text().rpartition(")")[2].split()[0] == "Z"


def test_the_size_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "file").write_bytes(b"x" * 300_000)
    assert 300_000 <= size_of(str(tmp_path)) <= 400_000


def test_a_folder_that_is_not_measured_in_time_has_no_size(monkeypatch: pytest.MonkeyPatch) -> None:
    def late(*_arguments: object, **_options: object) -> None:
        raise subprocess.TimeoutExpired("du", 10)

    monkeypatch.setattr(subprocess, "run", late)
    assert size_of("/") == 0
