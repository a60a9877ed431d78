# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The action of ``containers``: carries out the step of a state, with the keys and secrets of the controller."""

from __future__ import annotations

from typing import Any, Callable, Mapping

from ..module_utils._agent.ssh import config_files
from ..module_utils._shared.codec import Json
from ..module_utils._shared.documents import validation
from ..module_utils._shared.documents.plan import Plan
from ..module_utils._shared.documents.step_documents import LogRequest
from ..module_utils._shared.errors import ConflictError
from ..module_utils._shared.planning.secret_rules import SECRETS
from ..module_utils._worker.module import at_least
from ..plugin_utils._client.identity import SessionIdentity
from ..plugin_utils._client.secret_values import delivered
from ..plugin_utils._client.session_dir import Artifacts
from ..plugin_utils._hosts import ssh_route, steps
from ..plugin_utils._hosts.action import TASK, ComputeAction
from ..plugin_utils._hosts.call import Call
from ..plugin_utils._hosts.results import failure_of

# The options that each state takes besides the plan or the sessions.
_STEPS: Mapping[str, Callable[..., Call[Any]]] = {
    "created": steps.CONTAINERS_CREATED,
    "started": steps.CONTAINERS_STARTED,
    "limited": steps.CONTAINERS_LIMITED,
    "stopped": steps.CONTAINERS_STOPPED,
    "absent": steps.CONTAINERS_ABSENT,
}
_LAUNCH = ("deadline", "runtime_volume")
_OPTIONS = {
    "created": (*_LAUNCH, "network"),
    "started": (*_LAUNCH, "bootstrap_timeout"),
    "limited": (),
    "stopped": (),
    "absent": ("deadline", "launch", "logs", "network"),
}


class ActionModule(ComputeAction):
    """Keys and secrets go from the controller's memory into parameters that are never logged."""

    RULES = {
        "mutually_exclusive": [["plan", "sessions"]],
        "required_if": [
            *[("state", state, ["plan"]) for state in ("created", "started", "limited")],
            *[("state", state, ["plan", "sessions"], True) for state in ("stopped", "absent")],
        ],
    }

    def act(self, args: Json, task_vars: Json) -> Json:  # noqa: ARG002 (Ansible reads the options of the task itself)
        options = self.checked()
        at_least(options, deadline=0, timeout=1)
        plan = validation.plan(options["plan"], TASK) if options["plan"] is not None else None
        params = self._params(options, plan)
        if plan and options["state"] == "started" and not self._task.check_mode:
            given = self._templar.template(task_vars.get(SECRETS)) if plan.session.secrets else None
            params["secrets"] = delivered(plan.session, given, self._loader, str(options["artifacts"] or ""))
        if plan and options["install_ssh"] and options["state"] in ("created", "started"):
            return self._with_ssh(plan, options, params, task_vars)
        result = self.step(_STEPS[options["state"]](**params), task_vars, options["agent"])
        # A removal that is not complete says what it has removed, too.
        return {**result, **failure_of(result).to_result()} if "failure" in result else result

    def _params(self, options: Json, plan: Plan | None) -> Json:
        """The parameters of the step of the state."""
        state = options["state"]
        params = {name: options[name] for name in _OPTIONS[state] if options[name] is not None}
        if "logs" in params:
            params["logs"] = LogRequest.from_json(params["logs"])
        if plan is None:
            return {**params, "sessions": options["sessions"]}
        if state == "absent":
            return {**params, "sessions": [plan.session.id]}
        return {**params, "plan": plan.part(options["agent"])}

    def _with_ssh(self, plan: Plan, options: Json, params: Json, task_vars: Json) -> Json:
        """Create or start the containers, install SSH in them, and write the user's files."""
        artifacts = Artifacts(options["artifacts"] or "", plan.session.name)
        address = options["address"] or config_files.default_address(plan)
        own = SessionIdentity.of(plan, artifacts, check=self._task.check_mode)
        wanted = {**params, "bundle": own.bundle(options["agent"])}
        result = self.step(_STEPS[options["state"]](**wanted), task_vars, options["agent"])
        if result.get("failed"):
            # Containers that have started have these keys, and stay.
            if options["state"] == "created" or failure_of(result).code == ConflictError.code:
                own.forget()
            return result
        route = ssh_route.route_to(plan.main.agent, address, task_vars, self._task)
        return own.keep(result, route, check=self._task.check_mode, diff=self._task.diff)
