# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The changes of state that follow a decision: running, error, terminating, terminated.

Each is safe to repeat: a change that has happened already is no error and changes nothing.
"""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Callable, Dict, List, Tuple

from ansible_collections.cluster.compute.plugins.module_utils._core import states
from ansible_collections.cluster.compute.plugins.module_utils._core.constants import LABEL
from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json, Plan
from ansible_collections.cluster.compute.plugins.module_utils._core.reports import Agent
from ansible_collections.cluster.compute.plugins.module_utils._head.listing import list_sessions
from ansible_collections.cluster.compute.plugins.module_utils._head.scheduler import Context, adopt, launch_of
from ansible_collections.cluster.compute.plugins.module_utils._head.store import Row, Store
from ansible_collections.cluster.compute.plugins.module_utils._planning.plan import read_placement
from ansible_collections.cluster.compute.plugins.module_utils._views import what_happened


@dataclass(frozen=True)
class Change:
    """What is to change: the session by id, or by name and owner, and who changes it."""

    id: str
    name: str
    owner: str
    reason: str
    result: str
    now: float
    lease: float
    launch: str = ""
    reached: Tuple[str, ...] = ()
    agents: Tuple[Agent, ...] = ()
    holder: Json = field(default_factory=dict)


def _running(store: Store, change: Change) -> Tuple[str, Row | None]:
    row = store.need(change.id)
    before = row.state
    if _is_overtaken(row, change):
        return before, row
    if before == states.RUNNING:
        # A repair is done: the lease that kept others off it ends.
        row.holder, row.lease = None, 0.0
        store.save(row)
    else:
        store.change(row, states.RUNNING, change.now, change.reason or "every container is verified")
    return before, row


def _is_overtaken(row: Row, change: Change) -> bool:
    """Whether a repair that is told of came too late: its lease had run out, and another launch is at work on the session."""
    return row.state == states.RUNNING and change.launch not in ("", launch_of(row))


def _completed(store: Store, change: Change) -> Tuple[str, Row | None]:
    """The batch command has ended: its result is known, and the session goes on until it is ended."""
    row = store.need(change.id)
    before = row.state
    if (row.result, row.reason) != (change.result, change.reason):
        row.result = change.result
        store.note(row, change.now, change.reason)
    return before, row


def _error(store: Store, change: Change) -> Tuple[str, Row | None]:
    row = store.need(change.id)
    before = row.state
    if _is_overtaken(row, change):
        return before, row
    if before == states.RUNNING:
        # A repair failed: the session is as degraded as it was.
        row.holder, row.lease, row.reason = None, 0.0, change.reason
        store.save(row)
    # Whoever ends it meanwhile clears away what the launch leaves.
    elif before != states.TERMINATING and before not in states.ENDED:
        store.change(row, states.ERROR, change.now, change.reason)
    return before, row


def _terminating(store: Store, change: Change) -> Tuple[str, Row | None]:
    adopt(store, Context(change.agents, change.holder, change.now))
    row = store.get(change.id) if change.id else store.find(change.name, change.owner)
    if row is None or row.state in states.ENDED:
        return (row.state if row else ""), row
    before = row.state
    if before == states.PENDING:
        store.change(row, states.CANCELLED, change.now, change.reason or "ended while it was waiting")
        return before, row
    row.holder, row.lease = change.holder, change.now + change.lease
    if before == states.TERMINATING:
        store.save(row)
    else:
        _learn(store, row, change)
        store.change(row, states.TERMINATING, change.now, change.reason or "ended by %s" % change.holder.get("user"))
    return before, row


def _learn(store: Store, row: Row, change: Change) -> None:
    """Keep what is seen of a running session before it ends: how its command ended, and which containers have died."""
    if row.state != states.RUNNING:
        return
    [session] = list_sessions([row], change.agents)
    told = what_happened(session)
    if told != row.reason:
        row.result = row.result or _result_of(session, bool(row.plan and row.plan["session"].get("command")))
        store.note(row, change.now, told)


def _result_of(session: Json, is_batch: bool) -> str:
    """The result of a session whose end nobody waited for."""
    command = session["command"]
    if command and command["exit_code"] is not None:
        return "FAILURE" if command["exit_code"] else "SUCCESS"
    dead = [one["hostname"] for one in session["containers"] if one["state"] not in ("running", "unknown")]
    is_failure = (dead and session["on_failure"] == "terminate") or (is_batch and "main1" in dead)
    return "FAILURE" if is_failure else ""


def _terminated(store: Store, change: Change) -> Tuple[str, Row | None]:
    row = store.need(change.id)
    before = row.state
    if before not in states.ENDED:
        row.result = change.result or row.result
        left = _left_on(row, change)
        note = "not reached: %s; what it holds is removed when it is back" % ", ".join(left) if left else ""
        told = "; ".join(filter(None, (_told(store, row), note)))
        store.change(row, states.TERMINATED, change.now, change.reason or told or "every container is removed")
    return before, row


def _told(store: Store, row: Row) -> str:
    """What was noted of a session with a result while it ran."""
    notes = [one["reason"] for one in store.history(row.id) if one["before"] == one["after"]]
    return notes[-1] if row.result and notes else ""


def _left_on(row: Row, change: Change) -> List[str]:
    """The agents that hold some of it and were not reached, be they lost, left out, or gone from the inventory."""
    return [agent for agent in _holders(row, change) if agent not in change.reached]


def _holders(row: Row, change: Change) -> List[str]:
    """The agents of a session: from its plan, else from the label of any container; where none is seen, any may be."""
    if row.plan:
        return Plan.from_json(row.plan).agents
    lives = (live for agent in change.agents for live in agent.containers if live.session == row.id)
    some = next(lives, None)
    if some is None:
        return [agent.name for agent in change.agents]
    return list(dict.fromkeys(read_placement(some.data["labels"][LABEL + "session.placement"])))


CHANGES: Dict[str, Callable[[Store, Change], Tuple[str, Row | None]]] = {
    "running": _running,
    "completed": _completed,
    "error": _error,
    "terminating": _terminating,
    "terminated": _terminated,
}
