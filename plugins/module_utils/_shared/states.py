# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The states of a session, and the table of allowed changes."""

from __future__ import annotations

from typing import Dict, FrozenSet

from .errors import StateError

PENDING = "PENDING"
SCHEDULED = "SCHEDULED"
PREPARING = "PREPARING"
RUNNING = "RUNNING"
TERMINATING = "TERMINATING"
TERMINATED = "TERMINATED"
ERROR = "ERROR"
CANCELLED = "CANCELLED"

FOLLOWS: Dict[str, FrozenSet[str]] = {
    # A session that is adopted from its labels, after the store was lost, begins as RUNNING.
    "": frozenset({PENDING, RUNNING}),
    PENDING: frozenset({SCHEDULED, CANCELLED, ERROR}),
    SCHEDULED: frozenset({PREPARING, TERMINATING, ERROR}),
    # It waits again if something outside of the collection has taken its subnet or a port.
    PREPARING: frozenset({RUNNING, TERMINATING, ERROR, PENDING}),
    RUNNING: frozenset({TERMINATING}),
    TERMINATING: frozenset({TERMINATED}),
    TERMINATED: frozenset(),
    ERROR: frozenset(),
    CANCELLED: frozenset(),
}
# The reason of a session that runs, and of which nothing else is known.
VERIFIED = "every container is verified"
ENDED = frozenset(state for state, after in FOLLOWS.items() if not after)
LIVE = frozenset(FOLLOWS) - ENDED - {""}
# What a list may be about.
SHOWN: Dict[str, FrozenSet[str]] = {
    "running": LIVE,
    "finished": frozenset({TERMINATED}),
    "other": frozenset({ERROR, CANCELLED}),
}
# A controller launches the session and holds a lease.
LAUNCHING = frozenset({SCHEDULED, PREPARING})
# The session holds the resources that it was placed on.
HOLDING = frozenset({SCHEDULED, PREPARING, RUNNING, TERMINATING})


def check_change(name: str, before: str, after: str) -> None:
    """Raise StateError for a change that the table does not allow."""
    if after not in FOLLOWS.get(before, ()):
        raise StateError(f"Session {name} is {before or 'new'} and cannot become {after}.", name)
