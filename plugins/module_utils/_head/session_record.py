# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The tables of the store, a session as the store holds it, what a decision changes about it, and the form of its columns."""

from __future__ import annotations

import json
import os
import pwd
from dataclasses import dataclass, fields, replace
from functools import lru_cache, partial
from ipaddress import ip_network
from typing import Any, Callable, Dict, FrozenSet, Iterable, List, NamedTuple, Sequence, Tuple, Type

from .._shared.codec import Document, Json, subset
from .._shared.documents.decision import DecidedSession, Holder, StateChange
from .._shared.documents.plan import Plan, Session
from .._shared.documents.report import AgentReport, BatchState, ObservedContainer
from .._shared.documents.schema import Rule, a_line, fault, or_none, rules_of
from .._shared.documents.usage import Sample
from .._shared.planning.request import Request
from .._shared.states import LAUNCHING, PENDING, TERMINATING, check_change

# The index of live sessions has the same condition: a search by another one would read every session. What has no known state is live.
LIVE_ROWS = "state NOT IN ('TERMINATED', 'ERROR', 'CANCELLED')"
# Each statement may run again: a store gets the tables that it lacks.
SCHEMA = (
    """CREATE TABLE IF NOT EXISTS session (
    id TEXT PRIMARY KEY, name TEXT NOT NULL, owner TEXT NOT NULL, resource_group TEXT NOT NULL, state TEXT NOT NULL,
    result TEXT NOT NULL DEFAULT '', reason TEXT NOT NULL DEFAULT '', priority INTEGER NOT NULL DEFAULT 0,
    request TEXT NOT NULL DEFAULT 'null', plan TEXT NOT NULL DEFAULT 'null', holder TEXT NOT NULL DEFAULT 'null',
    lease REAL NOT NULL DEFAULT 0, created REAL NOT NULL, changed REAL NOT NULL
)""",
    f"CREATE UNIQUE INDEX IF NOT EXISTS live_name ON session (owner, name) WHERE {LIVE_ROWS}",
    "CREATE INDEX IF NOT EXISTS by_end ON session (state, changed)",
    "CREATE INDEX IF NOT EXISTS states ON session (id, state)",
    "CREATE INDEX IF NOT EXISTS by_time ON session (created)",
    "CREATE INDEX IF NOT EXISTS by_owner ON session (owner, created)",
    "CREATE INDEX IF NOT EXISTS by_name ON session (owner, name, created)",
    """CREATE TABLE IF NOT EXISTS history (
    session TEXT NOT NULL REFERENCES session (id), time REAL NOT NULL, before TEXT NOT NULL, after TEXT NOT NULL,
    reason TEXT NOT NULL
)""",
    "CREATE INDEX IF NOT EXISTS history_of ON history (session, time)",
    "CREATE TABLE IF NOT EXISTS sample (time REAL PRIMARY KEY, document TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS retired (id TEXT PRIMARY KEY, time REAL NOT NULL)",
    # Every launch and repair of this store: a container of another launch belongs to another store.
    "CREATE TABLE IF NOT EXISTS launch (id TEXT PRIMARY KEY, session TEXT NOT NULL REFERENCES session (id))",
    # The login on the head whose module recorded the request: the kernel says it, no option does.
    """CREATE TABLE IF NOT EXISTS requester (
    session TEXT PRIMARY KEY REFERENCES session (id), uid INTEGER NOT NULL, login TEXT NOT NULL
)""",
    "CREATE INDEX IF NOT EXISTS launch_of ON launch (session)",
    # The ledger: what sessions have held. It stays when their history goes.
    """CREATE TABLE IF NOT EXISTS holding (
    session TEXT NOT NULL, owner TEXT NOT NULL, began REAL NOT NULL, ended REAL, millicpus INTEGER NOT NULL,
    memory INTEGER NOT NULL, gpus REAL NOT NULL
)""",
    # The pass over the queue of an owner that is in progress; ``again`` asks it for another round.
    """CREATE TABLE IF NOT EXISTS pass (
    owner TEXT PRIMARY KEY, holder TEXT NOT NULL, lease REAL NOT NULL, again INTEGER NOT NULL DEFAULT 0
)""",
    # Since when an agent has not answered, null if it has, and its node of the Swarm.
    "CREATE TABLE IF NOT EXISTS agent (name TEXT PRIMARY KEY, node TEXT NOT NULL, silent REAL)",
    # The Swarm of each node that was ever seen. A node has an ID of its own in each Swarm.
    "CREATE TABLE IF NOT EXISTS node (id TEXT PRIMARY KEY, swarm TEXT NOT NULL)",
    # Agents that may still have old containers of a session that has moved; without a session, a node that the Swarm has removed.
    """CREATE TABLE IF NOT EXISTS fence (
    agent TEXT NOT NULL, session TEXT NOT NULL, node TEXT NOT NULL, PRIMARY KEY (agent, session)
)""",
    "CREATE INDEX IF NOT EXISTS holding_of ON holding (session, ended)",
    "CREATE INDEX IF NOT EXISTS holding_until ON holding (ended)",
)

