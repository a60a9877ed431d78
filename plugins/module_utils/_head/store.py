# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The session store on the head: the queue, the history and the leases.

The labels of the containers are the record of what runs. The store holds what they cannot.
"""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Collection, Dict, Iterable, Iterator, List, Sequence, Set, Tuple

from .._shared.documents.decision import StateChange
from .._shared.documents.plan import Plan
from .._shared.documents.report import AgentReport
from .._shared.documents.usage import Sample
from .._shared.errors import NotFoundError, StateError
from .._shared.planning.capacity import held_in_all
from .._shared.planning.fair_share import Holding
from .._shared.planning.request import Request
from .._shared.planning.request_validation import invalid_request
from .._shared.states import ENDED, HOLDING, LIVE, PENDING, TERMINATED
from .database import FILE, connect, errors
from .session_record import (
    COLUMNS,
    DOCUMENTS,
    LIVE_ROWS,
    REMEDY,
    SCHEMA,
    VERSION,
    Fence,
    Requester,
    SessionRecord,
    Termination,
    Update,
    as_text,
    read_sample,
    row_of,
    stays,
    values_of,
)
from .snapshot import Context, Kept, Snapshot
from .state_folder import check_readable, is_filled, prepare_directory

# Seconds. Passes that follow one another sooner add no sample, and no sample is kept for longer.
_CLOSEST, _OLDEST = 20, 31 * 86400


class Store:
    """One SQLite file, opened for one transaction at a time."""

    def __init__(self, folder: str, read_only: bool = False) -> None:
        path = os.path.join(folder, FILE)
        if not read_only:
            prepare_directory(folder, path)
        else:
            check_readable(folder)
            if not is_filled(path):
                path = ":memory:"
        self._open(path, is_whole=read_only and path != ":memory:")

    def _open(self, path: str, *, is_whole: bool = False) -> None:
        self._path = path
        self._db = connect(path)
        self._db.text_factory, self._db.row_factory = bytes, as_text
        self._check_version()
        # What is opened to be read may be of an earlier release: each of its transactions, which change nothing, completes it.
        self._is_completed = not is_whole
        if is_whole:
            return
        with self.transaction():
            self._complete()
            self._db.execute(f"PRAGMA user_version = {VERSION}")

    def _complete(self) -> None:
        for statement in SCHEMA:
            self._db.execute(statement)

    def _check_version(self) -> None:
        """Refuse a store that a newer release has written: this one would write back less than it has found."""
        with errors(self._path):
            found = self._db.execute("PRAGMA user_version").fetchone()[0]
        if found > VERSION:
            message = "The session store %s is of a newer release (form %d, and this release writes %d): upgrade this controller."
            raise StateError(message % (self._path, found, VERSION), self._path)

    @classmethod
    def copy(cls, folder: str) -> Store:
        """A copy in memory, whose changes are lost: of a store whose disk is full."""
        made, memory = cls(folder, read_only=True), cls.__new__(cls)
        memory._open(":memory:", is_whole=True)
        memory._path = made._path
        with errors(made._path):
            made._db.backup(memory._db)
        made.close()
        return memory

    @classmethod
    def in_memory(cls) -> Store:
        """An empty store, whose changes are lost: in place of a damaged one."""
        made = cls.__new__(cls)
        made._open(":memory:")
        return made

    def close(self) -> None:
        self._db.close()

    @classmethod
    @contextmanager
    def opened(cls, folder: str, *, read_only: bool = False) -> Iterator[Store]:
        """Open the store of a directory for one transaction. With ``read_only``, nothing is changed at its end."""
        store = cls(folder, read_only)
        try:
            with store.transaction(keep=not read_only):
                yield store
        finally:
            store.close()

    @contextmanager
    def transaction(self, keep: bool = True) -> Iterator[Store]:
        """One immediate transaction: no other writer comes between. With ``keep=False`` nothing is changed at the end.

        That transaction is immediate as well: SQLite refuses a reader that begins to write, it does not let it wait.
        """
        with errors(self._path):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                if not self._is_completed:
                    self._complete()
                yield self
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT" if keep else "ROLLBACK")

    def snapshot(self, context: Context, request: Request | None = None) -> Snapshot:
        """Read what decisions about all sessions need, and about that of a request."""
        rows, rules = self.live(), context.policy.rules
        asking = [(row.owner, row.request) for row in rows if row.state == PENDING and row.request]
        asking += [(request.owner, request)] if request else []
        awaited = {(owner, name) for owner, one in asking for name in one.after}
        # What is older than ten half-lives counts less than a thousandth.
        since = context.now - 10 * rules.half_life
        return Snapshot(
            context,
            tuple(self._with_history(row) if request and row.is_of(request) else row for row in rows),
            self.ends_on(context.agents),
            {(owner, name): self.newest(name, owner) for owner, name in awaited},
            self.requesters(),
            tuple(self.holdings(since)) if rules.share_weight else (),
            dict(self.query("SELECT name, silent FROM agent WHERE silent IS NOT NULL")),
            self.nodes(),
            self.swarms(),
            tuple(self.fences()),
            self._kept(context.kept),
        )

    def _kept(self, session: str) -> Kept:
        known = self.get(session) if session else None
        return Kept(session, known.owner if known else "", has_ended=bool(session and self.ended([session])))

    def _with_history(self, row: SessionRecord) -> SessionRecord:
        return replace(row, history=tuple(self.history(row.id)))

    def apply(self, update: Update) -> SessionRecord:
        """Write what is decided about a session, and return the session."""
        row = update.session
        if update.is_new:
            marks = ", ".join("?" * len(COLUMNS))
            self._db.execute(f"INSERT INTO session ({', '.join(COLUMNS)}) VALUES ({marks})", values_of(row))
        else:
            self._save(row)
        if row.plan:
            self._db.execute("INSERT OR IGNORE INTO launch VALUES (?, ?)", (row.launch, row.id))
        for change in update.changes:
            self._db.execute("INSERT INTO history VALUES (?, ?, ?, ?, ?)", (row.id, *vars(change).values()))
            if change.before != change.after:
                self._book(replace(row, state=change.after), change.time if change.before else row.created)
        if update.resized:
            self._book(row, update.resized, again=True)
        if update.requester:
            self._db.execute("INSERT OR REPLACE INTO requester VALUES (?, ?, ?)", (row.id, *update.requester))
        self._db.executemany("INSERT OR REPLACE INTO fence VALUES (?, ?, ?)", update.fences)
        return row

    def fences(self) -> List[Fence]:
        """The agents that may still have old containers, by name."""
        return [
            Fence._make(found) for found in self.query("SELECT agent, session, node FROM fence ORDER BY agent, session")
        ]

    def add(self, row: SessionRecord, now: float, reason: str) -> SessionRecord:
        """Record a new session in its first state."""
        return self.apply(Update(row).add(now, reason))

    def change(self, row: SessionRecord, state: str, now: float, reason: str) -> SessionRecord:
        """Move a session to another state, with its time and reason; all of ``row`` is saved."""
        return self.apply(Update(row).change(state, now, reason))

    def note(self, row: SessionRecord, now: float, reason: str, *, is_change: bool = True) -> SessionRecord:
        """Record a reason in the history without a change of state, or with ``is_change=False`` of anything about the session."""
        return self.apply(Update(row).note(now, reason, is_change=is_change))

    def save(self, row: SessionRecord) -> SessionRecord:
        """Save the row as it is, without an entry in the history."""
        return self.apply(Update(row))

    def _save(self, row: SessionRecord) -> None:
        """Write the row.

        A request or a plan that cannot be used, or that has not changed, stays as it was found: another release may have written it,
        with more than this one reads.
        """
        found = self._db.execute("SELECT request, plan FROM session WHERE id = ?", (row.id,)).fetchone() or ("", "")
        staying = {name for name, text in zip(DOCUMENTS, found) if stays(row, name, text)}
        values = {name: value for name, value in zip(COLUMNS, values_of(row)) if name not in staying}
        pairs = ", ".join(f"{name} = ?" for name in values)
        self._db.execute(f"UPDATE session SET {pairs} WHERE id = ?", (*values.values(), row.id))

    def _book(self, row: SessionRecord, now: float, *, again: bool = False) -> None:
        """Begin or end what a session holds in the ledger; with ``again``, it holds another amount from now on."""
        is_open = self._db.execute("SELECT 1 FROM holding WHERE session = ? AND ended IS NULL", (row.id,)).fetchone()
        if is_open and (again or row.state not in HOLDING):
            self._db.execute("UPDATE holding SET ended = ? WHERE session = ? AND ended IS NULL", (now, row.id))
        if row.plan and row.state in HOLDING and (again or not is_open):
            held = held_in_all(one.resources for one in row.plan.containers)
            values = (row.id, row.owner, (not again and row.plan.session.began) or now, *held)
            self._db.execute("INSERT INTO holding VALUES (?, ?, ?, NULL, ?, ?, ?)", values)

    def requester(self, session_id: str) -> Requester | None:
        """Who has requested a session; None if that is not known."""
        found = self._db.execute("SELECT uid, login FROM requester WHERE session = ?", (session_id,)).fetchone()
        return Requester._make(found) if found else None

    def requesters(self) -> Dict[str, Requester]:
        """Who has requested each session that waits, as far as that is known."""
        query = "SELECT session, uid, login FROM requester JOIN session ON id = session WHERE state = ?"
        return {session: Requester(uid, login) for session, uid, login in self._db.execute(query, (PENDING,))}

    def holdings(self, since: float = 0.0) -> List[Holding]:
        """Return what sessions have held after a moment, in seconds since the epoch, without times that cannot be."""
        began, ended = "CAST(began AS REAL)", "CAST(ended AS REAL)"
        amounts = "CAST(millicpus AS INTEGER), CAST(memory AS INTEGER), min(CAST(gpus AS REAL), 1e11)"
        query = f"SELECT session, owner, {began}, {ended}, {amounts} FROM holding WHERE (ended IS NULL OR ended > ?)"
        possible = f" AND {began} BETWEEN 0 AND 1e11 AND ifnull({ended}, 0) < 1e11"
        return [Holding._make(values) for values in self._db.execute(query + possible, (since,))]

    def forget(self, row: SessionRecord) -> None:
        self._db.execute("UPDATE holding SET ended = ? WHERE session = ? AND ended IS NULL", (row.changed, row.id))
        for table in ("requester", "launch", "history"):
            self._db.execute(f"DELETE FROM {table} WHERE session = ?", (row.id,))
        self._db.execute("DELETE FROM session WHERE id = ?", (row.id,))

    def get(self, session_id: str) -> SessionRecord | None:
        return next(iter(self._select("id = ?", (session_id,))), None)

    def find(self, name: str, owner: str) -> SessionRecord | None:
        """The live session of that name, if there is one."""
        return next(iter(self._select("name = ? AND owner = ? AND " + LIVE_ROWS, (name, owner))), None)

    def need(self, session_id: str) -> SessionRecord:
        row = self.get(session_id)
        if row is None:
            raise NotFoundError(f"There is no session {session_id} in the store.", session_id)
        return row

    def live(self, states: Collection[str] = ()) -> List[SessionRecord]:
        """The sessions in these states, by default all that have not ended; oldest first."""
        where = f"state IN ({', '.join('?' * len(states))})" if states else LIVE_ROWS
        return self._select(where, tuple(states))

    def waiting(self) -> List[Tuple[SessionRecord, Request]]:
        """The sessions that wait, with their requests."""
        return [(row, row.request) for row in self.live({PENDING}) if row.request]

    def holding(self) -> List[SessionRecord]:
        """The sessions that hold what they were placed on."""
        return self.live(HOLDING)

    def held_plans(self) -> List[Plan]:
        return [row.plan for row in self.holding() if row.plan]

    def states(self) -> Dict[str, str]:
        """The state of every session ever recorded, by its id."""
        retired = {row[0]: TERMINATED for row in self.query("SELECT id FROM retired")}
        return {**retired, **dict(self._db.execute("SELECT id, state FROM session").fetchall())}

    def ends(self, session_ids: Iterable[str]) -> Dict[str, Termination]:
        """The ends of those of these sessions that have ended, by their IDs."""
        found = {}
        ended = f"SELECT CAST(changed AS REAL) FROM session WHERE id = ? AND NOT ({LIVE_ROWS})"
        query = ended + " UNION ALL SELECT CAST(time AS REAL) FROM retired WHERE id = ?"
        for session_id in set(session_ids):
            for (time,) in self._db.execute(query, (session_id, session_id)).fetchall():
                launches = self._db.execute("SELECT id FROM launch WHERE session = ?", (session_id,))
                found[session_id] = Termination(time, frozenset(launch for (launch,) in launches))
        return found

    def ends_on(self, agents: Iterable[AgentReport]) -> Dict[str, Termination]:
        """The ends of the sessions that have ended and have containers on these agents."""
        return self.ends(container.session for agent in agents for container in agent.containers)

    def ended(self, session_ids: Sequence[str]) -> List[str]:
        """The IDs of the sessions among these that have ended."""
        found = self.ends(session_ids)
        return [session_id for session_id in session_ids if session_id in found]

    def ids(self, states: Collection[str]) -> Set[str]:
        query = f"SELECT id FROM session WHERE state IN ({', '.join('?' * len(states))})"
        return {row[0] for row in self._db.execute(query, tuple(states))}

    def select(
        self, name: str | None, owner: str | None, ended: bool, only: Iterable[str] = (), limit: int = 0
    ) -> List[SessionRecord]:
        """Sessions by name and owner, oldest first, with their history.

        ``ended`` adds those that have ended, at most the newest ``limit`` of them; 0 is no limit. ``only`` names the states.
        """
        wanted = set(only) or (LIVE | ENDED if ended else LIVE)
        rows = self._matching(wanted & LIVE, name, owner, -1) + self._matching(wanted & ENDED, name, owner, limit or -1)
        complete = map(self._with_history, rows)
        return sorted(complete, key=lambda row: row.created)

    def _matching(
        self, states: Collection[str], name: str | None, owner: str | None, limit: int
    ) -> List[SessionRecord]:
        """The newest sessions in these states, oldest first."""
        given = [(column, value) for column, value in (("name", name), ("owner", owner)) if value]
        # The plus keeps SQLite from sorting all sessions of a state: it reads an index by time, and stops at the limit.
        sign = "+" if limit > 0 else ""
        wheres = [sign + f"state IN ({', '.join('?' * len(states))})", *(f"{column} = ?" for column, _value in given)]
        values = (*states, *(value for _column, value in given), limit)
        query = "SELECT %s FROM session WHERE %s ORDER BY created DESC, rowid DESC LIMIT ?"
        found = self._db.execute(query % (", ".join(COLUMNS), " AND ".join(wheres)), values)
        return [_row(columns) for columns in found][::-1]

    def newest(self, name: str, owner: str) -> SessionRecord | None:
        """The session of a name: the live one, or else the one that ended last."""
        rows = self.select(name, owner, ended=True, limit=1)
        return rows[-1] if rows else None

    def add_sample(self, taken: Sample) -> None:
        """Keep a sample, unless the last one is only seconds old. Old samples are removed."""
        now = taken.time
        self.execute("DELETE FROM sample WHERE time < ?", (now - _OLDEST,))
        last = self.query("SELECT max(time) FROM sample WHERE time < 1e11")[0][0]
        # A clock that was set back must not keep samples away until it has caught up.
        if last is None or not 0 <= now - last < _CLOSEST:
            self.execute(
                "INSERT OR REPLACE INTO sample VALUES (?, ?)", (now, json.dumps(taken.to_json(), sort_keys=True))
            )

    def nodes(self) -> Dict[str, str]:
        """The nodes of agents in their Swarm, as far as they are known."""
        return dict(self.query("SELECT name, node FROM agent"))

    def swarms(self) -> Dict[str, str]:
        """The Swarms of nodes, whose managers alone know whether a node is lost."""
        return dict(self.query("SELECT id, swarm FROM node"))

    def samples(self, since: float) -> List[Sample]:
        """The samples from a time on, oldest first, without those that are damaged."""
        rows = self.query("SELECT document FROM sample WHERE time >= ? ORDER BY time", (since,))
        return [found for found in (read_sample(text) for (text,) in rows) if found]

    def query(self, statement: str, values: Sequence[Any] = ()) -> List[Any]:
        return self._db.execute(statement, values).fetchall()

    def execute(self, statement: str, values: Sequence[Any] = ()) -> None:
        self._db.execute(statement, values)

    def history(self, session_id: str) -> List[StateChange]:
        time = "max(0.0, min(CAST(time AS REAL), 1e11))"
        query = f"SELECT {time}, before, after, reason FROM history WHERE session = ? ORDER BY rowid"
        return [StateChange(*values) for values in self._db.execute(query, (session_id,))]

    def _select(self, where: str, values: Any) -> List[SessionRecord]:
        # The plus: to sort the few is faster than to read all in their order.
        query = f"SELECT {', '.join(COLUMNS)} FROM session WHERE {where} ORDER BY +created, rowid"
        return [_row(values) for values in self._db.execute(query, values)]


def _row(values: Sequence[Any]) -> SessionRecord:
    """A session. One that waits has no request with a wrong value: it would take what others could have."""
    row = row_of(values)
    is_waiting = row.state == PENDING and row.request
    wrong = invalid_request(values[COLUMNS.index("request")], f"session {row.name} in the store") if is_waiting else ""
    return replace(row, request=None, reason=f"{wrong}, and {REMEDY}") if wrong else row
