# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waiting with a deadline: every loop that polls or tries again is one of these two."""

from __future__ import annotations

import time
from typing import Callable, TypeVar

Value = TypeVar("Value")

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 2.0


def deadline_in(seconds: float) -> float:
    """The point of the monotonic clock that lies this many seconds ahead."""
    return time.monotonic() + seconds


def wait_until(
    predicate: Callable[[], Value],
    deadline: float,
    first_pause: float = FIRST_PAUSE,
    longest_pause: float = LONGEST_PAUSE,
    growth: float = 1.5,
) -> Value:
    """Call the predicate until its value is true, and return that value.

    At the deadline the last value is returned as it is: the caller decides what a wait in vain means. The predicate is
    called at least once, and a last time when the deadline has come. Pauses grow from ``first_pause`` to
    ``longest_pause`` seconds.
    """
    pause = first_pause
    while True:
        value = predicate()
        left = deadline - time.monotonic()
        if value or left <= 0:
            return value
        time.sleep(min(pause, left))
        pause = min(growth * pause, longest_pause)


def retry_until(call: Callable[[], Value], is_transient: Callable[[Exception], bool], deadline: float) -> Value:
    """Call until it succeeds and return its value.

    An error that is not transient is raised at once; a transient one when the next try would come after the deadline.
    """
    pause = FIRST_PAUSE
    while True:
        try:
            return call()
        except Exception as error:
            if not is_transient(error) or time.monotonic() + pause > deadline:
                raise
        time.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)
