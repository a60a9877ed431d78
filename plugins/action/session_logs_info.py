# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All of ``session_logs_info``: it reads the logs of a session from its agents, once or until the session ends."""

from __future__ import annotations

import time
from itertools import chain
from typing import Any, Dict, List, Mapping, Sequence

from ..module_utils._shared.codec import Json, ModuleResult
from ..module_utils._shared.documents.step_documents import LogRequest, Logs
from ..module_utils._shared.documents.view import SessionView
from ..module_utils._shared.errors import Failure
from ..module_utils._shared.text.summaries import logs_view
from ..plugin_utils._client.log_follower import FollowedLogs
from ..plugin_utils._hosts.call import Call
from ..plugin_utils._hosts.conducted_action import ConductorAction
from ..plugin_utils._hosts.conductor import Play
from ..plugin_utils._hosts.results import root_cause
from ..plugin_utils._hosts.steps import LOGS_READ
from ..plugin_utils._hosts.transfer_watch import TERMINAL
from ..plugin_utils._session.listing import newest_row
from ..plugin_utils._settings.options import OPTIONS
from ..plugin_utils._settings.settings import Settings

# Seconds between two rounds; for which an agent may be silent; and of the longest run.
PAUSE, PATIENCE, LONGEST = 2.0, 600.0, 86400.0


class ActionModule(ConductorAction):
    """One task for all agents and the whole time."""

    OPTIONS = OPTIONS["session_logs_info"]

    def conduct(self, play: Play, options: Mapping[str, Any]) -> ModuleResult:  # noqa: ARG002 (each is a variable)
        session, settings = newest_row(play)
        if settings.logs_follow:
            follow(play, session, settings)
            return {"changed": False}
        return read(play, session, settings)


def follow(play: Play, session: SessionView, settings: Settings) -> None:
    """Show new lines until the session ends, or until no one reads them, as after ``| head``.

    Of a session that has ended, show the logs that the head has kept.
    """
    wanted, tail, begun = list(settings.logs_containers), settings.logs_tail, time.monotonic()
    rounds = _Rounds(play, FollowedLogs(session.id, wanted, tail), agents_of(session, wanted))
    if not rounds.answering:
        _show(play, logs_view(session.logs, wanted, tail))
    while rounds.answering and time.monotonic() - begun < LONGEST and not TERMINAL.is_unread:
        _show(play, rounds.unseen())
        time.sleep(PAUSE if rounds.answering else 0.0)


def _show(play: Play, lines: List[str]) -> None:
    for line in lines:
        play.say(line)


def agents_of(session: SessionView, wanted: Sequence[str]) -> List[str]:
    """The agents that have logs of these containers, or of all."""
    live = [one for one in session.containers if one.state not in ("missing", "unknown")]
    return list(dict.fromkeys(one.agent for one in live if not wanted or one.hostname in wanted))


def read(play: Play, session: SessionView, settings: Settings) -> Json:
    """The logs that the head has kept, and those that the agents have."""
    wanted, tail = list(settings.logs_containers), settings.logs_tail
    query = LogRequest(session.id, tuple(wanted), tail=tail)
    agents = agents_of(session, wanted)
    answers = play.answers(agents, LOGS_READ(wanted=query))
    read_now = (answer.logs for answer in answers.values() if isinstance(answer, Logs))
    logs = [*session.logs, *chain.from_iterable(read_now)]
    lines = logs_view(logs, wanted, tail)
    lines += [_silence(agent, answer) for agent, answer in answers.items() if isinstance(answer, Failure)]
    lost = [one for one in session.containers if one.state == "unknown"]
    lines += [f"({one.end})" for one in lost if not wanted or one.hostname in wanted]
    return {"changed": False, "logs": [log.to_json() for log in logs], "lines": lines}


class _Rounds:
    """Each round asks every agent that may still have a running container of the session."""

    def __init__(self, play: Play, followed: FollowedLogs, agents: List[str]) -> None:
        self.answering = list(agents)
        self._play = play
        self._followed = followed
        self._silent: Dict[str, float] = {}

    def unseen(self) -> List[str]:
        lines: List[str] = []
        for agent, answer in self._play.answers(self.answering, self._query).items():
            if isinstance(answer, Failure):
                lines += self._of_silent(agent, answer)
                continue
            self._silent.pop(agent, None)
            lines += self._followed.unseen(agent, answer.logs)
            if not any(log.state in ("created", "restarting", "running") for log in answer.logs):
                self.answering.remove(agent)
        return lines

    def _query(self, agent: str) -> Call[Logs]:
        return LOGS_READ(wanted=self._followed.query(agent))

    def _of_silent(self, agent: str, failure: Failure) -> List[str]:
        now = time.monotonic()
        is_new = agent not in self._silent
        if now - self._silent.setdefault(agent, now) > PATIENCE:
            self.answering.remove(agent)
        return [_silence(agent, failure)] if is_new else []


def _silence(agent: str, failure: Failure) -> str:
    return f"({agent} does not answer: {root_cause(failure).rstrip('.')})"
