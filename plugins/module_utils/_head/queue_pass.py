# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A pass over the queue of an owner: one at a time, and each of its rounds decides about all sessions in one transaction.

A round names the sessions that fit, in their order, and records why the others wait. Each session that fits is then placed by a
decision of its own, so that its lease begins with its launch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Collection, Dict, List, Sequence, Tuple

from .._shared import states
from .._shared.documents.container_view import failed_apps, failed_roles
from .._shared.documents.decision import Holder
from .._shared.documents.report import AgentReport
from .._shared.errors import ComputeError, ConflictError
from .._shared.planning.placement import Placement, Shortfall
from .listing import list_sessions
from .maintenance import catch_up, keep_pass, text_of
from .scheduling_queue import Queue, with_start
from .session_record import LONGEST_LEASE, SessionRecord, read_holder
from .snapshot import Context, Snapshot
from .store import Store

# The probable start is estimated for the first sessions of the queue that wait.
_MOST_ESTIMATES = 20


@dataclass(frozen=True)
class Round:
    """The sessions of the owner that fit, and those that wait, first to last. ``is_last``: none fits, and the pass has ended."""

    fitting: Tuple[SessionRecord, ...] = ()
    waiting: Tuple[SessionRecord, ...] = ()
    is_last: bool = False


def begin(
    store: Store, owner: str, holder: Holder, now: float, lease: float, *, takeover: bool = False
) -> Holder | None:
    """Begin a pass; the holder of another pass of this owner if there is one.

    That pass then makes another round before it ends: what the caller has freed is used.
    """
    times = (now, now + LONGEST_LEASE)
    found = store.query(
        "SELECT holder FROM pass WHERE owner = ? AND CAST(lease AS REAL) BETWEEN ? AND ?", (owner, *times)
    )
    if found and not takeover:
        store.execute("UPDATE pass SET again = 1 WHERE owner = ?", (owner,))
        return read_holder(found[0][0]) or Holder()
    values = (owner, text_of(holder), now + lease)
    store.execute("INSERT OR REPLACE INTO pass (owner, holder, lease) VALUES (?, ?, ?)", values)
    return None


def end(store: Store, owner: str, holder: Holder) -> None:
    store.execute("DELETE FROM pass WHERE owner = ? AND holder = ?", (owner, text_of(holder)))


def decide(store: Store, owner: str, tried: Collection[str], context: Context) -> Round:
    """Decide about the whole queue; ``tried`` are the sessions that this pass has tried to launch."""
    catch_up(store, context.agents, context.site, context.now)
    snapshot = store.snapshot(context)
    fitting, waiting = split(snapshot, owner, tried)
    known = {row.id: row.reason for row in snapshot.pending}
    for row in waiting:
        if row.reason != known[row.id]:
            store.execute("UPDATE session SET reason = ? WHERE id = ?", (row.reason, row.id))
    again = store.query("SELECT 1 FROM pass WHERE owner = ? AND again", (owner,))
    is_last = not fitting and not again
    if is_last:
        end(store, owner, context.holder)
    store.execute("UPDATE pass SET again = 0 WHERE owner = ?", (owner,))
    keep_pass(store, context.holder, context.now + context.lease)
    damaged = [row for row in snapshot.pending if row.owner == owner and not row.request]
    return Round(tuple(fitting), (*damaged, *waiting), is_last)


def split(snapshot: Snapshot, owner: str, tried: Collection[str]) -> Tuple[List[SessionRecord], List[SessionRecord]]:
    """The sessions of an owner that fit, and those that wait, with the reasons that they have now."""
    queue = Queue(snapshot)
    fitting: List[SessionRecord] = []
    reasons: Dict[str, str] = {}
    for entry, outcome in queue.now():
        row = queue.rows[entry.id]
        if row.owner != owner or row.id in tried:
            continue
        reason = outcome.reason if isinstance(outcome, Shortfall) else _reason_to_wait(snapshot, queue, row, outcome)
        if reason:
            reasons[row.id] = reason
        else:
            fitting.append(row)
    starts = queue.starts(list(reasons)[:_MOST_ESTIMATES])
    waiting = [replace(queue.rows[name], reason=with_start(why, starts.get(name))) for name, why in reasons.items()]
    return fitting, waiting


def _reason_to_wait(snapshot: Snapshot, queue: Queue, row: SessionRecord, placement: Placement) -> str:
    """Why a session that fits is not launched now: it is launched by the login that has requested it; empty if it is."""
    requester = snapshot.requesters.get(row.id)
    if requester and requester.uid != snapshot.context.requester.uid:
        return f"it fits, and waits for a pass of the login {requester.login} of the head, which has requested it"
    try:
        queue.allocation.check(queue.requests[row.id], placement)
    except ConflictError as error:
        return error.message.rstrip(".")
    except ComputeError:
        pass  # its launch records why it fails
    return ""


_DEGRADED = "degraded: "
_UNHEALTHY = "unhealthy: "
_WHOLE, _WELL = "every container runs again", "apps and commands run again"


def note_degraded(store: Store, agents: Sequence[AgentReport], owner: str, now: float) -> List[SessionRecord]:
    """Note which sessions of an owner lack containers, apps or commands of roles, and which no longer do; returns those that newly do.

    A session that another controller repairs, that has a result, or that ends by itself is not noted. The command of main1 that
    has failed is a result, which is recorded when the session ends or a controller waits for it.
    """
    rows = [
        row
        for row in store.live({states.RUNNING})
        if row.owner == owner and row.plan and row.is_lost(now) and not row.result
    ]
    found = []
    for row, session in zip(rows, list_sessions(rows, agents)):
        if session.limit_reached:
            continue
        is_lacking = bool(session.degraded or failed_apps(session.containers) or failed_roles(session.containers))
        # The row may have the reason of a repair that failed.
        noted = next((entry.reason for entry in reversed(store.history(row.id))), "")
        back = _WHOLE if noted.startswith(_DEGRADED) else _WELL
        reason = (_DEGRADED if session.degraded else _UNHEALTHY) + session.what_happened if is_lacking else back
        if reason != noted and (is_lacking or noted.startswith((_DEGRADED, _UNHEALTHY))):
            noted_now = store.note(row, now, reason, is_change=False)
            found += [noted_now] if is_lacking else []
    return found
