# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The controller's part of ``containers``: the keys that are installed, and the secrets that a start delivers."""

from __future__ import annotations

from ansible.module_utils.parsing.convert_bool import boolean

from ..module_utils._core import arrival
from ..module_utils._core.documents import Json
from ..module_utils._core.model import Plan
from ..module_utils._ssh import config_files
from ..plugin_utils import _reports as reports
from ..plugin_utils import _secrets as secrets
from ..plugin_utils._action import TASK, ComputeAction, with_part
from ..plugin_utils._artifacts import Artifacts
from ..plugin_utils._kept_requests import KeptRequests
from ..plugin_utils._ssh_identity import SessionIdentity


class ActionModule(ComputeAction):
    """Keys and secrets go from the controller's memory into options that are never logged."""

    def act(self, args: Json, task_vars: Json) -> Json:
        state = args.get("state", "started")
        if args.get("plan") and state == "started" and not self._task.check_mode:
            self._add_secrets(arrival.outline(args["plan"], TASK), args, task_vars)
        if state in ("created", "started") and boolean(args.get("install_ssh", False)):
            return self._with_ssh(args, task_vars)
        return self.module("containers", with_part(args), task_vars)

    def _with_ssh(self, args: Json, task_vars: Json) -> Json:
        """Create or start the containers, install SSH in them, and write the user's files."""
        plan = arrival.outline(args.get("plan"), TASK)
        artifacts = Artifacts(args.pop("artifacts", None) or "", plan.session.name)
        address = args.pop("address", None) or config_files.default_address(plan)
        own = SessionIdentity.of(plan, artifacts, check=self._task.check_mode)
        bundle = {"bundle": own.bundle(str(args.get("agent")))}
        result = self.module("containers", with_part({**args, **bundle}), task_vars)
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
