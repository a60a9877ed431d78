# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The step that lists sessions, and what they use."""

from __future__ import annotations

import os
import time
from contextlib import closing
from dataclasses import replace
from typing import Callable, Iterable, List, Mapping, Optional, Sequence, Tuple

from .._head.database import FullStoreError
from .._head.kept_logs import kept_logs
from .._head.listing import list_agents, list_sessions
from .._head.maintenance import adopt
from .._head.policy_file import read_policy
from .._head.quotas import by_owner, uses
from .._head.scheduling_queue import turns
from .._head.session_record import SessionRecord, fenced_agents
from .._head.session_view import is_overdue, time_left, visible_request
from .._head.snapshot import Context
from .._head.store import Store
from .._head.usage import available, held_on, list_groups, list_owners
from .._shared.codec import Json
from .._shared.constants import RESTART_ALL
from .._shared.documents.decision import Holder
from .._shared.documents.report import AgentReport
from .._shared.documents.usage import AgentView, OwnerView, Quota
from .._shared.documents.view import SessionList, SessionView
from .._shared.planning.policy import Policy, SitePolicy
from .._shared.planning.policy_rules import Use, allowed, quota_left
from .._shared.planning.restarts import restart_turn
from .._shared.states import SHOWN
from .step import Head


def list_all(
    head: Head,
    agents: Sequence[Json] = (),
    name: Optional[str] = None,
    owner: Optional[str] = None,
    ended: bool = False,
    state: str = "",
    limit: int = 0,
    samples: int = 0,
    logs: bool = False,
    viewer: str = "",
    whole_requests: bool = False,
) -> Json:
    """The sessions, oldest first, with the agents, groups and owners, as M(cluster.compute.session_info) returns them.

    C(samples) are the seconds of the past for which to return samples. C(logs) adds the kept logs to the newest session.
    C(whole_requests) keeps the private parts of requests of other users than C(viewer).
    """
    reports, now = tuple(AgentReport.from_json(report) for report in agents), time.time()

    def listed(store: Store) -> SessionList:
        held, site = held_on(reports, store.ends_on(reports), store.held_plans()), read_policy(head.directory)
        rows = store.select(name, owner, ended, SHOWN[state] if state else (), limit)
        sessions, agent_rows = _sessions(store, rows, reports, site, now), list_agents(held, reports)
        if logs and sessions:
            sessions[-1] = replace(sessions[-1], logs=tuple(kept_logs(head.directory, sessions[-1].id)))
        use = by_owner(uses(store.holding(), reports))
        return SessionList(
            time=now,
            sessions=tuple(sessions if whole_requests else _as_seen(sessions, viewer)),
            agents=tuple(agent_rows),
            groups=tuple(list_groups(agent_rows, owner, quota_left(site, use, owner) if owner else Quota())),
            owners=tuple(_owners(list_owners(store.live(), held, owner), agent_rows, use, site)),
            samples=tuple(store.samples(now - samples) if samples else ()),
        )

    try:
        return _read(Store(head.directory, read_only=True), reports, listed).to_json()
    except FullStoreError:
        return _read(Store.copy(head.directory), reports, listed).to_json()


def _read(store: Store, agents: Sequence[AgentReport], listed: Callable[[Store], SessionList]) -> SessionList:
    """A list. Sessions of a lost store are listed from their labels; the store itself is not touched."""
    with closing(store), store.transaction(keep=False):
        adopt(store, agents, now=0.0)
        return listed(store)


def _sessions(
    store: Store, rows: Sequence[SessionRecord], agents: Sequence[AgentReport], site: SitePolicy, now: float
) -> List[SessionView]:
    """The rows of the list, each with what people read of its state."""
    context = Context(tuple(agents), Holder(), now, Policy(rules=site.queue), site=site)
    snapshot = store.snapshot(context)
    order = {identity: turn for turn, identity in enumerate(turns(snapshot), start=1)}
    found = []
    for row, session in zip(rows, list_sessions(rows, agents)):
        left, waits = _restarts(row, session, now)
        known = replace(
            session,
            time_left=time_left(session, now),
            overdue=is_overdue(row, now),
            held=not row.is_lost(now),
            turn=order.get(row.id),
            requested_here=_is_requested_here(store, row.id),
            fenced=tuple(fenced_agents(snapshot.fences, row.id)),
            restarts_left=left,
            restart_waits=waits,
        )
        found.append(replace(known, reason=known.what_happened))
    return found


def _as_seen(sessions: Iterable[SessionView], viewer: str) -> List[SessionView]:
    return [replace(one, request=visible_request(one.request, one.owner, viewer)) for one in sessions]


def _restarts(row: SessionRecord, session: SessionView, now: float) -> Tuple[int, str]:
    """Return how many restarts of all containers are left, and why the next one is not made now."""
    if session.on_failure != RESTART_ALL:
        return 0, ""
    count, reason = restart_turn(row.history, session.restarts, now)
    return max(0, session.restarts - count), reason if session.degraded else ""


def _is_requested_here(store: Store, session: str) -> bool:
    """Return whether the login of this process has requested the session, or that is not known: a pass acts on no others."""
    requester = store.requester(session)
    return requester is None or requester.uid == os.geteuid()


def _owners(
    owners: Sequence[OwnerView], agents: Sequence[AgentView], use: Mapping[str, Use], site: SitePolicy
) -> List[OwnerView]:
    """The owners, each with what a policy allows and what the owner may still have."""
    return [
        replace(one, allowed=allowed(site, one.owner), available=available(site, use, agents, one.owner))
        for one in owners
    ]


def request(head: Head, name: str, owner: str, viewer: str) -> Json:
    """The request of the newest session of a name; null if it is not known. C(viewer) gets the private parts of own requests only.

    The login of the head that has requested a session gets them, too.
    """
    with Store.opened(head.directory, read_only=True) as store:
        row = store.newest(name, owner)
        is_own = bool(row and store.requester(row.id) and _is_requested_here(store, row.id))
    if row is None or row.request is None:
        return {"request": None}
    how = row.settings.on_failure
    asked = visible_request(row.request.to_json(), owner, owner if is_own else viewer)
    return {"id": row.id, "owner": owner, "state": row.state, "on_failure": how, "request": asked}
