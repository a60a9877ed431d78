# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The dependencies of waiting sessions: the success of other sessions, and a start time.

A session that waits for what cannot happen any more leaves the queue with ERROR.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import List, Mapping, Sequence, Set, Tuple

from .._shared import states
from .._shared.constants import RESTART_ALL
from .._shared.documents.report import AgentReport
from .._shared.errors import InputError
from .._shared.exits import UP
from .._shared.planning.batch_result import FAILURE, SUCCESS
from .._shared.planning.request import Request
from .._shared.planning.restarts import restart_turn
from .session_record import SessionRecord

# The reason in the history of a session whose next command has not begun: what the agent reports is the end of the former.
REPLACED = "another session_command replaces the former"
_NO_COMMAND = "is a session without session_command, which never succeeds"


@dataclass(frozen=True)
class Dependencies:
    """``since``: the time from which the session may start, as far as it is known, in seconds since the epoch.

    ``reason``: which sessions it still waits for. ``failure``: the name of a session that will never succeed, and why.
    """

    since: float
    reason: str = ""
    failure: Tuple[str, str] = ("", "")

    @property
    def text(self) -> str:
        """Return which sessions it waits for, or why it waits in vain; empty if it waits for none."""
        return self.reason or " ".join(self.failure).strip()


def awaited(
    row: SessionRecord,
    request: Request,
    others: Mapping[str, SessionRecord | None],
    agents: Sequence[AgentReport],
    now: float,
) -> Dependencies:
    """Return what a waiting session waits for. ``others`` are the newest sessions of the names in ``session_after``."""
    # What has happened lies in the past, even if the clock of this host was ahead then.
    since, waits = request.earliest(min(row.created, now)), []
    for name in request.after:
        other = others[name]
        result, reason = _result(other, agents) if other else (FAILURE, "does not exist")
        if other is None or (result == FAILURE and not _starts_again(other, agents, now)):
            return Dependencies(since, failure=(name, reason))
        if result != SUCCESS:
            waits.append(f"{name}, which is {other.state}")
        since = max(since, min(other.changed, now))
    reason = f"waits for the success of {' and of '.join(waits)}" if waits else ""
    return Dependencies(since, reason)


def check_awaited(
    row: SessionRecord, request: Request, waits: Dependencies, waiting: Sequence[Tuple[SessionRecord, Request]]
) -> None:
    """Raise InputError for a session that waits for another that never succeeds, or that waits for this session."""
    name, reason = waits.failure
    if name:
        raise InputError("session_after", name, f"must be a session that succeeds: {name} {reason}")
    circle = _circle(row, request, waiting)
    if circle:
        raise InputError("session_after", circle[1], f"must not wait for this session: {' waits for '.join(circle)}")


def reason_to_give_up(row: SessionRecord, request: Request, waits: Dependencies, now: float) -> str:
    """Why a session leaves the queue: it has waited for too long, or waits in vain; empty if it stays."""
    if request.pending_timeout and now - request.earliest(row.created) > request.pending_timeout:
        reason = f": {row.reason}" if row.reason else ""
        return "it waited longer than the %d s of session_pending_timeout%s" % (request.pending_timeout, reason)
    return f"session_after: {waits.text}" if waits.failure[0] else ""


def _result(row: SessionRecord, agents: Sequence[AgentReport]) -> Tuple[str, str]:
    """The result of a session, empty if it has none yet, and why it is not SUCCESS."""
    if row.state in states.ENDED:
        how = "has failed" if row.result == FAILURE else "ended without a result"
        return row.result or FAILURE, f"{how}: {row.reason}"
    command = row.request.command if row.request else row.plan.session.command if row.plan else None
    if command == "":
        return FAILURE, _NO_COMMAND
    if row.result or row.state != states.RUNNING or (row.history and row.history[-1].reason == REPLACED):
        return row.result, f"has failed: {row.reason}"
    # The command may have ended without a controller that waited for it.
    running = row.running_command(agents)
    if running is None or not running.has_ended:
        return "", ""
    return FAILURE if running.exit_code else SUCCESS, f"has failed: {running.end}"


def _starts_again(row: SessionRecord, agents: Sequence[AgentReport], now: float) -> bool:
    """Return whether a pass restarts all containers of a session, with the command that has failed."""
    plan = row.plan
    if row.state != states.RUNNING or plan is None or plan.session.on_failure != RESTART_ALL:
        return False
    up = {(agent.name, one.id) for agent in agents for one in agent.containers if one.state in UP}
    is_degraded = any((one.agent, one.id) not in up for one in plan.containers)
    return is_degraded and restart_turn(row.history, plan.session.restarts, now)[0] < plan.session.restarts


def _circle(row: SessionRecord, request: Request, waiting: Sequence[Tuple[SessionRecord, Request]]) -> List[str]:
    """The names from this session back to it, along the sessions that wait for each other; empty if there is no way."""
    after = {other.name: asked.after for other, asked in waiting if other.owner == row.owner}
    ways: List[Tuple[str, ...]] = [(row.name, name) for name in request.after]
    seen: Set[str] = set()
    while ways:
        way = ways.pop()
        if way[-1] == row.name:
            return list(way)
        if way[-1] not in seen:
            seen.add(way[-1])
            ways += [(*way, name) for name in after.get(way[-1], ())]
    return []
