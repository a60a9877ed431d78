# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands that are interrupted at a line of their output."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from playbook_runs import Interruption, family, run_watched

from ansible_collections.cluster.compute.plugins.module_utils._shared.waiting import deadline_in, wait_until

TRAPPED = ["sh", "-c", "trap 'echo left; exit 7' INT TERM; echo ready; while :; do sleep 0.05; done"]


def at(word: str, number: int, alone: bool = False) -> Interruption:
    return Interruption(lambda line: word in line, number, alone)


def lives(pid: int) -> bool:
    status = Path(f"/proc/{pid}/stat")
    return status.exists() and " Z " not in status.read_text()


def test_a_command_runs_to_its_end() -> None:
    ended = run_watched(["sh", "-c", "echo one; echo two >&2; exit 3"], 30)
    assert (ended.code, ended.text, ended.interrupted) == (3, "one\ntwo\n", False)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_lets_the_command_say_what_is_left(number: int) -> None:
    ended = run_watched(TRAPPED, 30, at("ready", number))
    assert (ended.code, ended.text.splitlines()[-1], ended.interrupted) == (7, "left", True)


@pytest.mark.parametrize("alone", [False, True])
def test_a_kill_hits_the_command_or_all_that_it_has_started(alone: bool) -> None:
    command = ["sh", "-c", "setsid sleep 60 & echo child $!; wait"]
    ended = run_watched(command, 30, at("child", signal.SIGKILL, alone))
    assert (ended.code, ended.interrupted) == (-signal.SIGKILL, True)
    child = int(ended.text.split()[1])
    if alone:
        assert lives(child)
        os.kill(child, signal.SIGKILL)
    assert wait_until(lambda: not lives(child), deadline_in(10))


def test_a_command_without_an_end_is_killed() -> None:
    ended = run_watched(TRAPPED, 0.3)
    assert (ended.code, ended.interrupted) == (-signal.SIGKILL, False)


def test_a_family_begins_with_the_process() -> None:
    assert family(os.getpid())[0] == os.getpid()