# Seconds. No command takes as long.
LONGEST_LEASE = 7 * 86400.0
# The form of the store. A release with another form of its documents has a larger number.
VERSION = 1
# The columns that a list shows on one line, and the characters that are left of a damaged one.
_LINES, _LONGEST = ("id", "name", "owner", "resource_group"), 200
# What is no number here is damaged and counts as 0. No time is so late, and no priority so high.
_NUMBERS, _FAR = ("priority", "lease", "created", "changed"), 1e11
_HOLDER = or_none(rules_of(Holder))
_SAMPLE = rules_of(Sample)
# For a session that waits with a request that cannot be used. A launch records the request again.
REMEDY = "launch it again by the same variables, or end it with terminate.yml"
_UNREADABLE = "its request in the store is damaged: " + REMEDY
# A decision reads all sessions that wait, and all that run, more than once.
_MOST_DOCUMENTS = 16384


def as_text(_cursor: object, values: Sequence[Any]) -> Tuple[Any, ...]:
    """The values of a row. Bytes that are no text are escapes: a damaged row must not stop the commands for all sessions."""
    # A list has 100,000 rows: a generator would take half as long again.
    return tuple([value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value for value in values])


@lru_cache(maxsize=_MOST_DOCUMENTS)
def _parsed(kind: Type[Document], text: str) -> Any:
    """A request or a plan from its column: one decision reads the queue several times, and these documents never change."""
    document = json.loads(text)
    found: Any = None if document is None else kind.from_json(document)
    if isinstance(found, Plan):
        # Decisions about all sessions compute with these.
        networks = [ip_network(one) for one in (found.network.subnet, found.network.fabric) if one]
        if found.session.size != len(found.containers) or not networks or not 0 <= found.session.began < _FAR:
            raise ValueError(text)
    return found


def read_holder(text: str) -> Holder | None:
    """The controller that holds a session or a pass. A damaged one is not known, and holds it until its lease ends."""
    found = _read(_HOLDER, text, {})
    return None if found is None else Holder.from_json(found)


def read_sample(text: str) -> Sample | None:
    """A sample of use; None if it is damaged."""
    found = _read(_SAMPLE, text, None)
    return Sample.from_json(found) if found else None


def _read(rule: Rule, text: str, otherwise: Json | None) -> Json | None:
    try:
        document: Json | None = json.loads(text)
    except (ValueError, RecursionError):
        return otherwise
    return otherwise if fault(rule, document) else document


_PARSERS: Dict[str, Callable[[str], Any]] = {
    "request": partial(_parsed, Request),
    "plan": partial(_parsed, Plan),
    "holder": read_holder,
}

_NOTHING = Session("", "", "", "", "", "", 0, "", "", grace=0, restarts=0)


class Requester(NamedTuple):
    """The login of the head that has requested a session."""

    uid: int
    login: str

    @classmethod
    def of_this_process(cls) -> Requester:
        uid = os.geteuid()
        try:
            return cls(uid, pwd.getpwuid(uid).pw_name)
        except KeyError:
            return cls(uid, "uid %d" % uid)


class Fence(NamedTuple):
    """An agent that may still have old containers of a session; without a session, one whose node the Swarm has removed."""

    agent: str
    session: str
    node: str


def fenced_agents(fences: Iterable[Fence], session: str) -> List[str]:
    """The agents that may still have old containers of a session."""
    return [fence.agent for fence in fences if fence.session == session]


@dataclass(frozen=True)
class SessionRecord:
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
    holder: Holder | None = None
    lease: float = 0.0
    created: float = 0.0
    changed: float = 0.0
    history: Tuple[StateChange, ...] = ()

    @property
    def settings(self) -> Session:
        """The session's own part of its plan; without a plan, one in which nothing is set."""
        return self.plan.session if self.plan else _NOTHING

    @property
    def launch(self) -> str:
        """The ID of its last launch; of a session that is known from its labels alone, its own."""
        return self.plan.session.launch if self.plan else self.id

    @property
    def former_sizes(self) -> Tuple[int, ...]:
        """The sizes before a growth that has not ended; none if the session does not grow."""
        return self.holder.former_sizes if self.holder else ()

    def is_of(self, request: Request) -> bool:
        """Return whether the session has the name and the owner of a request."""
        return (self.name, self.owner) == (request.name, request.owner)

    def is_lost(self, now: float, takeover: str = "") -> bool:
        """Return whether no controller works on the session any more. ``takeover`` is the launch of one that is known to be gone.

        A lease that ends far in the future was given while the clock of this host was wrong.
        """
        return not now <= self.lease <= now + LONGEST_LEASE or (bool(takeover) and takeover == self.launch)

    def main_on(self, agents: Iterable[AgentReport]) -> Tuple[str, ObservedContainer | None]:
        """The agent of main1, and main1 as its engine reports it."""
        planned = self.plan.main.agent if self.plan else ""
        known = [agent for agent in agents if planned in ("", agent.name)]
        mine = ((agent.name, one) for agent in known for one in agent.containers if one.session == self.id)
        return next(((name, one) for name, one in mine if one.hostname == "main1"), (planned, None))

    def running_command(self, agents: Iterable[AgentReport]) -> BatchState | None:
        """The state of the batch command; None if main1 does not run, and the command with it."""
        main = self.main_on(agents)[1]
        return main.batch if main is not None and main.state == "running" else None

    @property
    def decided(self) -> DecidedSession:
        """The session as a decision about it has it now."""
        return DecidedSession.from_json(self.to_json())

    def to_json(self) -> Json:
        """The session as results show it; the request and the plan are documents of their own."""
        names = "id name owner state result reason priority launch created changed"
        return {
            **subset(self, *names.split()),
            "holder": self.holder.to_json() if self.holder else None,
            "group": self.resource_group,
        }


