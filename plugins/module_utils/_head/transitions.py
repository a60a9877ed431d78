# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The changes of state that follow a decision, by the state that a session is to have: running, failed, terminating, terminated.

A change is recorded in one transaction, with what it shows of the other sessions, and with logs.
Each is safe to repeat: a change that has happened already changes nothing and is no error.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Callable, Dict, List, Sequence, Tuple

from .._shared import states
from .._shared.codec import Json
from .._shared.constants import GRACE, LONGEST_GRACE, RESTART_ALL
from .._shared.documents.report import AgentStatus
from .._shared.documents.view import SessionView
from .._shared.errors import ComputeError
from .._shared.exits import LIFETIME, LIMITS, LOST, OTHERWISE, UP, WITH_COMMAND
from .._shared.planning.policy import SitePolicy
from .._shared.planning.resizing import resized
from .._shared.planning.restarts import RESTARTED, restart_turn
from .._shared.states import PENDING, RUNNING, TERMINATING
from .database import DamagedStoreError, FullStoreError
from .kept_logs import keep_logs
from .listing import list_sessions
from .maintenance import adopt, cancel_old, correct_times, expire, give_up, is_lost, keep_pass, removable
from .session_record import SessionRecord
from .session_view import has_died, is_overdue
from .store import Store

# How often a launch chooses another subnet, other ports and other names: something may be wrong with the agent.
_MOST_RETRIES = 3


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
    agents: Tuple[AgentStatus, ...] = ()
    holder: Json = field(default_factory=dict)
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
    before = row.state
    _CHANGES[state](store, change, row)
    return before, row


def _running(store: Store, change: Change, row: SessionRecord) -> None:
    """Also when the batch command has ended: its result is recorded, and the session keeps running until it is terminated."""
    if change.result:
        # Of a session that is ended, the reason for that stays.
        if row.state == RUNNING and (row.result, row.reason) != (change.result, change.reason):
            row.result = change.result
            store.note(row, change.now, change.reason)
    elif row.state != RUNNING:
        store.change(row, RUNNING, change.now, change.reason or states.VERIFIED)
    elif not _is_overtaken(row, change):
        # The end of a repair is the end of its lease.
        row.holder, row.lease = None, 0.0
        store.save(row)


def _is_overtaken(row: SessionRecord, change: Change) -> bool:
    """Return whether a repair reports too late: its lease had run out, and another launch works on the session."""
    return change.launch not in ("", row.launch)


def _failed(store: Store, change: Change, row: SessionRecord) -> None:
    launches = sum(entry["after"] == states.PREPARING for entry in store.history(row.id))
    if row.state == RUNNING:
        if _is_overtaken(row, change):
            return
        if change.undone:
            # The answer that it runs was lost on the way.
            store.change(row, TERMINATING, change.now, change.reason)
            store.change(row, states.TERMINATED, change.now, change.reason)
            return
        # A failed repair leaves the session as degraded as it was, and a failed growth in its former size.
        _go_back(store, row, change.now)
        row.holder, row.lease, row.reason = None, 0.0, change.reason
        store.save(row)
    elif row.state == states.PREPARING and change.retry and launches <= _MOST_RETRIES:
        row.plan = None
        store.change(row, PENDING, change.now, change.reason)
    # A session that is being terminated is removed with all that the launch leaves.
    elif row.state != TERMINATING and row.state not in states.ENDED:
        store.change(row, states.ERROR, change.now, change.reason)


def _go_back(store: Store, row: SessionRecord, now: float) -> None:
    """After a growth that has failed, the session is without what was added. What has left at the same time stays away."""
    former = row.former_sizes
    if former and row.request and row.plan:
        row.request = row.request.with_sizes([min(pair) for pair in zip(former, row.request.sizes)])
        row.plan = resized(row.plan, row.request, launch=row.launch)
        store.book(row, now, again=True)


def _terminating(store: Store, change: Change, row: SessionRecord) -> None:
    if row.state in states.ENDED:
        return
    if row.state == PENDING:
        store.change(row, states.CANCELLED, change.now, change.reason or "ended while it was waiting")
        return
    row.holder, row.lease = change.holder, change.now + change.lease + row.settings.grace
    keep_pass(store, change.holder, row.lease)
    if row.state == TERMINATING:
        store.save(row)
        return
    over = _note_ends(store, row, change)
    reason = change.reason or over or f"ended by {change.holder.get('user')}"
    store.change(row, TERMINATING, change.now, reason)


