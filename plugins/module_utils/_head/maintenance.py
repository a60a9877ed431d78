# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Maintain the store: adopt sessions, give up lost launches, find what is to be removed, forget what is old.

The engines' reports come in as documents; nothing here connects to an engine.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import replace
from typing import Dict, Iterable, Iterator, List, Mapping, Sequence, Tuple

from .._shared import states
from .._shared.documents.decision import Holder
from .._shared.documents.plan import Session
from .._shared.documents.report import AgentReport
from .._shared.documents.schema import UUID
from .._shared.documents.view import SessionView
from .._shared.exits import OTHERWISE, UP, WITH_COMMAND
from .._shared.planning.policy import SitePolicy
from .._shared.planning.policy_rules import too_long
from .._shared.planning.request import Request
from .adoption import adopted_rows
from .dependencies import awaited, reason_to_give_up
from .listing import list_sessions
from .session_record import COLUMNS, LIVE_ROWS, SessionRecord, Update, row_of
from .session_view import has_died
from .store import Store

_DAY = 86400.0
# Whether the plan and the request of a session are its own, which is slow to find by reading them.
_LOOKS = f"""SELECT rowid, id, state, (plan = 'null' OR instr(plan, id)) AND (request || plan = 'nullnull' OR
    (instr(request || plan, printf('"%s"', name)) AND instr(request || plan, printf('"%s"', owner))))
    FROM session WHERE {LIVE_ROWS}"""
# Seconds by which a clock may be set back without a note.
_STEP = 60
_TIMES = "CAST(created AS REAL), CAST(changed AS REAL)"
# Such an end would be kept, and counted as use, until that time.
_ENDS = {"session": ("changed", f"NOT ({LIVE_ROWS})"), "holding": ("ended", "ended IS NOT NULL")}
# Times that cannot be count as 0.
_IN_FUTURE = f"SELECT id FROM session WHERE {LIVE_ROWS} AND max({_TIMES}) > ? AND max({_TIMES}) < 1e11"
RESTORED = "its record in the store was damaged, and is restored"
# The last entry of a history describes its session's state, so this entry comes first.
_FIRST_ENTRY = "INSERT INTO history (rowid, session, time, before, after, reason) SELECT min(rowid) - 1, ?, ?, ?, ?, ? FROM history"


def catch_up(store: Store, agents: Sequence[AgentReport], site: SitePolicy, now: float, takeover: str = "") -> None:
    """Adopt sessions, give up the launches of lost controllers, and end the sessions that are over or wait in vain."""
    adopt(store, agents, now)
    correct_times(store, now)
    expire(store, now, takeover)
    end_over(store, agents, now)
    cancel_old(store, site, now)
    give_up(store, agents, now)


def adopt(store: Store, agents: Sequence[AgentReport], now: float) -> None:
    """Record the sessions that the engines hold and the store does not know: the store was lost, their labels were not."""
    known = store.states()
    labelled = adopted_rows(agents, set(known))
    _restore(store, known, {(row.owner, row.name): row.id for row in labelled}, now)
    _forget_unseen(store, agents)
    for row in labelled:
        if row.id not in known and store.find(row.name, row.owner) is None:
            store.add(row, now, "adopted from its labels")


