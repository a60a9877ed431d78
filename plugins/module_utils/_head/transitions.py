# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The changes of state that follow a decision, by the state that a session is to have: running, failed, terminating, terminated.

A change is recorded in one transaction, with what it shows of the other sessions, and with logs.
Each is safe to repeat: a change that has happened already changes nothing and is no error.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Callable, Dict, List, Tuple

from .._shared import states
from .._shared.codec import Json
from .._shared.constants import GRACE, LONGEST_GRACE
from .._shared.documents.decision import Holder
from .._shared.documents.report import AgentReport
from .._shared.errors import ComputeError
from .._shared.exits import LIFETIME, LIMITS, LOST
from .._shared.planning.resizing import resized
from .._shared.states import PENDING, RUNNING, TERMINATING
from .database import DamagedStoreError, FullStoreError
from .kept_logs import keep_logs
from .listing import list_sessions
from .maintenance import adopt, end_over, keep_pass, removable, result_of
from .session_record import SessionRecord, Update
from .session_view import is_overdue
from .store import Store

# How often a launch chooses another subnet, other ports and other names: something may be wrong with the agent.
_MOST_RETRIES = 3


_UNKNOWN = Holder()


@dataclass(frozen=True)
class Change:
    """A change: the session, by its ID or by name and owner, and who changes it. The default owner is the user of the holder.

    ``now`` is in seconds since the epoch, ``lease`` in seconds; ``reached`` are the agents that hold nothing of the session
    any more; ``folders`` are sessions with a folder on the controller, and ``logs`` results of ``logs.read``. ``retry`` says that
    a launch failed at a subnet, a port or a name that something else has taken, or that a session that had waited met a lost
    connection. ``undone``: all containers of the session are removed, because this launch was to make them.
    """

    id: str = ""
    name: str = ""
    owner: str = ""
    reason: str = ""
    result: str = ""
    now: float = 0.0
    lease: float = 600.0
    launch: str = ""
    reached: Tuple[str, ...] = ()
    agents: Tuple[AgentReport, ...] = ()
    holder: Holder = _UNKNOWN
    retry: bool = False
    undone: bool = False
    folders: Tuple[str, ...] = ()
    logs: Tuple[Json, ...] = ()


def make_change(store: Store, state: str, change: Change) -> Tuple[str, SessionRecord | None]:
    """Change a session to a state. Returns its state before, which is empty without a session, and the session."""
    if state == "terminating":
        adopt(store, change.agents, change.now)
        row = store.get(change.id) if change.id else store.find(change.name, change.owner)
        end_over(store, change.agents, change.now, besides=row.id if row else "")
    else:
        row = store.need(change.id)
    if row is None:
        return "", None
    update = _CHANGES[state](change, replace(row, history=tuple(store.history(row.id))))
    if update is None:
        return row.state, row
    if state == "terminating":
        keep_pass(store, change.holder, update.session.lease)
    return row.state, store.apply(update)


def _running(change: Change, row: SessionRecord) -> Update | None:
    """Also when the batch command has ended: its result is recorded, and the session keeps running until it is terminated."""
    if change.result:
        # Of a session that is ended, the reason for that stays.
        if row.state != RUNNING or (row.result, row.reason) == (change.result, change.reason):
            return None
        return Update(row).having(result=change.result).note(change.now, change.reason)
    if row.state != RUNNING:
        return Update(row).change(RUNNING, change.now, change.reason or states.VERIFIED)
    # The end of a repair is the end of its lease.
    return None if _is_overtaken(row, change) else Update(row).having(holder=None, lease=0.0)


def _is_overtaken(row: SessionRecord, change: Change) -> bool:
    """Return whether a repair reports too late: its lease had run out, and another launch works on the session."""
    return change.launch not in ("", row.launch)


def _failed(change: Change, row: SessionRecord) -> Update | None:
    launches = sum(entry.after == states.PREPARING for entry in row.history)
    if row.state == RUNNING:
        if _is_overtaken(row, change):
            return None
        if change.undone:
            # The answer that it runs was lost on the way.
            ended = Update(row).change(TERMINATING, change.now, change.reason)
            return ended.change(states.TERMINATED, change.now, change.reason)
        # A failed repair leaves the session as degraded as it was, and a failed growth in its former size.
        return _went_back(row, change.now).having(holder=None, lease=0.0, reason=change.reason)
    if row.state == states.PREPARING and change.retry and launches <= _MOST_RETRIES:
        return Update(row).having(plan=None).change(PENDING, change.now, change.reason)
    # A session that is being terminated is removed with all that the launch leaves.
    if row.state == TERMINATING or row.state in states.ENDED:
        return None
    return Update(row).change(states.ERROR, change.now, change.reason)


def _went_back(row: SessionRecord, now: float) -> Update:
    """After a growth that has failed, the session is without what was added. What has left at the same time stays away."""
    former = row.former_sizes
    if not (former and row.request and row.plan):
        return Update(row)
    request = row.request.with_sizes([min(pair) for pair in zip(former, row.request.sizes)])
    plan = resized(row.plan, request, launch=row.launch)
    return Update(replace(row, request=request, plan=plan), resized=now)


