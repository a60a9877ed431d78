# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How long the head keeps sessions that have ended, and their logs."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import os
import shutil
import stat
from typing import Iterable, List, Set, Tuple

from .._core import states
from .._core.forms import UUID
from .._core.reports import Agent
from .awaited import awaited_ids
from .store import Store

_DAY = 86400.0


def expired(store: Store, agents: Iterable[Agent], now: float, days: int) -> List[str]:
    """The sessions that ended more than ``days`` ago, except those of which an agent still has something, and those
    that others wait for."""
    if not days:
        return []
    seen = {container.session for agent in agents for container in agent.containers}
    seen |= {session for agent in agents for session in agent.network_sessions} | set(awaited_ids(store))
    marks = ", ".join("?" * len(states.ENDED))
    query = f"SELECT id FROM session WHERE state IN ({marks}) AND changed < ? ORDER BY changed"
    found = store.query("session", query, (*sorted(states.ENDED), now - days * _DAY))
    return [row[0] for row in found if row[0] not in seen]


def retire(store: Store, sessions: Iterable[str], now: float) -> None:
    """Remove ended sessions with their plans and their history.

    Their IDs stay: what a lost agent may still have of them is removed when it is back, and never adopted as a session
    that runs.
    """
    for session in sessions:
        store.execute("INSERT OR REPLACE INTO retired VALUES (?, ?)", (session, now))
        store.execute("DELETE FROM history WHERE session = ?", (session,))
        store.execute("DELETE FROM session WHERE id = ?", (session,))


def is_retired(store: Store, session: str) -> bool:
    """Whether the store has known a session and removed it."""
    return bool(store.query("retired", "SELECT 1 FROM retired WHERE id = ?", (session,)))


def surplus_logs(folder: str, live: Set[str], log_bytes: int) -> List[str]:
    """The sessions whose logs are more than ``log_bytes`` together with those of sessions that ended later."""
    if not log_bytes:
        return []
    surplus, total = [], 0
    for _changed, session, size in sorted(_log_folders(folder), reverse=True):
        total += size
        if total > log_bytes and session not in live:
            surplus.append(session)
    return surplus


def remove_logs(folder: str, sessions: Iterable[str]) -> List[str]:
    """Remove the kept logs of these sessions; returns those that had any."""
    removed = []
    for session in sessions:
        path = os.path.join(folder, session)
        if UUID(session) and _is_folder(path):
            # It does not follow links; what cannot be removed now is tried again by the next pass.
            shutil.rmtree(path, ignore_errors=True)
            removed.append(session)
    return removed


def _log_folders(folder: str) -> List[Tuple[float, str, int]]:
    """The time, the session and the bytes of each folder of logs."""
    found = []
    for name in os.listdir(folder) if os.path.isdir(folder) else []:
        path = os.path.join(folder, name)
        if UUID(name) and _is_folder(path):
            sizes = [entry.stat(follow_symlinks=False).st_size for entry in os.scandir(path)]
            found.append((os.lstat(path).st_mtime, name, sum(sizes)))
    return found


def _is_folder(path: str) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False
