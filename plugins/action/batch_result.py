# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All of ``batch_result``: it asks every agent of a session, over connections of its own, until the command has ended."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Dict

from ansible.errors import AnsibleError

from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json, Plan
from ansible_collections.cluster.compute.plugins.module_utils._module import read_plan
from ansible_collections.cluster.compute.plugins.module_utils._planning.batch_result import FAILURE, BatchWait
from ansible_collections.cluster.compute.plugins.plugin_utils._action import ComputeAction
from ansible_collections.cluster.compute.plugins.plugin_utils._other_host import OtherHost


class ActionModule(ComputeAction):
    """One task for the whole wait, however long the command runs."""

    _requires_connection = False

    def act(self, args: Json, task_vars: Json) -> Json:
        plan = read_plan(args.get("plan") or {})
        if self._task.check_mode:
            return {"skipped": True, "changed": False, "msg": "No command runs in check mode."}
        begun = time.monotonic()
        agents: Dict[str, OtherHost] = {}
        try:
            wait = self._wait(plan, agents, task_vars)
        finally:
            for agent in list(agents):
                _close(agents, agent)
        is_failure = wait.result.result == FAILURE
        terminate = plan.session.terminate_when_done or (is_failure and plan.session.on_failure == "terminate")
        duration = round(time.monotonic() - begun, 3)
        return {"changed": False, "duration": duration, "terminate": terminate, **wait.result.to_json()}

    def _wait(self, plan: Plan, agents: Dict[str, OtherHost], task_vars: Json) -> BatchWait:
        """Rounds over all agents, until there is a result; StateError if an agent stays silent."""
        wait = BatchWait()
        while not wait.result.result:
            time.sleep(wait.pause)
            statuses = {}
            for agent in plan.agents:
                seconds = wait.round_seconds if agent == plan.main.agent else 0.0
                statuses[agent] = self._ask(agent, {"plan": plan.to_json(), "wait": seconds}, agents, task_vars)
            wait = wait.after_round(statuses, plan.session.on_failure)
            wait.check_patience(plan.session.name)
        return wait

    def _ask(self, agent: str, args: Json, agents: Dict[str, OtherHost], task_vars: Json) -> Json:
        """The agent's answer, or a failure: it may answer again in the next round, over a new connection."""
        try:
            if agent not in agents:
                agents[agent] = OtherHost(self, agent, task_vars)
            return agents[agent].module("batch_info", dict(args, agent=agent))
        except AnsibleError as error:
            _close(agents, agent)
            return {
                "failed": True,
                "msg": "%s cannot be reached: %s." % (agent, " ".join(str(error).split()).rstrip(".")),
            }


def _close(agents: Dict[str, OtherHost], agent: str) -> None:
    """Forget the connection; a host that does not answer cannot be cleaned up."""
    other = agents.pop(agent, None)
    if other is not None:
        with suppress(AnsibleError):
            other.close()