def _note_ends(store: Store, row: SessionRecord, change: Change) -> str:
    """Record how the command of a running session ended, and which of its containers did, before all are removed.

    Returns why the session has ended by itself, or an empty text.
    """
    if row.state != states.RUNNING:
        return ""
    [session] = list_sessions([row], change.agents)
    reason = session.what_happened
    if reason != row.reason:
        row.result = row.result or _result_of(session, row)
        store.note(row, change.now, reason)
    return session.limit_reached or (LIMITS[LIFETIME] if is_overdue(row, change.now) else "")


def catch_up(store: Store, agents: Sequence[AgentStatus], site: SitePolicy, now: float, takeover: str = "") -> None:
    """Adopt sessions, give up the launches of lost controllers, and end the sessions that are over or wait in vain."""
    adopt(store, agents, now)
    correct_times(store, now)
    expire(store, now, takeover)
    end_over(store, agents, now)
    cancel_old(store, site, now)
    give_up(store, agents, now)


def end_over(store: Store, agents: Sequence[AgentStatus], now: float, besides: str = "") -> None:
    """Record the end of the sessions that have ended by themselves or with a container, besides one.

    What they leave is removed with that of others.

    A session that another controller repairs is left to that controller.
    A session that is known from its labels alone may have a store of its own, which records its end.
    """
    rows = [row for row in store.live({states.RUNNING}) if row.plan and is_lost(row, now) and row.id != besides]
    for row, session in zip(rows, list_sessions(rows, agents)):
        reason = session.limit_reached or (session.what_happened if has_died(session) else "")
        if reason:
            row.result = row.result or _result_of(session, row)
            store.change(row, states.TERMINATING, now, reason)
            store.change(row, states.TERMINATED, now, reason)


def _result_of(session: SessionView, row: SessionRecord) -> str:
    """The result of a session whose command no controller waited for."""
    if session.command and session.command.has_ended:
        return "FAILURE" if session.command.exit_code else "SUCCESS"
    main_code = next((one.exit_code for one in session.containers if one.hostname == "main1"), None)
    if main_code in WITH_COMMAND and session.limit_reached:
        return WITH_COMMAND[main_code]
    dead = [one.hostname for one in session.containers if one.state not in (*UP, *OTHERWISE, "unknown")]
    is_failure = (dead and session.on_failure == "terminate") or (row.settings.command and "main1" in dead)
    return "FAILURE" if is_failure else ""


def _terminated(store: Store, change: Change, row: SessionRecord) -> None:
    if row.state in states.ENDED:
        return
    # Agents that are lost, not in this run, or not in the inventory.
    left = [agent for agent in _holders(row, change) if agent not in change.reached]
    if row.state in (RUNNING, *states.LAUNCHING):
        # The begin of the termination could not be recorded: the disk of the store was full.
        store.change(row, TERMINATING, change.now, f"ended by {change.holder.get('user')}")
    note = f"not reached: {', '.join(left)}; what it holds is removed when it is back" if left else ""
    own = row.reason if row.reason in LIMITS.values() or row.reason.startswith(LOST) else ""
    found = "; ".join(filter(None, (_noted_end(store, row) or own, note)))
    store.change(row, states.TERMINATED, change.now, change.reason or found or "every container is removed")


def _noted_end(store: Store, row: SessionRecord) -> str:
    """Return how a session with a result ended, as it was noted while the session ran."""
    notes = [entry["reason"] for entry in store.history(row.id) if entry["before"] == entry["after"]]
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


def note_restart(store: Store, row: SessionRecord, agents: Sequence[AgentStatus], now: float) -> bool:
    """Return whether all containers restart. Then it is counted, and the session has no result until its command has ended again."""
    if row.settings.on_failure != RESTART_ALL:
        return False
    [session] = list_sessions([row], agents)
    restarts = row.settings.restarts
    count = restart_turn(store.history(row.id), restarts, now)[0] + 1
    row.result = ""
    store.note(row, now, "%s (%d of %d): %s" % (RESTARTED, count, restarts, session.what_happened))
    return True


_CHANGES: Dict[str, Callable[[Store, Change, SessionRecord], None]] = {
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
