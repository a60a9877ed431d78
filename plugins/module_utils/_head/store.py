# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The session store on the head: the queue, the history and the leases. The only file that imports sqlite3.

The labels of the containers are the record of what runs. The store holds what they cannot.
"""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Callable, Collection, Dict, Iterable, Iterator, List, Sequence, Set

from ansible_collections.cluster.compute.plugins.module_utils._core.errors import NotFoundError, StateError
from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json, Plan
from ansible_collections.cluster.compute.plugins.module_utils._core.states import (
    ENDED,
    LAUNCHING,
    LIVE,
    RUNNING,
    TERMINATED,
    TERMINATING,
    check_change,
)
from ansible_collections.cluster.compute.plugins.module_utils._head.schema import SCHEMA
from ansible_collections.cluster.compute.plugins.module_utils._head.state_folder import make_private
from ansible_collections.cluster.compute.plugins.module_utils._planning.request import Request

_FILE = "sessions.db"
# Seconds that a second operator waits for the transaction of the first.
# SQLite's words: https://www.sqlite.org/rescode.html#full
_FULL = "disk is full"
_BUSY_TIMEOUT = 30.0

_COLUMNS = (
    "id", "name", "owner", "resource_group", "state", "result", "reason", "priority",
    "request", "plan", "holder", "lease", "created", "changed",
)  # fmt: skip
_PARSERS: Dict[str, Callable[[Json], Any]] = {"request": Request.from_json, "plan": Plan.from_json, "holder": dict}


@dataclass
class Row:
    """A session as the store holds it.

    ``lease`` is the time, in seconds since the epoch, until which the controller in ``holder`` may launch, repair or end
    the session. A session that is known only from its labels lacks both ``request`` and ``plan``.
    """

    id: str
    name: str
    owner: str
    resource_group: str
    state: str = ""
    result: str = ""
    reason: str = ""
    priority: int = 0
    request: Request | None = None
    plan: Plan | None = None
    holder: Json | None = None
    lease: float = 0.0
    created: float = 0.0
    changed: float = 0.0
    history: List[Json] = field(default_factory=list)

    @property
    def launch(self) -> str:
        """The ID of its last launch; of a session that is known from its labels alone, its own."""
        return self.plan.session.launch if self.plan else self.id

    def to_json(self) -> Json:
        """The session as results show it; the request and the plan are documents of their own."""
        return {
            "id": self.id,
            "name": self.name,
            "owner": self.owner,
            "group": self.resource_group,
            "state": self.state,
            "result": self.result,
            "reason": self.reason,
            "priority": self.priority,
            "launch": self.launch,
            "holder": self.holder,
            "created": self.created,
            "changed": self.changed,
        }


class FullStoreError(StateError):
    """The disk of the store is full."""


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
            self._db = sqlite3.connect(path, timeout=_BUSY_TIMEOUT, isolation_level=None)
            if not read_only or path == ":memory:":
                self._db.executescript(SCHEMA)

    @classmethod
    def copy(cls, folder: str) -> Store:
        """A copy in memory, whose changes are lost: of a store whose disk is full."""
        made = cls(folder, read_only=True)
        memory = sqlite3.connect(":memory:", isolation_level=None)
        with made._errors():
            made._db.backup(memory)
        made._db.close()
        made._db = memory
        return made

    def close(self) -> None:
        self._db.close()

    @contextmanager
    def transaction(self, keep: bool = True) -> Iterator[Store]:
        """One immediate transaction: no other writer comes between. With ``keep=False`` nothing is changed at the end.

        That transaction is immediate as well: SQLite refuses a reader that begins to write, it does not let it wait.
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
        """Errors of the file itself: locked for too long, a full disk, not a database."""
        try:
            yield
        except sqlite3.IntegrityError:
            raise
        except sqlite3.DatabaseError as error:
            kind = FullStoreError if _FULL in str(error) else StateError
            raise kind("The session store %s cannot be used: %s." % (self._path, error), self._path) from error

    def add(self, row: Row, now: float, reason: str) -> None:
        """Record a new session in its first state."""
        check_change(row.name, "", row.state)
        row.created, row.changed, row.reason = row.created or now, now, reason
        marks = ", ".join("?" * len(_COLUMNS))
        self._db.execute("INSERT INTO session (%s) VALUES (%s)" % (", ".join(_COLUMNS), marks), _values(row))
        self._note(row.id, now, "", row.state, reason)

    def change(self, row: Row, state: str, now: float, reason: str) -> None:
        """Move a session to another state, with its time and reason; all of ``row`` is saved."""
        check_change(row.name, row.state, state)
        self._note(row.id, now, row.state, state, reason)
        row.state, row.reason, row.changed = state, reason, now
        if state not in LAUNCHING and state != TERMINATING:
            row.holder, row.lease = None, 0.0
        self.save(row)

    def note(self, row: Row, now: float, reason: str) -> None:
        """Record a reason in the history without a change of state."""
        self._note(row.id, now, row.state, row.state, reason)
        row.reason, row.changed = reason, now
        self.save(row)

    def save(self, row: Row) -> None:
        """Save the row as it is, without an entry in the history."""
        pairs = ", ".join("%s = ?" % name for name in _COLUMNS)
        self._db.execute("UPDATE session SET %s WHERE id = ?" % pairs, (*_values(row), row.id))

    def forget(self, row: Row) -> None:
        """Delete a session and its history."""
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

    def live(self, states: Iterable[str] = LIVE) -> List[Row]:
        """The sessions in these states, by default all that have not ended; oldest first."""
        wanted = tuple(states)
        return self._select("state IN (%s)" % ", ".join("?" * len(wanted)), wanted)

    def adopted(self) -> List[Row]:
        """Running sessions that are known from their labels alone."""
        return self._select("state = ? AND request = 'null'", (RUNNING,))

    def states(self) -> Dict[str, str]:
        """The state of every session ever recorded, by its id."""
        retired = {row[0]: TERMINATED for row in self.query("retired", "SELECT id FROM retired")}
        return {**retired, **dict(self._db.execute("SELECT id, state FROM session").fetchall())}

    def ids(self, states: Collection[str]) -> Set[str]:
        """The IDs of the sessions in these states."""
        query = "SELECT id FROM session WHERE state IN (%s)" % ", ".join("?" * len(states))
        return {row[0] for row in self._db.execute(query, tuple(states))}

    def select(
        self, name: str | None, owner: str | None, ended: bool, only: Iterable[str] = (), limit: int = 0
    ) -> List[Row]:
        """Sessions by name and owner, oldest first, with their history.

        ``ended`` adds those that have ended, at most the newest ``limit`` of them; 0 is no limit. ``only`` names the states.
        """
        wanted = set(only) or (LIVE | ENDED if ended else LIVE)
        rows = self._matching(wanted & LIVE, name, owner, -1) + self._matching(wanted & ENDED, name, owner, limit or -1)
        for row in rows:
            row.history = self.history(row.id)
        return sorted(rows, key=lambda row: row.created)

    def _matching(self, states: Collection[str], name: str | None, owner: str | None, limit: int) -> List[Row]:
        """The newest sessions in these states, oldest first."""
        given = [(column, value) for column, value in (("name", name), ("owner", owner)) if value]
        # The plus keeps SQLite from sorting all sessions of a state: it reads an index by time, and stops at the limit.
        sign = "+" if limit > 0 else ""
        wheres = [
            sign + "state IN (%s)" % ", ".join("?" * len(states)),
            *("%s = ?" % column for column, _value in given),
        ]
        values = (*states, *(value for _column, value in given), limit)
        query = "SELECT %s FROM session WHERE %s ORDER BY created DESC, rowid DESC LIMIT ?"
        found = self._db.execute(query % (", ".join(_COLUMNS), " AND ".join(wheres)), values)
        return [_row(columns) for columns in found][::-1]

    def query(self, table: str, statement: str, values: Sequence[Any] = ()) -> List[Any]:
        """The rows of a statement about a table; none if a store of an earlier release, opened to be read, lacks the table."""
        known = self._db.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (table,)).fetchone()
        return self._db.execute(statement, values).fetchall() if known else []

    def execute(self, statement: str, values: Sequence[Any] = ()) -> int:
        """Change the store, and return the number of rows that were changed."""
        return int(self._db.execute(statement, values).rowcount)

    def history(self, session_id: str) -> List[Json]:
        query = "SELECT time, before, after, reason FROM history WHERE session = ? ORDER BY time, rowid"
        names = ("time", "before", "after", "reason")
        return [dict(zip(names, values)) for values in self._db.execute(query, (session_id,))]

    def _note(self, session_id: str, now: float, before: str, after: str, reason: str) -> None:
        self._db.execute("INSERT INTO history VALUES (?, ?, ?, ?, ?)", (session_id, now, before, after, reason))

    def _select(self, where: str, values: Any) -> List[Row]:
        query = "SELECT %s FROM session WHERE %s ORDER BY created, rowid" % (", ".join(_COLUMNS), where)
        return [_row(values) for values in self._db.execute(query, values)]


# As the index of states needs it: a condition on those that have ended would read every session.
_LIVE = "state IN (%s)" % ", ".join("'%s'" % state for state in sorted(LIVE))


def _values(row: Row) -> Any:
    documents = {
        "request": row.request.to_json() if row.request else None,
        "plan": row.plan.to_json() if row.plan else None,
        "holder": row.holder,
    }
    return tuple(
        json.dumps(documents[name], sort_keys=True) if name in documents else getattr(row, name) for name in _COLUMNS
    )


def _row(values: Any) -> Row:
    pairs = dict(zip(_COLUMNS, values))
    for name, parse in _PARSERS.items():
        document = json.loads(pairs[name])
        pairs[name] = None if document is None else parse(document)
    return Row(**pairs)


def _is_filled(path: str) -> bool:
    """Whether there is a store with its tables: a process may have ended right after it created the file."""
    return os.path.exists(path) and os.path.getsize(path) > 0
