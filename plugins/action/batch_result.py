# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All of ``batch_result``: it asks every agent of a session, over connections of its own, until the command has ended."""

from __future__ import annotations

import math
from contextlib import suppress
from contextvars import Context, copy_context
from threading import Lock
from time import monotonic
from typing import Dict, Tuple

from ansible.errors import AnsibleError

from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json, Plan
from ansible_collections.cluster.compute.plugins.module_utils._core.parallel import run_all
from ansible_collections.cluster.compute.plugins.module_utils._core.waiting import wait_until
from ansible_collections.cluster.compute.plugins.module_utils._module import read_plan
from ansible_collections.cluster.compute.plugins.module_utils._planning.batch_result import (
    FAILURE,
    SILENT_PAUSE,
    BatchWait,
)
from ansible_collections.cluster.compute.plugins.module_utils._planning.growing_log import GrowingLog
from ansible_collections.cluster.compute.plugins.plugin_utils._action import ComputeAction
from ansible_collections.cluster.compute.plugins.plugin_utils._other_host import OtherHost
from ansible_collections.cluster.compute.plugins.plugin_utils._progress import TERMINAL

# Agents that are asked at the same time. Most of the time of an answer is spent on the network.
PARALLEL = 16


class ActionModule(ComputeAction):
    """One task for the whole wait, however long the command runs."""

    _requires_connection = False

    def act(self, args: Json, task_vars: Json) -> Json:
        plan = read_plan(args.get("plan") or {})
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
        self._task_vars = task_vars
        self._log = log
        self._agents: Dict[str, OtherHost] = {}
        self._opening = Lock()

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
            answer = self._open(main.agent).module("logs_info", self._log.query(self._plan.session.id, main.hostname))
        except AnsibleError:
            self._close(main.agent)
            return
        for log in answer.get("logs") or ():
            for line in self._log.news(main.hostname, str(log["text"])):
                self._action._display.display(TERMINAL.clear + line)

    def _show_warning(self) -> None:
        if self.wait.warning:
            self._action._display.display(TERMINAL.clear + self.wait.warning)

    def close(self) -> None:
        for agent in list(self._agents):
            self._close(agent)

    def _statuses(self) -> Dict[str, Json]:
        # Ansible keeps the context of a task in context variables, which new threads do not have.
        asked = [(agent, copy_context()) for agent in self._plan.agents]
        return dict(zip(self._plan.agents, run_all(self._in_context, asked, PARALLEL)))

    def _in_context(self, asked: Tuple[str, Context]) -> Json:
        agent, context = asked
        return context.run(self._ask, agent)

    def _ask(self, agent: str) -> Json:
        """The agent's answer, or a failure: it may answer again in the next round, over a new connection."""
        seconds = self.wait.round_seconds if agent == self._plan.main.agent else 0.0
        try:
            return self._open(agent).module(
                "batch_info", {"plan": self._plan.part(agent), "wait": seconds, "agent": agent}
            )
        except AnsibleError as error:
            self._close(agent)
            reason = " ".join(str(error).split()).rstrip(".")
            return {"failed": True, "msg": "%s cannot be reached: %s." % (agent, reason)}

    def _open(self, agent: str) -> OtherHost:
        # Ansible loads plugins and templates variables in one thread.
        with self._opening:
            if agent not in self._agents:
                self._agents[agent] = OtherHost(self._action, agent, self._task_vars)
            return self._agents[agent]

    def _close(self, agent: str) -> None:
        """Forget the connection; a host that does not answer cannot be cleaned up."""
        other = self._agents.pop(agent, None)
        if other is not None:
            with suppress(AnsibleError):
                other.close()
