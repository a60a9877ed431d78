# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""End sessions: their containers and networks, on every agent that answers, and what ended sessions have left."""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Dict, List, Mapping, Sequence

from ...module_utils._shared import states
from ...module_utils._shared.codec import Json
from ...module_utils._shared.constants import GRACE
from ...module_utils._shared.documents import validation
from ...module_utils._shared.documents.decision import DecidedSession
from ...module_utils._shared.documents.step_documents import LogRequest, Logs, RemovedContainers
from ...module_utils._shared.documents.view import SessionList
from ...module_utils._shared.errors import Failure, StateError
from ...module_utils._shared.text.summaries import match_summary, termination_summary
from .._hosts.conductor import Play, StepError
from .._hosts.holder import login
from .._hosts.results import joint_failure
from .._hosts.steps import CONTAINERS_ABSENT, LOGS_READ, NETWORK_ABSENT, SESSIONS_LIST_ALL
from .deployment import network_patience, unreachable_agents
from .record import record_session
from .removal import failure_in
from .reports import RecentReports, Reports, collect_reports

# What the head keeps of the logs of each container.
_LINES, _BYTES, _SECONDS = 10000, 16 << 20, 30
NOTHING: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True)
class TerminateResult:
    """The end of a session. ``session`` is None if no live session had the name."""

    session: DecidedSession | None
    summary: str
    changed: bool


@dataclass
class CleanupResult:
    """The results of a removal, by agent. ``failed`` are the agents that still hold a part of the session."""

    answers: Dict[str, RemovedContainers | Failure] = field(default_factory=dict)
    failed: Dict[str, Failure] = field(default_factory=dict)

    @property
    def removed(self) -> Dict[str, RemovedContainers]:
        """The answers of the agents that have removed what they can."""
        return {agent: one for agent, one in self.answers.items() if isinstance(one, RemovedContainers)}

    @property
    def logs(self) -> List[Json]:
        return [Logs(one.logs).to_json() for one in self.removed.values() if one.logs]

    @property
    def outdated(self) -> List[str]:
        """The agents whose reports are outdated. A network without containers goes after the answer."""
        return [
            agent
            for agent, one in self.answers.items()
            if failure_in(one) or (isinstance(one, RemovedContainers) and (one.changed or one.left_networks))
        ]


def terminate(
    play: Play,
    name: str,
    owner: str = "",
    lease: int = 600,
    reason: str = "",
    recent: RecentReports | None = None,
    session_id: str = "",
) -> TerminateResult:
    """End a session, and remove what ended sessions have left. Raises StepError if an agent could not remove its part.

    ``recent`` are the reports of ends one after the other. With ``session_id``, no other session that has got the name meanwhile ends.
    """
    reports = recent.of("", ()) if recent else collect_reports(play, apps_of=[name])
    which = {"name": name, "owner": owner, "id": session_id}
    with play.phase("end"):
        begun = record_session(play, "terminating", **which, lease=lease, agents=reports.documents, reason=reason)
    session, play.waiting = begun.session, begun.waiting
    ending = session.id if session and session.state == states.TERMINATING else ""
    if play.check:
        return TerminateResult(session, termination_summary(session, name, True), bool(begun.changed or begun.remove))
    own = {ending: begun.grace} if ending else {}
    removed = remove(play, reports, begun.remove, begun.ended, own)
    if recent:
        recent.note_use(removed.outdated)
    if ending:
        reached = [agent for agent in reports.reachable if agent not in removed.failed]
        change = {"agents": reports.documents, "reached": reached, "logs": removed.logs}
        session = record_session(play, "terminated", id=ending, **change).session
    if removed.failed:
        raise StepError(joint_failure(list(removed.failed.values())))
    has_removed = any(one.changed for one in removed.removed.values())
    return TerminateResult(session, termination_summary(session, name), begun.changed or has_removed)


def terminate_matching(play: Play, pattern: str, *, many: bool, lease: int = 600) -> List[TerminateResult]:
    """End all live sessions of the owner whose names match. Raises StateError without ``many``."""
    answer = play.on_head(SESSIONS_LIST_ALL(owner=play.owner or login(), viewer=login()))
    listed = validation.arrived(SessionList, answer, "answer", play.head)
    by_name = {session.name: session for session in listed.sessions}
    names = [name for name in by_name if fnmatchcase(name, pattern)]
    play.show([match_summary(names, pattern)])
    if names and not many:
        raise StateError(match_summary(names, pattern, refused=True))
    recent, ended, failures = RecentReports(play, apps_of=names), [], []
    # Without a match, this still removes what sessions have left that have ended by themselves.
    for name in names or [pattern]:
        try:
            if name in by_name:
                # The agents of its containers are asked again.
                recent.note_use(by_name[name].agents)
            ended.append(terminate(play, name, play.owner, lease, recent=recent))
            play.show([ended[-1].summary])
        except StepError as error:
            failures.append(error.failure)
    if failures:
        raise StepError(joint_failure(failures))
    return ended


def remove(
    play: Play,
    reports: Reports,
    leftovers: Sequence[str],
    ended: Sequence[DecidedSession] = (),
    own: Mapping[str, int] = NOTHING,
) -> CleanupResult:
    """Remove the containers and networks of ended sessions, the ``leftovers``, and of the session that this run ends.

    ``own`` has the grace of that one, so that no label of a container makes the run longer. Programs of a session that the head has
    just found ended may run without knowing it: they get the usual grace, for which this run waits.

    The logs of those that the head has just found ``ended`` are kept. An agent that cannot remove leftovers of ended sessions is no
    failure: each later command tries again.
    """
    new = [one.id for one in ended if one.id in leftovers]
    _keep_logs(play, reports, new)
    ending, sessions = next(iter(own), ""), [*own, *leftovers]
    if not sessions:
        return CleanupResult()
    has_waited = not ending and reports.have_only_networks_of(leftovers)
    patience = network_patience(unreachable_agents(reports.agents), has_waited)
    logs = _logs_of(ending) if ending else None
    before = [session for session in leftovers if session not in new]
    grace = {**dict.fromkeys(new, GRACE), **own}
    absent = CONTAINERS_ABSENT(sessions=sessions, network=True, over=before, grace=grace, logs=logs)
    with play.phase("remove"):
        removed = CleanupResult(play.try_on_each(reports.reachable, absent))
        left = [agent for agent, one in removed.removed.items() if one.left_networks]
        last = NETWORK_ABSENT(sessions=sessions, deadline=patience)
        networks = play.try_on_each(left, last)
    if ending:
        answers = [*removed.answers.items(), *networks.items()]
        failures = ((agent, failure_in(answer)) for agent, answer in answers)
        removed.failed = {agent: failure for agent, failure in failures if failure}
    return removed


def _keep_logs(play: Play, reports: Reports, sessions: Sequence[str]) -> None:
    """Let the head keep the logs of sessions that have ended by themselves."""
    for session in sessions:
        holding = [
            agent.name
            for agent in reports.agents
            if any(container.session == session for container in agent.containers)
        ]
        answers = play.answers(holding, LOGS_READ(wanted=_logs_of(session))).values()
        logs = [answer.to_json() for answer in answers if isinstance(answer, Logs) and answer.logs]
        if logs:
            record_session(play, "terminated", id=session, logs=logs)


def _logs_of(session: str) -> LogRequest:
    return LogRequest(session, tail=_LINES, total=_BYTES, deadline=_SECONDS)
