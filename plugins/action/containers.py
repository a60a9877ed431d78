# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The controller's part of ``containers``: the keys that are installed, the secrets that a start delivers, and many agents."""

from __future__ import annotations

from typing import Callable

from ansible.module_utils.parsing.convert_bool import boolean

from ..module_utils._core import arrival
from ..module_utils._core.documents import Json
from ..module_utils._core.errors import InputError
from ..module_utils._core.model import Plan
from ..module_utils._ssh import config_files
from ..plugin_utils import _reports as reports
from ..plugin_utils import _secrets as secrets
from ..plugin_utils._action import TASK, ComputeAction, with_part
from ..plugin_utils._artifacts import Artifacts
from ..plugin_utils._coming_modules import building
from ..plugin_utils._joint_result import joint_result
from ..plugin_utils._kept_requests import KeptRequests
from ..plugin_utils._other_hosts import OtherHosts
from ..plugin_utils._ssh_identity import SessionIdentity


class ActionModule(ComputeAction):
    """Keys and secrets go from the controller's memory into options that are never logged."""

    def act(self, args: Json, task_vars: Json) -> Json:
        state = args.get("state", "started")
        if args.get("plan") and state == "started" and not self._task.check_mode:
            self._add_secrets(arrival.outline(args["plan"], TASK), args, task_vars)
        if state in ("created", "started") and boolean(args.get("install_ssh", False)):
            return self._with_ssh(args, task_vars)
        return self._result(args, task_vars, lambda _agent: {})

    def _with_ssh(self, args: Json, task_vars: Json) -> Json:
        """Create or start the containers, install SSH in them, and write the user's files."""
        plan = arrival.outline(args.get("plan"), TASK)
        artifacts = Artifacts(args.pop("artifacts", None) or "", plan.session.name)
        address = args.pop("address", None) or config_files.default_address(plan)
        own = SessionIdentity.of(plan, artifacts, check=self._task.check_mode)
        result = self._result(args, task_vars, lambda agent: {"bundle": own.bundle(agent)})
        if result.get("failed"):
            own.forget()
            return result
        route = reports.route_to(plan.main.agent, address, task_vars)
        return own.keep(result, route, check=self._task.check_mode, diff=self._task.diff)

    def _add_secrets(self, plan: Plan, args: Json, task_vars: Json) -> None:
        """Read the values of the session's secrets, which only a start needs."""
        if plan.session.secrets:
            given = self._templar.template(task_vars.get(secrets.VARIABLE))
            kept = KeptRequests(str(args.get("artifacts") or "")).files(plan.session.id)
            contents = secrets.read_secrets(plan.session.secrets, given, self._loader, kept)
            args["secrets"] = secrets.delivery(plan.session.secrets, contents).to_text()

    def _result(self, args: Json, task_vars: Json, own_options: Callable[[str], Json]) -> Json:
        """The module's result; with C(agents), the results of all of them as one."""
        agents, network_agent = args.pop("agents", None), args.pop("network_agent", "")
        if agents is None:
            return self.module("containers", with_part({**args, **own_options(str(args.get("agent")))}), task_vars)
        if not isinstance(agents, list) or not set(agents) <= set(task_vars.get("ansible_play_hosts_all") or ()):
            raise InputError("agents", agents, "must be a list of hosts of the play")

        def options(agent: str) -> Json:
            network = {"network": agent == network_agent} if network_agent else {}
            return with_part({**args, **network, "agent": agent, **own_options(agent)})

        # The state that the next step of a launch records. A module that runs in this process needs no archive.
        coming = ["session"] if args.get("state", "started") == "started" and not self.is_here(task_vars) else []
        hosts = OtherHosts(self, task_vars)
        try:
            with building(self, coming, task_vars):
                return joint_result(hosts.results(agents, "containers", options))
        finally:
            hosts.close()
