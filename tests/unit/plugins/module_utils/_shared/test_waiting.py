# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waits end at their deadline, and retries stop at a permanent error."""

from __future__ import annotations

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._shared import waiting
from ansible_collections.cluster.compute.plugins.module_utils._shared.waiting import retry_until, wait_until


class Clock:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 0.0
        self.pauses: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(waiting, "time", made)
    return made


def test_a_wait_returns_the_first_true_value(clock: Clock) -> None:
    values = iter(["", "", "ready", "later"])
    assert wait_until(lambda: next(values), 60.0) == "ready"
    assert len(clock.pauses) == 2


def test_a_wait_looks_a_last_time_at_its_deadline(clock: Clock) -> None:
    looks: list[float] = []
    assert wait_until(lambda: looks.append(clock.now) or "", 1.0) == ""
    assert looks[0] == 0.0
    assert looks[-1] == pytest.approx(1.0)


def test_pauses_grow_up_to_the_longest(clock: Clock) -> None:
    wait_until(lambda: False, 100.0, first_pause=1.0, longest_pause=4.0, growth=2.0)
    assert clock.pauses[:4] == [1.0, 2.0, 4.0, 4.0]


@pytest.mark.parametrize("deadline", [-1.0, 0.0])
def test_a_deadline_that_has_passed_leaves_one_look(clock: Clock, deadline: float) -> None:
    assert wait_until(lambda: 7, deadline) == 7
    assert wait_until(lambda: 0, deadline) == 0
    assert clock.pauses == []


def is_busy(error: Exception) -> bool:
    return isinstance(error, BlockingIOError)


def test_what_is_busy_is_tried_again(clock: Clock) -> None:
    tries: list[int] = []

    def call() -> str:
        tries.append(1)
        if len(tries) < 3:
            raise BlockingIOError
        return "done"

    assert retry_until(call, is_busy, 60.0) == "done"
    assert clock.pauses == [0.1, 0.2]


def test_an_error_that_does_not_pass_is_raised_at_once(clock: Clock) -> None:
    def call() -> None:
        raise KeyError

    with pytest.raises(KeyError):
        retry_until(call, is_busy, 60.0)
    assert clock.pauses == []


def test_the_last_error_is_raised_at_the_deadline(clock: Clock) -> None:
    def call() -> None:
        raise BlockingIOError

    with pytest.raises(BlockingIOError):
        retry_until(call, is_busy, 5.0)
    assert clock.now <= 5.0