def _restore(store: Store, known: Dict[str, str], labelled: Mapping[Tuple[str, str], str], now: float) -> None:
    """Give sessions with a damaged ID, name, owner or state what their plans, requests, labels and histories have.

    Without these, no command finds or ends them.
    """
    for number, found, state, is_its_own in store.query(_LOOKS):
        if UUID(found) and state in states.LIVE and is_its_own:
            continue
        [values] = store.query(f"SELECT {', '.join(COLUMNS)} FROM session WHERE rowid = ?", (number,))
        row = row_of(values)
        of_plan = row.plan.session.id if row.plan else row.id
        wanted = (of_plan, row.id, labelled.get((row.owner, row.name)), str(uuid.uuid4()))
        identity = next(one for one in wanted if one and UUID(one) and (one == row.id or one not in known))
        after = [entry.after for entry in store.history(identity) if entry.after in states.LIVE | states.ENDED]
        usual = states.RUNNING if row.plan else states.PENDING
        own: Session | Request | SessionRecord = row.plan.session if row.plan else row.request or row
        # Another session may have got the name meanwhile.
        named = row if store.find(own.name, own.owner) else own
        right = (identity, named.name, named.owner, state if state in states.LIVE else after[-1] if after else usual)
        if right != (found, row.name, row.owner, state):
            known[identity] = right[-1]
            store.execute("UPDATE session SET id = ?, name = ?, owner = ?, state = ? WHERE rowid = ?", (*right, number))
            store.execute(_FIRST_ENTRY, (identity, now, right[-1], right[-1], RESTORED))


def _forget_unseen(store: Store, agents: Sequence[AgentReport]) -> None:
    """Forget the sessions that are known from their labels alone and are no longer seen; one with a damaged request has its plan.

    Such a session may have a store of its own. It must not end in this one: ended sessions are removed from every agent.
    """
    seen = {container.session for agent in agents for container in agent.containers}
    if agents and all(agent.reachable for agent in agents):
        for row in store.live({states.RUNNING}):
            if row.request is None and row.plan is None and row.id not in seen:
                store.forget(row)


def correct_times(store: Store, now: float) -> None:
    """Move the times of live sessions into the past, if the clock of this host was ahead.

    It would else wait until that time, or outlive its lifetime by as much.
    """
    for table, (column, over) in _ENDS.items():
        where = f"{over} AND CAST({column} AS REAL) > ? AND CAST({column} AS REAL) < 1e11"
        if store.query(f"SELECT 1 FROM {table} WHERE {where} LIMIT 1", (now + _STEP,)):
            store.execute(f"UPDATE {table} SET {column} = ? WHERE {where}", (now, now + _STEP))
    for (session_id,) in store.query(_IN_FUTURE, (now + _STEP,)):
        row = store.get(session_id)
        if row is None:
            continue
        plan = row.plan
        if plan and plan.session.began > now:
            plan = replace(plan, session=replace(plan.session, began=now))
        store.save(replace(row, created=min(row.created, now), changed=min(row.changed, now), plan=plan))


def expire(store: Store, now: float, takeover: str = "") -> None:
    """Give up the launches of lost controllers: their lease has run out, or ``takeover`` names them."""
    for row in store.live(states.LAUNCHING | {states.TERMINATING}):
        if not row.is_lost(now, takeover):
            continue
        if row.state in states.LAUNCHING:
            store.change(row, states.ERROR, now, f"its controller was lost while it was {row.state}")
        else:
            store.save(replace(row, holder=None, lease=0.0))


def end_over(store: Store, agents: Sequence[AgentReport], now: float, besides: str = "") -> None:
    """Record the end of the sessions that have ended by themselves or with a container, besides one.

    What they leave is removed with that of others.

    A session that another controller repairs is left to that controller.
    A session that is known from its labels alone may have a store of its own, which records its end.
    """
    rows = [row for row in store.live({states.RUNNING}) if row.plan and row.is_lost(now) and row.id != besides]
    for row, session in zip(rows, list_sessions(rows, agents)):
        reason = session.limit_reached or (session.what_happened if has_died(session) else "")
        if reason:
            ended = Update(row).having(result=row.result or result_of(session, row))
            store.apply(ended.change(states.TERMINATING, now, reason).change(states.TERMINATED, now, reason))


def result_of(session: SessionView, row: SessionRecord) -> str:
    """The result of a session whose command no controller waited for."""
    if session.command and session.command.has_ended:
        return "FAILURE" if session.command.exit_code else "SUCCESS"
    main_code = next((one.exit_code for one in session.containers if one.hostname == "main1"), None)
    if main_code in WITH_COMMAND and session.limit_reached:
        return WITH_COMMAND[main_code]
    dead = [one.hostname for one in session.containers if one.state not in (*UP, *OTHERWISE, "unknown")]
    is_failure = (dead and session.on_failure == "terminate") or (row.settings.command and "main1" in dead)
    return "FAILURE" if is_failure else ""


