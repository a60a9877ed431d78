# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All of ``batch_result``: it asks every agent of a session, over connections of its own, until the command has ended."""

from __future__ import annotations

import math
from time import monotonic
from typing import Dict

from ansible.errors import AnsibleError

from ..module_utils._core import arrival
from ..module_utils._core.documents import Json
from ..module_utils._core.errors import ComputeError
from ..module_utils._core.model import Plan
from ..module_utils._core.waiting import wait_until
from ..module_utils._planning.batch_result import FAILURE, SILENT_PAUSE, BatchWait
from ..module_utils._planning.growing_log import GrowingLog
from ..plugin_utils._action import TASK, ComputeAction
from ..plugin_utils._other_hosts import OtherHosts
from ..plugin_utils._progress import TERMINAL


class ActionModule(ComputeAction):
    """One task for the whole wait, however long the command runs."""

    _requires_connection = False

    def act(self, args: Json, task_vars: Json) -> Json:
        plan = arrival.plan(args.get("plan") or {}, TASK)
        if self._task.check_mode:
            return {"skipped": True, "changed": False, "msg": "No command runs in check mode."}
        begun = monotonic()
        rounds = _Rounds(self, plan, task_vars, GrowingLog(str(args.get("since") or "")))
        try:
            wait_until(rounds.have_ended, math.inf, first_pause=SILENT_PAUSE, longest_pause=SILENT_PAUSE)
        finally:
            rounds.close()
        result = rounds.wait.result
        terminate = plan.session.terminate_when_done or (
            result.result == FAILURE and plan.session.on_failure == "terminate"
        )
        duration = round(monotonic() - begun, 3)
        return {"changed": False, "duration": duration, "terminate": terminate, **result.to_json()}


class _Rounds:
    """Rounds over all agents of a session, each of which asks every agent once."""

    def __init__(self, action: ComputeAction, plan: Plan, task_vars: Json, log: GrowingLog) -> None:
        self.wait = BatchWait()
        self._action = action
        self._plan = plan
        self._log = log
        self._hosts = OtherHosts(action, task_vars)

    def have_ended(self) -> bool:
        """Whether there is a result: false after a round with a silent agent, StateError after too many of them.

        Rounds without a silent agent need no pause, because the agent of main1 watches the command meanwhile.
        """
        while True:
            self.wait = self.wait.after_round(self._statuses(), self._plan.session.on_failure)
            self._show_news()
            self._show_warning()
            self.wait.check_patience(self._plan.session.name)
            if self.wait.result.result or self.wait.silent:
                return bool(self.wait.result.result)

    def _show_news(self) -> None:
        """What the command has written since the last round. The result does not depend on it."""
        main = self._plan.main
        if main.agent in self.wait.silent:
            return
        try:
            query = self._log.query(self._plan.session.id, main.hostname)
            found = arrival.logs(self._hosts.module(main.agent, "logs_info", query), main.agent)
        except (AnsibleError, ComputeError):
            return
        for log in found:
            for line in self._log.news(main.hostname, str(log["text"])):
                self._action._display.display(TERMINAL.clear + line)

    def _show_warning(self) -> None:
        if self.wait.warning:
            self._action._display.display(TERMINAL.clear + self.wait.warning)

    def close(self) -> None:
        self._hosts.close()

    def _statuses(self) -> Dict[str, Json]:
        return dict(zip(self._plan.agents, self._hosts.each(self._plan.agents, self._ask)))

    def _ask(self, agent: str) -> Json:
        """The agent's answer, or a failure: it may answer again in the next round, over a new connection."""
        seconds = self.wait.round_seconds if agent == self._plan.main.agent else 0.0
        try:
            options = {"plan": self._plan.part(agent), "wait": seconds, "agent": agent}
            return arrival.status(self._hosts.module(agent, "batch_info", options), agent)
        except ComputeError as error:
            return {"failed": True, "msg": error.message}
        except AnsibleError as error:
            reason = " ".join(str(error).split()).rstrip(".")
            return {"failed": True, "msg": f"{agent} cannot be reached: {reason}."}
