# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All of ``verify``: it runs on the controller, whatever host the task is for."""

from __future__ import annotations

import time
from typing import List

from ansible.errors import AnsibleError

from ..module_utils._core import arrival
from ..module_utils._core.documents import Json
from ..module_utils._core.errors import ComputeError, InputError
from ..module_utils._core.model import Plan
from ..module_utils._docker.deaths import LAST_LINES, joined_lines
from ..module_utils._ssh.config_files import default_address, ssh_port
from ..plugin_utils import _reports as reports
from ..plugin_utils._action import TASK, ComputeAction
from ..plugin_utils._artifacts import Artifacts
from ..plugin_utils._other_hosts import OtherHosts
from ..plugin_utils._proof import Proof, seconds_for
from ..plugin_utils._ssh_reachability import SshEndpoint, reach

_MOST_OF_LOGS = 1 << 16

SPEC = {
    "plan": {"type": "dict", "required": True},
    "artifacts": {"type": "path"},
    "address": {"type": "str"},
    "timeout": {"type": "int", "default": 60},
}


class ActionModule(ComputeAction):
    """Logs in to main1 as the session's user does, and reaches the other containers from there."""

    _requires_connection = False

    def act(self, args: Json, task_vars: Json) -> Json:  # noqa: ARG002 (the check reads the task itself)
        _valid, checked = self.validate_argument_spec(argument_spec=SPEC)
        plan = arrival.outline(checked["plan"], TASK)
        if checked["timeout"] < 1:
            raise InputError("timeout", checked["timeout"], "must be at least 1")
        if self._task.check_mode:
            return {
                "skipped": True,
                "changed": False,
                "msg": "Nothing is started in check mode, so nothing can be verified.",
            }
        begun = time.monotonic()
        artifacts = Artifacts(checked["artifacts"] or "", plan.session.name)
        identity = artifacts.identity(plan.session.id, create=False)
        if identity is None:
            raise ComputeError(
                f"{artifacts.folder} has no identity of session {plan.session.name}; verify it from the controller that launched it."
            )
        route = reports.route_to(plan.main.agent, checked["address"] or default_address(plan), task_vars)
        endpoint = SshEndpoint(
            host=route.address,
            port=ssh_port(plan).host_port,
            user=plan.session.user.name,
            key_file=artifacts.folder + "/id_container",
            host_key=identity.host(plan.main.hostname).public,
            name=plan.main.hostname,
            proxy=route.proxy,
        )
        timeout = seconds_for(checked["timeout"], len(plan.containers))
        hosts = OtherHosts(self, task_vars)
        try:
            answered = set(reach(endpoint, Proof.of(plan), timeout, lambda: _refuse_ended(plan, hosts)))
        finally:
            hosts.close()
        reached = [container.hostname for container in plan.containers if container.hostname in answered]
        return {"changed": False, "reached": reached, "duration": round(time.monotonic() - begun, 3)}


def _refuse_ended(plan: Plan, hosts: OtherHosts) -> None:
    """Raise an error for a container of the plan that has ended: it will not answer."""
    options = {"session": plan.session.id, "ended": True, "tail": LAST_LINES, "total": _MOST_OF_LOGS, "deadline": 10}

    def logs(agent: str) -> List[Json]:
        try:
            return list(hosts.module(agent, "logs_info", options).get("logs") or ())
        except AnsibleError:
            return []  # The verification itself reports what does not answer.

    for agent, found in zip(plan.agents, hosts.each(plan.agents, logs)):
        for log in found:
            values = (log["hostname"], agent, joined_lines(log["text"]).rstrip("."))
            message = "%s: on %s the container ended right after its start; its last lines: %s."
            raise ComputeError(message % values, str(log["hostname"]))