def cancel_old(store: Store, site: SitePolicy, now: float) -> None:
    """End the sessions that have waited longer than the policy of the site permits."""
    for row in store.live({states.PENDING}):
        reason = too_long(site, row.owner, now - row.created)
        if reason:
            store.change(row, states.CANCELLED, now, reason)


def give_up(store: Store, agents: Sequence[AgentReport], now: float) -> None:
    """End the waiting sessions that wait in vain or have waited for too long, and those that wait for them."""
    limited = [(row, asked) for row, asked in store.waiting() if asked.after or asked.pending_timeout]
    # Each round ends all such sessions: a new round for each of hundreds would be slow.
    while True:
        left = [one for one in limited if not _is_given_up(store, *one, agents, now)]
        if len(left) == len(limited):
            return
        limited = left  # another session may wait for one of the others


def _is_given_up(store: Store, row: SessionRecord, request: Request, agents: Sequence[AgentReport], now: float) -> bool:
    others = {name: store.newest(name, row.owner) for name in request.after}
    reason = reason_to_give_up(row, request, awaited(row, request, others, agents, now), now)
    if reason:
        store.change(row, states.ERROR, now, reason)
    return bool(reason)


def keep_pass(store: Store, holder: Holder, until: float) -> None:
    """Extend the lease of the pass of this process, if it makes one: each launch and each end takes its time."""
    store.execute("UPDATE pass SET lease = max(lease, ?) WHERE holder = ?", (until, text_of(holder)))


def text_of(holder: Holder) -> str:
    """The holder of a pass as the store has it."""
    return json.dumps(holder.to_json(), sort_keys=True)


def removable(store: Store, agents: Sequence[AgentReport]) -> Tuple[str, ...]:
    """Ended sessions that still have a container or a network on an agent.

    A session that another store has repaired after its end is not among them: what it has runs.
    """
    ends = store.ends(session for agent in agents for session in _sessions_on(agent))
    seen = [container for agent in agents for container in agent.containers if container.session in ends]
    running = {container.session for container in seen if not ends[container.session].includes(container)}
    return tuple(sorted(set(ends) - running))


def _sessions_on(agent: AgentReport) -> Iterator[str]:
    for network in agent.networks:
        if network.session:
            yield network.session
    for container in agent.containers:
        yield container.session


def expired(store: Store, agents: Iterable[AgentReport], now: float, days: int) -> List[str]:
    """The sessions that ended more than ``days`` ago. It stays if an agent has a part of it, or another waits for it."""
    if not days:
        return []
    seen = {session for agent in agents for session in _sessions_on(agent)}
    waiting = (store.newest(name, row.owner) for row, request in store.waiting() for name in request.after)
    seen.update(other.id for other in waiting if other)
    marks = ", ".join("?" * len(states.ENDED))
    query = f"SELECT id FROM session WHERE state IN ({marks}) AND changed < ? ORDER BY changed"
    found = store.query(query, (*sorted(states.ENDED), now - days * _DAY))
    return [row[0] for row in found if row[0] not in seen]


def retire(store: Store, sessions: Iterable[str], now: float) -> None:
    """Remove ended sessions with their plans and their history.

    Their IDs stay: what a lost agent may still have of them is removed when it is back, and never adopted as a session
    that runs.
    """
    for session in sessions:
        store.execute("INSERT OR REPLACE INTO retired VALUES (?, ?)", (session, now))
        for table in ("history", "requester", "launch"):
            store.execute(f"DELETE FROM {table} WHERE session = ?", (session,))
        store.execute("DELETE FROM session WHERE id = ?", (session,))
