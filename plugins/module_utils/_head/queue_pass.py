# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A pass over the queue of an owner: one at a time, and each of its rounds decides about all sessions in one transaction.

A round names the sessions that fit, in their order, and records why the others wait. Each session that fits is then placed by a
decision of its own, so that its lease begins with its launch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Collection, Dict, List, Mapping, Sequence, Tuple

from .._shared import states
from .._shared.codec import Json
from .._shared.documents.container_view import failed_apps, failed_roles
from .._shared.documents.report import AgentStatus
from .._shared.errors import ComputeError, ConflictError
from .._shared.planning.placement import Shortfall
from .listing import list_sessions
from .maintenance import LONGEST_LEASE, is_lost, keep_pass, text_of
from .scheduling_queue import Context, QueueSnapshot, with_start
from .session_record import SessionRecord, read_holder
from .store import Store
from .transitions import catch_up

# The probable start is estimated for the first sessions of the queue that wait.
_MOST_ESTIMATES = 20


@dataclass(frozen=True)
class Round:
    """The sessions of the owner that fit, and those that wait, first to last. ``is_last``: none fits, and the pass has ended."""

    fitting: Tuple[SessionRecord, ...] = ()
    waiting: Tuple[SessionRecord, ...] = ()
    is_last: bool = False


def begin(store: Store, owner: str, holder: Json, now: float, lease: float, *, takeover: bool = False) -> Json | None:
    """Begin a pass; the holder of another pass of this owner if there is one.

    That pass then makes another round before it ends: what the caller has freed is used.
    """
    times = (now, now + LONGEST_LEASE)
    found = store.query(
        "SELECT holder FROM pass WHERE owner = ? AND CAST(lease AS REAL) BETWEEN ? AND ?", (owner, *times)
    )
    if found and not takeover:
        store.execute("UPDATE pass SET again = 1 WHERE owner = ?", (owner,))
        return read_holder(found[0][0]) or {}
    values = (owner, text_of(holder), now + lease)
    store.execute("INSERT OR REPLACE INTO pass (owner, holder, lease) VALUES (?, ?, ?)", values)
    return None


def end(store: Store, owner: str, holder: Json) -> None:
    store.execute("DELETE FROM pass WHERE owner = ? AND holder = ?", (owner, text_of(holder)))


def decide(store: Store, owner: str, tried: Collection[str], context: Context) -> Round:
    """Decide about the whole queue; ``tried`` are the sessions that this pass has tried to launch."""
    catch_up(store, context.agents, context.site, context.now)
    turns = QueueSnapshot(store, context)
    fitting, waiting = _split(turns, owner, tried, _of_others(store, turns, context))
    for row, reason in waiting:
        if row.reason != reason:
            row.reason = reason
            store.execute("UPDATE session SET reason = ? WHERE id = ?", (reason, row.id))
    again = store.query("SELECT 1 FROM pass WHERE owner = ? AND again", (owner,))
    is_last = not fitting and not again
    if is_last:
        end(store, owner, context.holder)
    store.execute("UPDATE pass SET again = 0 WHERE owner = ?", (owner,))
    keep_pass(store, context.holder, context.now + context.lease)
    damaged = [row for row in store.live({states.PENDING}) if row.owner == owner and not row.request]
    return Round(tuple(fitting), (*damaged, *(row for row, _reason in waiting)), is_last)


def _of_others(store: Store, turns: QueueSnapshot, context: Context) -> Dict[str, str]:
    """Why this login does not launch a session, by the ID of the session: it is launched by the login that has requested it."""
    known = {identity: store.requester(identity) for identity in turns.rows}
    return {
        identity: f"it fits, and waits for a pass of the login {other.login} of the head, which has requested it"
        for identity, other in known.items()
        if other and other.uid != context.requester.uid
    }


def _split(
    turns: QueueSnapshot, owner: str, tried: Collection[str], others: Mapping[str, str]
) -> Tuple[List[SessionRecord], List[Tuple[SessionRecord, str]]]:
    """The sessions of an owner that fit, and those that wait, with their reasons. ``others`` were requested by other logins."""
    fitting: List[SessionRecord] = []
    reasons: Dict[str, str] = {}
    for entry, outcome in turns.now():
        row = turns.rows[entry.id]
        if row.owner != owner or row.id in tried:
            continue
        if isinstance(outcome, Shortfall):
            reasons[row.id] = outcome.reason
            continue
        if row.id in others:
            reasons[row.id] = others[row.id]
            continue
        try:
            turns.allocation.check(turns.requests[row.id], outcome)
        except ConflictError as error:
            reasons[row.id] = error.message.rstrip(".")
        except ComputeError:
            # Its launch records why it fails.
            fitting.append(row)
        else:
            fitting.append(row)
    starts = turns.starts(list(reasons)[:_MOST_ESTIMATES])
    return fitting, [(turns.rows[name], with_start(reason, starts.get(name))) for name, reason in reasons.items()]


_DEGRADED = "degraded: "
_UNHEALTHY = "unhealthy: "
_WHOLE, _WELL = "every container runs again", "apps and commands run again"


def note_degraded(store: Store, agents: Sequence[AgentStatus], owner: str, now: float) -> List[SessionRecord]:
    """Note which sessions of an owner lack containers, apps or commands of roles, and which no longer do; returns those that newly do.

    A session that another controller repairs, that has a result, or that ends by itself is not noted. The command of main1 that
    has failed is a result, which is recorded when the session ends or a controller waits for it.
    """
    rows = [
        row
        for row in store.live({states.RUNNING})
        if row.owner == owner and row.plan and is_lost(row, now) and not row.result
    ]
    found = []
    for row, session in zip(rows, list_sessions(rows, agents)):
        if session.limit_reached:
            continue
        is_lacking = bool(session.degraded or failed_apps(session.containers) or failed_roles(session.containers))
        # The row may have the reason of a repair that failed.
        noted = next((str(entry["reason"]) for entry in reversed(store.history(row.id))), "")
        back = _WHOLE if noted.startswith(_DEGRADED) else _WELL
        reason = (_DEGRADED if session.degraded else _UNHEALTHY) + session.what_happened if is_lacking else back
        if reason != noted and (is_lacking or noted.startswith((_DEGRADED, _UNHEALTHY))):
            store.note(row, now, reason, is_change=False)
            found += [row] if is_lacking else []
    return found
