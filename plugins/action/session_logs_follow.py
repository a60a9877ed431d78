# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All of ``session_logs_follow``: it asks the agents of a session for new lines until the session ends."""

from __future__ import annotations

import time
from typing import Dict, List

from ansible.errors import AnsibleError

from ansible_collections.cluster.compute.plugins.module_utils._core import arrival
from ansible_collections.cluster.compute.plugins.module_utils._core.errors import ComputeError
from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json
from ansible_collections.cluster.compute.plugins.module_utils._planning.growing_log import FollowedLogs
from ansible_collections.cluster.compute.plugins.module_utils._views import logs_view
from ansible_collections.cluster.compute.plugins.plugin_utils._action import ComputeAction, failure_reason
from ansible_collections.cluster.compute.plugins.plugin_utils._other_hosts import OtherHosts
from ansible_collections.cluster.compute.plugins.plugin_utils._progress import TERMINAL

SPEC = {
    "session": {"type": "dict", "required": True},
    "containers": {"type": "list", "elements": "str", "default": []},
    "tail": {"type": "int", "default": 200},
}
# Seconds between two rounds; for which an agent may be silent; and of the longest run.
PAUSE, PATIENCE, LONGEST = 2.0, 600.0, 86400.0


class ActionModule(ComputeAction):
    """One task for the whole time."""

    _requires_connection = False

    def act(self, args: Json, task_vars: Json) -> Json:  # noqa: ARG002 (the check reads the task itself)
        _valid, checked = self.validate_argument_spec(argument_spec=SPEC)
        session, wanted, begun = checked["session"], checked["containers"], time.monotonic()
        followed = FollowedLogs(session["id"], wanted, checked["tail"])
        live = [one for one in session["containers"] if one["state"] not in ("missing", "unknown")]
        agents = list(dict.fromkeys(one["agent"] for one in live if not wanted or one["hostname"] in wanted))
        if not agents:
            self._show(logs_view(session["logs"], wanted, checked["tail"]))
        hosts = OtherHosts(self, task_vars)
        try:
            rounds = _Rounds(hosts, followed, agents)
            while rounds.answering and time.monotonic() - begun < LONGEST:
                self._show(rounds.news())
                time.sleep(PAUSE if rounds.answering else 0.0)
        finally:
            hosts.close()
        return {"changed": False}

    def _show(self, lines: List[str]) -> None:
        for line in lines:
            self._display.display(TERMINAL.clear + line)


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
        return ["(%s does not answer: %s)" % (agent, failure_reason(result).rstrip("."))] if is_new else []

    def _ask(self, agent: str) -> Json:
        try:
            result = self._hosts.module(agent, "logs_info", self._followed.query(agent))
            return result if result.get("failed") else {"logs": arrival.logs(result, agent)}
        except ComputeError as error:
            return {"failed": True, "msg": error.message}
        except AnsibleError as error:
            return {"failed": True, "msg": str(error)}
