# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""With restart_all, the death of a container restarts all of them: each restart is an entry of the session's history."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from typing import Sequence

from .._core.constants import RESTART_ALL
from .._core.exits import what_happened
from .._core.reports import Agent
from .._planning.loss import RESTARTED, restart_turn
from .listing import list_sessions
from .row import Row
from .store import Store


def note_restart(store: Store, row: Row, agents: Sequence[Agent], now: float) -> bool:
    """Whether all containers restart. Then it is counted, and the session has no result until its command has ended again."""
    if row.plan is None or row.plan.session.on_failure != RESTART_ALL:
        return False
    [session] = list_sessions([row], agents)
    restarts = row.plan.session.restarts
    count = restart_turn(store.history(row.id), restarts, now).count + 1
    row.result = ""
    store.note(row, now, "%s (%d of %d): %s" % (RESTARTED, count, restarts, what_happened(session)))
    return True
