# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All of ``session_logs_info``: it reads the logs of a session from its agents, once or until the session ends."""

from __future__ import annotations

import time
from typing import Dict, List

from ansible.errors import AnsibleError

from ..module_utils._core import arrival
from ..module_utils._core.documents import Json
from ..module_utils._core.errors import ComputeError
from ..module_utils._core.exits import describe_container_exit
from ..module_utils._planning.growing_log import FollowedLogs
from ..module_utils._text.views import logs_view
from ..plugin_utils._action import ComputeAction, failure_reason
from ..plugin_utils._other_hosts import OtherHosts
from ..plugin_utils._progress import TERMINAL

SPEC = {
    "session": {"type": "dict", "required": True},
    "containers": {"type": "list", "elements": "str", "default": []},
    "tail": {"type": "int", "default": 200},
    "follow": {"type": "bool", "default": False},
}
# Seconds between two rounds; for which an agent may be silent; and of the longest run.
PAUSE, PATIENCE, LONGEST = 2.0, 600.0, 86400.0


class ActionModule(ComputeAction):
    """One task for all agents and the whole time."""

    _requires_connection = False

    def act(self, args: Json, task_vars: Json) -> Json:  # noqa: ARG002 (the check reads the task itself)
        _valid, checked = self.validate_argument_spec(argument_spec=SPEC)
        hosts = OtherHosts(self, task_vars)
        try:
            return self._follow(hosts, checked) if checked["follow"] else read(hosts, checked)
        finally:
            hosts.close()

    def _follow(self, hosts: OtherHosts, checked: Json) -> Json:
        session, wanted, begun = checked["session"], checked["containers"], time.monotonic()
        rounds = _Rounds(hosts, FollowedLogs(session["id"], wanted, checked["tail"]), agents_of(session, wanted))
        if not rounds.answering:
            self._show(logs_view(session["logs"], wanted, checked["tail"]))
        while rounds.answering and time.monotonic() - begun < LONGEST:
            self._show(rounds.news())
            time.sleep(PAUSE if rounds.answering else 0.0)
        return {"changed": False}

    def _show(self, lines: List[str]) -> None:
        for line in lines:
            self._display.display(TERMINAL.clear + line)


def agents_of(session: Json, wanted: List[str]) -> List[str]:
    """The agents that have logs of these containers, or of all."""
    live = [one for one in session["containers"] if one["state"] not in ("missing", "unknown")]
    return list(dict.fromkeys(one["agent"] for one in live if not wanted or one["hostname"] in wanted))


def read(hosts: OtherHosts, checked: Json) -> Json:
    """The logs that the head has kept, and those that the agents have."""
    session, wanted = checked["session"], checked["containers"]
    query = {"session": session["id"], "containers": wanted, "tail": checked["tail"]}
    agents = agents_of(session, wanted)
    answers = dict(zip(agents, hosts.each(agents, lambda agent: _answer(hosts, agent, query))))
    logs = [*session["logs"], *(log for answer in answers.values() for log in answer.get("logs") or ())]
    lines = logs_view(logs, wanted, checked["tail"])
    lines += [_silence(agent, answer) for agent, answer in answers.items() if answer.get("failed")]
    lost = [one for one in session["containers"] if one["state"] == "unknown"]
    lines += [f"({describe_container_exit(one)})" for one in lost if not wanted or one["hostname"] in wanted]
    return {"changed": False, "logs": logs, "lines": lines}


class _Rounds:
    """Each round asks every agent that may still have a running container of the session."""

    def __init__(self, hosts: OtherHosts, followed: FollowedLogs, agents: List[str]) -> None:
        self.answering = list(agents)
        self._hosts = hosts
        self._followed = followed
        self._silent: Dict[str, float] = {}

    def news(self) -> List[str]:
        lines: List[str] = []
        results = dict(zip(self.answering, self._hosts.each(self.answering, self._ask)))
        for agent, result in results.items():
            if result.get("failed"):
                lines += self._of_silent(agent, result)
                continue
            self._silent.pop(agent, None)
            lines += self._followed.news(agent, result["logs"])
            if not any(log["state"] in ("created", "restarting", "running") for log in result["logs"]):
                self.answering.remove(agent)
        return lines

    def _of_silent(self, agent: str, result: Json) -> List[str]:
        now = time.monotonic()
        is_new = agent not in self._silent
        if now - self._silent.setdefault(agent, now) > PATIENCE:
            self.answering.remove(agent)
        return [_silence(agent, result)] if is_new else []

    def _ask(self, agent: str) -> Json:
        return _answer(self._hosts, agent, self._followed.query(agent))


def _answer(hosts: OtherHosts, agent: str, query: Json) -> Json:
    """The logs of an agent, or a failed result."""
    try:
        result = hosts.step(agent, "logs.read", query)
        return result if result.get("failed") else {"logs": arrival.logs(result, agent)}
    except ComputeError as error:
        return {"failed": True, "msg": error.message}
    except AnsibleError as error:
        return {"failed": True, "msg": str(error)}


def _silence(agent: str, result: Json) -> str:
    return f"({agent} does not answer: {failure_reason(result).rstrip('.')})"
