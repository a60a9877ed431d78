# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The controller's part of ``ssh``: derives the keys, sends the agent its share, and writes the user's files."""

from __future__ import annotations

from ..module_utils._core import arrival
from ..module_utils._core.documents import Json
from ..module_utils._module import read_part
from ..module_utils._ssh import config_files
from ..modules.ssh import ARGUMENT_SPEC, RULES
from ..plugin_utils import _reports as reports
from ..plugin_utils._action import TASK, ComputeAction
from ..plugin_utils._artifacts import Artifacts
from ..plugin_utils._ssh_identity import SessionIdentity


class ActionModule(ComputeAction):
    """Carries out the step once, with all secrets in a single parameter that is never logged."""

    def act(self, args: Json, task_vars: Json) -> Json:  # noqa: ARG002 (Ansible reads the options of the task itself)
        options = self.checked(ARGUMENT_SPEC, RULES)
        plan = arrival.outline(options["plan"], TASK)
        agent = str(options["agent"] or task_vars.get("inventory_hostname"))
        artifacts = Artifacts(options["artifacts"] or "", plan.session.name)
        address = options["address"] or config_files.default_address(plan)
        own = SessionIdentity.of(plan, artifacts, check=self._task.check_mode)
        result: Json = {"changed": False, "installed": []}
        if plan.on(agent):
            wanted = {name: options[name] for name in ("containers", "docker_host", "timeout")}
            own_part = {"plan": read_part(options["plan"], agent), "bundle": own.bundle(agent)}
            result = self.step("ssh.install", {**wanted, **own_part}, task_vars, agent)
        if result.get("failed"):
            own.forget()
            return result
        route = reports.route_to(plan.main.agent, address, task_vars)
        return own.keep(result, route, check=self._task.check_mode, diff=self._task.diff)