def _terminating(change: Change, row: SessionRecord) -> Update | None:
    if row.state in states.ENDED:
        return None
    if row.state == PENDING:
        return Update(row).change(states.CANCELLED, change.now, change.reason or "ended while it was waiting")
    held = Update(row).having(holder=change.holder, lease=change.now + change.lease + row.settings.grace)
    if row.state == TERMINATING:
        return held
    noted, over = _with_ends(held, change)
    return noted.change(TERMINATING, change.now, change.reason or over or f"ended by {change.holder.user}")


def _with_ends(update: Update, change: Change) -> Tuple[Update, str]:
    """Note how the command of a running session ended, and which of its containers did, before all are removed.

    The text says why the session has ended by itself; it is empty if it has not.
    """
    row = update.session
    if row.state != states.RUNNING:
        return update, ""
    [session] = list_sessions([row], change.agents)
    reason = session.what_happened
    if reason != row.reason:
        update = update.having(result=row.result or result_of(session, row)).note(change.now, reason)
    over = session.limit_reached or (LIMITS[LIFETIME] if is_overdue(row, change.now) else "")
    return update, over


def _terminated(change: Change, row: SessionRecord) -> Update | None:
    if row.state in states.ENDED:
        return None
    # Agents that are lost, not in this run, or not in the inventory.
    left = [agent for agent in _holders(row, change) if agent not in change.reached]
    update = Update(row)
    if row.state in (RUNNING, *states.LAUNCHING):
        # The begin of the termination could not be recorded: the disk of the store was full.
        update = update.change(TERMINATING, change.now, f"ended by {change.holder.user}")
    note = f"not reached: {', '.join(left)}; what it holds is removed when it is back" if left else ""
    reason = update.session.reason
    own = reason if reason in LIMITS.values() or reason.startswith(LOST) else ""
    found = "; ".join(filter(None, (_noted_end(row) or own, note)))
    return update.change(states.TERMINATED, change.now, change.reason or found or "every container is removed")


def _noted_end(row: SessionRecord) -> str:
    """Return how a session with a result ended, as it was noted while the session ran."""
    notes = [entry.reason for entry in row.history if entry.before == entry.after]
    return notes[-1] if row.result and notes else ""


def _holders(row: SessionRecord, change: Change) -> List[str]:
    """The agents of a session: from its plan, else from the label of any container, else all that there are."""
    if row.plan:
        return row.plan.agents
    observed = (container for agent in change.agents for container in agent.containers)
    example = next((container for container in observed if container.session == row.id), None)
    if example is None:
        return [agent.name for agent in change.agents]
    return list(dict.fromkeys(example.placement))


_CHANGES: Dict[str, Callable[[Change, SessionRecord], Update | None]] = {
    "running": _running,
    "failed": _failed,
    "terminating": _terminating,
    "terminated": _terminated,
}
_ENDS = ("terminating", "terminated")
_UNRECORDED = ": the end of the session is not recorded; free some space on the head, and run terminate.yml again."
_FROM_LABELS = ". The session ends by its labels; its end is not recorded."


def apply_change(folder: str, state: str, change: Change, *, check_mode: bool) -> Json:
    """Record a change to a state in the store of a folder, and return the result of the step."""
    warnings: List[str] = []
    try:
        row, result = _changed(Store(folder, read_only=check_mode), state, change, keep=not check_mode)
    except (FullStoreError, DamagedStoreError) as error:
        if state not in _ENDS:
            raise
        # A session ends by its labels. Its end can be recorded later.
        is_full = isinstance(error, FullStoreError)
        row, result = _changed(Store.copy(folder) if is_full else _from_labels(change), state, change, keep=True)
        by_labels = _FROM_LABELS if row else "."
        warnings = [f"{error.message.rstrip('.')}{_UNRECORDED if is_full else by_labels}"]
    try:
        if row and change.logs and not check_mode:
            keep_logs(folder, row.id, change.logs)
    except ComputeError as error:
        # The change is recorded already.
        warnings.append(error.message)
    return {"warnings": warnings, **result}


def _from_labels(change: Change) -> Store:
    store = Store.in_memory()
    with store.transaction():
        adopt(store, change.agents, change.now)
    return store


def _changed(store: Store, state: str, change: Change, *, keep: bool) -> Tuple[SessionRecord | None, Json]:
    """The session after the change, and the result."""
    try:
        with store.transaction(keep=keep):
            running = store.ids({RUNNING})
            before, row = make_change(store, state, change)
            ended = [store.get(session) for session in sorted(running - store.ids({RUNNING, TERMINATING}))]
            remove = removable(store, change.agents)
            ended_folders = store.ended(change.folders)
            waiting = [other for other in store.live({PENDING}) if row and other.owner == row.owner]
    finally:
        store.close()
    return row, {
        "changed": before != (row.state if row else ""),
        "session": row.to_json() if row else {},
        "ended_folders": ended_folders,
        "plan": row.plan.to_short_json() if row and row.plan else None,
        "grace": min(row.settings.grace, LONGEST_GRACE) if row else GRACE,
        "remove": [session for session in remove if not row or session != row.id],
        "ended": [other.to_json() for other in ended if other and (not row or other.id != row.id)],
        "waiting": len(waiting),
    }
