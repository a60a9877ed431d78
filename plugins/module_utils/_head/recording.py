# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A change of state, recorded in the store: in one transaction, with what it shows of the other sessions, and with logs."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from dataclasses import dataclass
from typing import List, Sequence, Tuple

from .._core.documents import Json
from .._core.errors import ComputeError
from .._core.states import PENDING, RUNNING, TERMINATING
from .kept_logs import keep_logs
from .row import Row
from .store import DamagedStoreError, FullStoreError, Store
from .transitions import CHANGES, Change
from .upkeep import adopt, removable

_ENDS = ("terminating", "terminated")
_UNRECORDED = ": the end of the session is not recorded; free some space on the head, and run terminate.yml again."
_FROM_LABELS = ". The session ends by its labels; its end is not recorded."


@dataclass(frozen=True)
class Recording:
    """A change to ``state``; ``folders`` are sessions with a folder on the controller, ``logs`` results of ``logs.read``."""

    state: str
    change: Change
    folders: Sequence[str] = ()
    logs: Sequence[Json] = ()

    def carry_out(self, folder: str, check_mode: bool) -> Json:
        """Record the change in the store of a folder, and return the result of the step."""
        warnings: List[str] = []
        try:
            row, result = self._changed(Store(folder, read_only=check_mode), keep=not check_mode)
        except (FullStoreError, DamagedStoreError) as error:
            if self.state not in _ENDS:
                raise
            # A session ends by its labels. Its end can be recorded later.
            is_full = isinstance(error, FullStoreError)
            row, result = self._changed(Store.copy(folder) if is_full else self._from_labels(), keep=True)
            by_labels = _FROM_LABELS if row else "."
            warnings = [f"{error.message.rstrip('.')}{_UNRECORDED if is_full else by_labels}"]
        warnings += self._keep(folder, row.id) if row and not check_mode else []
        return {"warnings": warnings, **result}

    def _from_labels(self) -> Store:
        """A store of what the engines hold."""
        store = Store.in_memory()
        with store.transaction():
            adopt(store, self.change.agents, self.change.now)
        return store

    def _changed(self, store: Store, *, keep: bool) -> Tuple[Row | None, Json]:
        """The session after the change, and the result."""
        try:
            with store.transaction(keep=keep):
                running = store.ids({RUNNING})
                before, row = CHANGES[self.state](store, self.change)
                ended = [store.get(session) for session in sorted(running - store.ids({RUNNING, TERMINATING}))]
                remove = removable(store, self.change.agents)
                ended_folders = store.ended(self.folders)
                waiting = [other for other in store.live({PENDING}) if row and other.owner == row.owner]
        finally:
            store.close()
        after = row.state if row else ""
        return row, {
            "changed": before != after,
            "session": row.to_json() if row else {},
            "ended_folders": ended_folders,
            "plan": row.plan.to_short_json() if row and row.plan else None,
            "remove": [session for session in remove if not row or session != row.id],
            "ended": [other.to_json() for other in ended if other and (not row or other.id != row.id)],
            "waiting": len(waiting),
            "diff": {"before": {"state": before}, "after": {"state": after}},
        }

    def _keep(self, folder: str, session_id: str) -> List[str]:
        """The change is recorded already: logs that cannot be kept are warnings."""
        try:
            if self.logs:
                keep_logs(folder, session_id, self.logs)
        except ComputeError as error:
            return [error.message]
        return []
