# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The session store on the head: the queue, the history and the leases. The only file that imports sqlite3.

What runs is told by the engines' labels, never by this file; it holds what they cannot.
"""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Dict, Iterable, Iterator, List

from ansible_collections.cluster.compute.plugins.module_utils._core import states as _states
from ansible_collections.cluster.compute.plugins.module_utils._core.errors import NotFoundError, StateError
from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json
from ansible_collections.cluster.compute.plugins.module_utils._head.state_folder import make_private

_FILE = "sessions.db"
# How long a second operator waits for the first one's transaction, in seconds.
_PATIENCE = 30.0

_SCHEMA = """
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS session (
    id TEXT PRIMARY KEY, name TEXT NOT NULL, owner TEXT NOT NULL, resource_group TEXT NOT NULL, state TEXT NOT NULL,
    result TEXT NOT NULL DEFAULT '', reason TEXT NOT NULL DEFAULT '', priority INTEGER NOT NULL DEFAULT 0,
    request TEXT NOT NULL DEFAULT 'null', plan TEXT NOT NULL DEFAULT 'null', holder TEXT NOT NULL DEFAULT 'null',
    lease REAL NOT NULL DEFAULT 0, created REAL NOT NULL, changed REAL NOT NULL
);
CREATE UNIQUE INDEX IF NOT EXISTS live_name ON session (owner, name)
    WHERE state NOT IN ('TERMINATED', 'ERROR', 'CANCELLED');
