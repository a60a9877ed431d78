# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Notes in the history of running sessions: when they lose containers or something fails in them, and when all is well again."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from typing import List, Sequence

from .._core import states
from .._core.exits import failed_apps, limit_reached, what_happened
from .._core.reports import Agent
from .listing import list_sessions
from .row import Row
from .store import Store

_DEGRADED = "degraded: "
_UNHEALTHY = "unhealthy: "
_WHOLE, _WELL = "every container runs again", "every app runs again"


def note_degraded(store: Store, agents: Sequence[Agent], owner: str, now: float) -> List[Row]:
    """Note which sessions of an owner lack containers or apps, and which no longer do; returns those that newly do.

    A session that another controller repairs, that has a result, or that ends by itself is not noted. A command that has
    failed is a result, which is recorded when the session ends or a controller waits for it.
    """
    rows = [
        row
        for row in store.live({states.RUNNING})
        if row.owner == owner and row.plan and row.holder is None and not row.result
    ]
    found = []
    for row, session in zip(rows, list_sessions(rows, agents)):
        if limit_reached(session["containers"]):
            continue
        is_lacking = bool(session["degraded"] or failed_apps(session["containers"]))
        noted = _last_note(store, row)
        back = _WHOLE if noted.startswith(_DEGRADED) else _WELL
        reason = (_DEGRADED if session["degraded"] else _UNHEALTHY) + what_happened(session) if is_lacking else back
        if reason != noted and (is_lacking or noted.startswith((_DEGRADED, _UNHEALTHY))):
            _note(store, row, now, reason)
            found += [row] if is_lacking else []
    return found


def _last_note(store: Store, row: Row) -> str:
    """The last reason in the history of a session. Its row may have the reason of a repair that failed."""
    history = store.history(row.id)
    return str(history[-1]["reason"]) if history else ""


def _note(store: Store, row: Row, now: float, reason: str) -> None:
    """The state does not change, nor does its time."""
    changed = row.changed
    store.note(row, now, reason)
    row.changed = changed
    store.save(row)
