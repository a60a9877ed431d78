# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""When all containers of a session restart together."""

from __future__ import annotations

from typing import Sequence, Tuple

from ..documents.decision import StateChange
from ..units import show_seconds

# The beginning of the reason of each restart of all containers, in the history of the session.
RESTARTED = "all containers restart"
# A session that has run for so many seconds since its last restart has all of its restarts again.
_SETTLED = 3600.0
# Seconds after a restart before the next one. They double up to the second number.
_FIRST_PAUSE, _LONGEST_PAUSE = 30.0, 900.0


def restart_turn(history: Sequence[StateChange], restarts: int, now: float) -> Tuple[int, str]:
    """Return how many restarts there have been since the session has settled, and why it is not time for another; empty if it is."""
    count, last = 0, 0.0
    for entry in history:
        if entry.reason.startswith(RESTARTED):
            count, last = (count + 1 if entry.time - last < _SETTLED else 1), entry.time
    # A clock that was set back must not keep restarts away until it has caught up.
    if not count or abs(now - last) >= _SETTLED:
        return 0, ""
    if count >= restarts:
        return count, "session_restarts is reached (%d); launch it again to restart it" % restarts
    pause = min(_FIRST_PAUSE * 2 ** min(count - 1, 10), _LONGEST_PAUSE)
    wait = last + pause - now
    return count, f"the next restart is due in {show_seconds(wait)}" if wait > 0 else ""