CREATE INDEX IF NOT EXISTS by_state ON session (state);
CREATE TABLE IF NOT EXISTS history (
    session TEXT NOT NULL REFERENCES session (id), time REAL NOT NULL, before TEXT NOT NULL, after TEXT NOT NULL,
    reason TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS history_of ON history (session, time);
COMMIT;
"""
_COLUMNS = (
    "id", "name", "owner", "resource_group", "state", "result", "reason", "priority",
    "request", "plan", "holder", "lease", "created", "changed",
)  # fmt: skip
_DOCUMENTS = ("request", "plan", "holder")


@dataclass
class Row:
    """A session as the store holds it. ``lease`` is until when its controller may launch or end it."""

    id: str
    name: str
    owner: str
    resource_group: str
    state: str = ""
    result: str = ""
    reason: str = ""
    priority: int = 0
    request: Any = None
    plan: Any = None
    holder: Any = None
    lease: float = 0.0
    created: float = 0.0
    changed: float = 0.0
    history: List[Json] = field(default_factory=list)


class Store:
    """One SQLite file, opened for one transaction at a time."""

    def __init__(self, folder: str, read_only: bool = False) -> None:
        path = os.path.join(folder, _FILE)
        if not read_only:
            make_private(folder, path)
        elif not _is_filled(path):
            path = ":memory:"
        self._path = path
        with self._errors():
            self._db = sqlite3.connect(path, timeout=_PATIENCE, isolation_level=None)
            if not read_only or path == ":memory:":
                self._db.executescript(_SCHEMA)

    def close(self) -> None:
        self._db.close()

    @contextmanager
    def transaction(self, keep: bool = True) -> Iterator[Store]:
        """One immediate transaction: no other writer comes between. ``keep=False`` computes and changes nothing.

        That one is immediate, too: SQLite does not wait for a reader's turn to write, it refuses.
        """
        with self._errors():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT" if keep else "ROLLBACK")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """What the file itself suffers from: locked too long, a full disk, not a database."""
        try:
            yield
        except sqlite3.IntegrityError:
            raise
        except sqlite3.DatabaseError as error:
            raise StateError("The session store %s cannot be used: %s." % (self._path, error), self._path) from error

    def add(self, row: Row, now: float, reason: str) -> None:
        """A new session, in the state it starts with."""
        _states.check_change(row.name, "", row.state)
        row.created, row.changed, row.reason = row.created or now, now, reason
        marks = ", ".join("?" * len(_COLUMNS))
        self._db.execute("INSERT INTO session (%s) VALUES (%s)" % (", ".join(_COLUMNS), marks), _values(row))
        self._note(row.id, now, "", row.state, reason)

    def change(self, row: Row, state: str, now: float, reason: str) -> None:
        """Move a session to another state, with its time and reason; whatever else ``row`` holds is saved with it."""
        _states.check_change(row.name, row.state, state)
        self._note(row.id, now, row.state, state, reason)
        row.state, row.reason, row.changed = state, reason, now
        if state not in _states.LAUNCHING and state != _states.TERMINATING:
            row.holder, row.lease = None, 0.0
        self.save(row)

    def note(self, row: Row, now: float, reason: str) -> None:
        """Something worth its line in the history that does not change the state."""
        self._note(row.id, now, row.state, row.state, reason)
        row.reason, row.changed = reason, now
        self.save(row)

    def save(self, row: Row) -> None:
        """Save what has changed beside the state."""
        pairs = ", ".join("%s = ?" % name for name in _COLUMNS)
        self._db.execute("UPDATE session SET %s WHERE id = ?" % pairs, (*_values(row), row.id))

    def forget(self, row: Row) -> None:
        """Drop a session with its history, as if it had never been known."""
        self._db.execute("DELETE FROM history WHERE session = ?", (row.id,))
        self._db.execute("DELETE FROM session WHERE id = ?", (row.id,))

    def get(self, session_id: str) -> Row | None:
        rows = self._select("id = ?", (session_id,))
        return rows[0] if rows else None

    def find(self, name: str, owner: str) -> Row | None:
        """The live session of that name, if there is one."""
        rows = self._select("name = ? AND owner = ? AND " + _LIVE, (name, owner))
        return rows[0] if rows else None

    def need(self, session_id: str) -> Row:
        row = self.get(session_id)
        if row is None:
            raise NotFoundError("There is no session %s in the store." % session_id, session_id)
        return row

    def live(self, states: Iterable[str] = _states.LIVE) -> List[Row]:
        """The sessions in these states, which is all that have not ended; oldest first."""
        wanted = tuple(states)
        return self._select("state IN (%s)" % ", ".join("?" * len(wanted)), wanted)

    def adopted(self) -> List[Row]:
        """Running sessions of which nothing is known but their labels."""
        return self._select("state = ? AND request = 'null'", (_states.RUNNING,))

    def states(self) -> Dict[str, str]:
        """The state of every session ever recorded, by its id."""
        return dict(self._db.execute("SELECT id, state FROM session").fetchall())

    def select(self, name: str | None, owner: str | None, ended: bool) -> List[Row]:
        """Sessions by name and owner, with their history; ``ended`` adds those that are over."""
        wheres, values = ["1 = 1"], []
        for column, value in (("name", name), ("owner", owner)):
            if value:
                wheres.append("%s = ?" % column)
                values.append(value)
        if not ended:
            wheres.append(_LIVE)
        rows = self._select(" AND ".join(wheres), tuple(values))
        for row in rows:
            row.history = self.history(row.id)
        return rows

    def history(self, session_id: str) -> List[Json]:
        query = "SELECT time, before, after, reason FROM history WHERE session = ? ORDER BY time, rowid"
        return [dict(zip(("time", "before", "after", "reason"), one)) for one in self._db.execute(query, (session_id,))]

    def _note(self, session_id: str, now: float, before: str, after: str, reason: str) -> None:
        self._db.execute("INSERT INTO history VALUES (?, ?, ?, ?, ?)", (session_id, now, before, after, reason))

    def _select(self, where: str, values: Any) -> List[Row]:
        query = "SELECT %s FROM session WHERE %s ORDER BY created, rowid" % (", ".join(_COLUMNS), where)
        return [_row(values) for values in self._db.execute(query, values)]


_LIVE = "state NOT IN (%s)" % ", ".join("'%s'" % state for state in sorted(_states.ENDED))


def _values(row: Row) -> Any:
    return tuple(
        json.dumps(getattr(row, name), sort_keys=True) if name in _DOCUMENTS else getattr(row, name)
        for name in _COLUMNS
    )


def _row(values: Any) -> Row:
    pairs = dict(zip(_COLUMNS, values))
    for name in _DOCUMENTS:
        pairs[name] = json.loads(pairs[name])
    return Row(**pairs)


def _is_filled(path: str) -> bool:
    """Whether there is a store with its tables: a process may have ended right after it made the file."""
    return os.path.exists(path) and os.path.getsize(path) > 0
