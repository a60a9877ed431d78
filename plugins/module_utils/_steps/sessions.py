# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The step that lists sessions, and what they use."""

from __future__ import annotations

import os
import time
from contextlib import closing
from typing import Callable, List, Optional, Sequence

from .._head.database import FullStoreError
from .._head.kept_logs import kept_logs
from .._head.listing import list_agents, list_sessions
from .._head.losses import fenced_agents
from .._head.maintenance import adopt, is_lost
from .._head.policy_file import read_policy
from .._head.quotas import by_owner, uses
from .._head.scheduling_queue import turns
from .._head.session_record import SessionRecord
from .._head.session_view import is_overdue, time_left, without_private
from .._head.store import Store
from .._head.usage import Holdings, available, held_on, list_groups, list_owners
from .._shared.codec import Json
from .._shared.constants import RESTART_ALL
from .._shared.documents.report import AgentStatus
from .._shared.exits import what_happened
from .._shared.planning.policy import SitePolicy
from .._shared.planning.policy_rules import allowed, quota_left
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
    reports, now = tuple(AgentStatus.from_json(report) for report in agents), time.time()

    def listed(store: Store) -> Json:
        held, site = held_on(reports, store.ends_on(reports), store.held_plans()), read_policy(head.directory)
        rows = store.select(name, owner, ended, SHOWN[state] if state else (), limit)
        sessions, agent_rows = _sessions(store, rows, reports, site, now), list_agents(held, reports)
        if logs and sessions:
            sessions[-1]["logs"] = kept_logs(head.directory, sessions[-1]["id"])
        return {
            "time": now,
            "sessions": [one if whole_requests else without_private(one, viewer) for one in sessions],
            "agents": agent_rows,
            "groups": list_groups(agent_rows, owner, _left(store, reports, site, owner) if owner else None),
            "owners": _owners(store, reports, agent_rows, held, site, owner),
            "samples": store.samples(now - samples) if samples else [],
        }

    try:
        return _read(Store(head.directory, read_only=True), reports, listed)
    except FullStoreError:
        return _read(Store.copy(head.directory), reports, listed)


def _read(store: Store, agents: Sequence[AgentStatus], listed: Callable[[Store], Json]) -> Json:
    """A list. Sessions of a lost store are listed from their labels; the store itself is not touched."""
    with closing(store), store.transaction(keep=False):
        adopt(store, agents, now=0.0)
        return listed(store)


def _sessions(
    store: Store, rows: Sequence[SessionRecord], agents: Sequence[AgentStatus], site: SitePolicy, now: float
) -> List[Json]:
    """The rows of the list, each with what people read of its state."""
    order = {identity: turn for turn, identity in enumerate(turns(store, agents, site.queue, now), start=1)}
    found = [
        {
            **session,
            "logs": [],
            "time_left": time_left(session, now),
            "overdue": is_overdue(row, now),
            "held": not is_lost(row, now),
            "turn": order.get(session["id"]),
            "requested_here": _is_requested_here(store, session["id"]),
            "fenced": fenced_agents(store, session["id"]),
            **_restarts(session, now),
        }
        for row, session in zip(rows, list_sessions(rows, agents))
    ]
    return [{**session, "reason": what_happened(session)} for session in found]


def _restarts(session: Json, now: float) -> Json:
    """Return how many restarts of all containers are left, and why the next one is not made now."""
    if session["on_failure"] != RESTART_ALL:
        return {"restarts_left": 0, "restart_waits": ""}
    count, reason = restart_turn(session["history"], session["restarts"], now)
    return {
        "restarts_left": max(0, session["restarts"] - count),
        "restart_waits": reason if session["degraded"] else "",
    }


def _is_requested_here(store: Store, session: str) -> bool:
    """Return whether the login of this process has requested the session, or that is not known: a pass acts on no others."""
    requester = store.requester(session)
    return requester is None or requester.uid == os.geteuid()


def _left(store: Store, agents: Sequence[AgentStatus], site: SitePolicy, owner: str) -> Json:
    return quota_left(site, by_owner(uses(store.holding(), agents)), owner)


def _owners(
    store: Store,
    agents: Sequence[AgentStatus],
    rows: Sequence[Json],
    held: Holdings,
    site: SitePolicy,
    asked: str | None,
) -> List[Json]:
    """The owners, each with what a policy allows and what the owner may still have."""
    use = by_owner(uses(store.holding(), agents))
    return [
        {**one, "allowed": allowed(site, one["owner"]), "available": available(site, use, rows, one["owner"])}
        for one in list_owners(store.live(), held, asked)
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
    found = {"id": row.id, "owner": owner, "state": row.state, "on_failure": how, "request": row.request.to_json()}
    return without_private(found, owner if is_own else viewer)
