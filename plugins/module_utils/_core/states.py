# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The states of a session, and which may follow which: the one table that every change is checked against."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from typing import Dict, FrozenSet

from ansible_collections.cluster.compute.plugins.module_utils._core.errors import StateError

PENDING = "PENDING"
SCHEDULED = "SCHEDULED"
PREPARING = "PREPARING"
RUNNING = "RUNNING"
TERMINATING = "TERMINATING"
TERMINATED = "TERMINATED"
ERROR = "ERROR"
CANCELLED = "CANCELLED"

FOLLOWS: Dict[str, FrozenSet[str]] = {
    # RUNNING straight from nothing: a session adopted from its labels after the store was lost.
    "": frozenset({PENDING, RUNNING}),
    PENDING: frozenset({SCHEDULED, CANCELLED, ERROR}),
    SCHEDULED: frozenset({PREPARING, TERMINATING, ERROR}),
    PREPARING: frozenset({RUNNING, TERMINATING, ERROR}),
    RUNNING: frozenset({TERMINATING}),
    TERMINATING: frozenset({TERMINATED}),
    TERMINATED: frozenset(),
    ERROR: frozenset(),
    CANCELLED: frozenset(),
}
ENDED = frozenset(state for state, after in FOLLOWS.items() if not after)
LIVE = frozenset(FOLLOWS) - ENDED - {""}
# Being launched by a controller, which holds a lease on what was placed.
LAUNCHING = frozenset({SCHEDULED, PREPARING})
# Holds what it was placed on.
HOLDING = frozenset({SCHEDULED, PREPARING, RUNNING, TERMINATING})


def check_change(name: str, before: str, after: str) -> None:
    """Refuses a change that the table does not have."""
    if after not in FOLLOWS[before]:
        raise StateError("Session %s is %s and cannot become %s." % (name, before or "new", after), name)
