# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The action of ``containers``: carries out the step of a state, with the keys and secrets of the controller."""

from __future__ import annotations

from typing import Any, Callable, Mapping, Tuple

from ..module_utils._agent.ssh import config_files
from ..module_utils._shared.codec import Json, ModuleResult
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

_LAUNCH = ("deadline", "runtime_volume")
# The step of each state, and the options that it takes besides the plan or the sessions.
_STATES: Mapping[str, Tuple[Callable[..., Call[Any]], Tuple[str, ...]]] = {
    "created": (steps.CONTAINERS_CREATED, (*_LAUNCH, "network")),
    "started": (steps.CONTAINERS_STARTED, (*_LAUNCH, "bootstrap_timeout")),
    "limited": (steps.CONTAINERS_LIMITED, ()),
    "stopped": (steps.CONTAINERS_STOPPED, ()),
    "absent": (steps.CONTAINERS_ABSENT, ("deadline", "launch", "logs", "network")),
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

    def act(self) -> ModuleResult:
        options = self.checked()
        at_least(options, deadline=0, timeout=1)
        plan = validation.plan(options["plan"], TASK) if options["plan"] is not None else None
        state, agent, folder = str(options["state"]), str(options["agent"]), str(options["artifacts"] or "")
        step, names = _STATES[state]
        params = _params({name: options[name] for name in (*names, "sessions")}, state, agent, plan)
        if plan and plan.session.secrets and state == "started" and not self._task.check_mode:
            given = self._templar.template(self.task_vars.get(SECRETS))
            params["secrets"] = delivered(plan.session, given, self._loader, folder)
        if plan and options["install_ssh"] and state in ("created", "started"):
            own = SessionIdentity.of(plan, Artifacts(folder, plan.session.name), check=self._task.check_mode)
            result = self.step(step(bundle=own.bundle(agent), **params), agent)
            return self._kept(own, result, options["address"], stay=state == "started")
        result = self.step(step(**params), agent)
        # A removal that is not complete says what it has removed, too.
        return {**result, **failure_of(result).to_result()} if "failure" in result else result

    def _kept(self, own: SessionIdentity, result: ModuleResult, address: str | None, *, stay: bool) -> ModuleResult:
        """The result, after the user's files are written. After a failure, containers that have started ``stay``, with these keys."""
        if result.get("failed"):
            if not stay or failure_of(result).code == ConflictError.code:
                own.forget()
            return result
        route = ssh_route.route_to(
            own.plan.main.agent, address or config_files.default_address(own.plan), self.task_vars, self._task
        )
        return own.keep(result, route, check=self._task.check_mode, diff=self._task.diff)


def _params(given: Json, state: str, agent: str, plan: Plan | None) -> Json:
    """The parameters of the step of a state from these options. A plan stands for its containers, and at the end for its session."""
    logs, sessions = given.pop("logs", None), given.pop("sessions")
    params = {name: value for name, value in given.items() if value is not None}
    if logs is not None:
        params["logs"] = LogRequest.from_json(logs)
    if plan and state != "absent":
        return {**params, "plan": plan.part(agent)}
    return {**params, "sessions": [plan.session.id] if plan else sessions}
