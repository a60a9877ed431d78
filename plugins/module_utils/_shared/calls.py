# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The requests that this process sends to engines: when each began, how long it took, and for which container."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import Iterator, List, Tuple

# A module that polls for a long time sends thousands: the first are enough for a trace.
MOST_CALLS = 4000

# The time of the monotonic clock, seconds, what was asked, and the container or an empty text.
Call = Tuple[float, float, str, str]
_calls: List[Call] = []


@contextmanager
def timed(what: str, subject: str) -> Iterator[None]:
    """Record one request. Threads may do so at the same time."""
    begun = time.monotonic()
    try:
        yield
    finally:
        if len(_calls) < MOST_CALLS:
            _calls.append((begun, time.monotonic() - begun, what, subject))


def taken(since: float) -> List[Call]:
    """The requests since the last time that this was asked, with their seconds after ``since``."""
    found, _calls[:] = list(_calls), []
    return [(round(begun - since, 4), round(seconds, 4), what, subject) for begun, seconds, what, subject in found]