@dataclass(frozen=True)
class Update:
    """A session as it is to become, and the entries that its history gets on the way there.

    ``resized`` is the time from which the session holds another amount, 0 if it holds the same. ``requester`` is the login that has
    requested a new session, ``fences`` are the agents that the session moves away from.
    """

    session: SessionRecord
    changes: Tuple[StateChange, ...] = ()
    resized: float = 0.0
    requester: Requester | None = None
    fences: Tuple[Fence, ...] = ()

    @property
    def plan(self) -> Plan:
        """The plan of a session that has one."""
        if self.session.plan is None:
            raise LookupError(f"session {self.session.name} has no plan")
        return self.session.plan

    @property
    def is_new(self) -> bool:
        return bool(self.changes) and not self.changes[0].before

    def having(self, **fields: Any) -> Update:
        """The update with other fields of the session."""
        return replace(self, session=replace(self.session, **fields))

    def add(self, now: float, reason: str) -> Update:
        """A new session in its first state."""
        row = self.session
        check_change(row.name, "", row.state)
        made = replace(row, created=row.created or now, changed=now, reason=reason)
        return replace(self, session=made, changes=(StateChange(now, "", row.state, reason),))

    def change(self, state: str, now: float, reason: str) -> Update:
        """The session in another state.

        The history of a session that waited in vain says what is wrong with its request.
        """
        row = self.session
        check_change(row.name, row.state, state)
        is_damaged = row.state == PENDING and row.request is None
        noted = (StateChange(now, PENDING, PENDING, row.reason),) if is_damaged else ()
        made = replace(row, state=state, reason=reason, changed=now)
        if state not in LAUNCHING and state != TERMINATING:
            made = replace(made, holder=None, lease=0.0)
        return replace(self, session=made, changes=(*self.changes, *noted, StateChange(now, row.state, state, reason)))

    def note(self, now: float, reason: str, *, is_change: bool = True) -> Update:
        """Another reason in the history without a change of state, or with ``is_change=False`` of anything about the session."""
        row = self.session
        made = replace(row, reason=reason, changed=now if is_change else row.changed)
        return replace(self, session=made, changes=(*self.changes, StateChange(now, row.state, row.state, reason)))


# What a document of another form raises.
_UNUSABLE = (ValueError, TypeError, LookupError, AttributeError, RecursionError)
# The columns of the table of sessions.
COLUMNS = tuple(one.name for one in fields(SessionRecord) if one.name != "history")


# The columns with documents that another release may have written.
DOCUMENTS = ("request", "plan")


def stays(row: SessionRecord, name: str, text: str) -> bool:
    """Return whether the text of a document stays in the store. A session that waits again has no plan any more."""
    value = getattr(row, name)
    if value is None:
        return name != "plan" or row.state != PENDING
    try:
        return bool(_PARSERS[name](text) == value)
    except _UNUSABLE:
        return False


def values_of(row: SessionRecord) -> Tuple[Any, ...]:
    documents = {
        "request": row.request.to_json() if row.request else None,
        "plan": row.plan.to_json() if row.plan else None,
        "holder": row.holder.to_json() if row.holder else None,
    }
    return tuple(
        json.dumps(documents[name], sort_keys=True) if name in documents else getattr(row, name) for name in COLUMNS
    )


def row_of(values: Any) -> SessionRecord:
    pairs = dict(zip(COLUMNS, values))
    for name in _NUMBERS:
        if not isinstance(pairs[name], (int, float)) or not abs(pairs[name]) < _FAR:
            pairs[name] = 0
    for name in _LINES:
        if not a_line(pairs[name]):
            # A list with it would be refused as a whole.
            pairs[name] = ascii(pairs[name])[:_LONGEST]
    for name, parse in _PARSERS.items():
        try:
            pairs[name] = parse(pairs[name])
        except _UNUSABLE:
            # The labels of its containers say the rest.
            pairs[name] = None
    if pairs["holder"] is None:
        pairs["lease"] = 0.0
    if pairs["state"] == PENDING and pairs["request"] is None:
        pairs["reason"] = _UNREADABLE
    return SessionRecord(**pairs)


@dataclass(frozen=True)
class Termination:
    """The end of a session: when this store recorded it, and every launch and repair that this store knows of it."""

    time: float
    launches: FrozenSet[str]

    def includes(self, container: ObservedContainer) -> bool:
        """Return whether the end includes a container: another store may have repaired the session later, and it runs again.

        The clock of an engine decides only about containers of launches that this store does not know.
        """
        return container.launch in self.launches or container.created <= self.time
