# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The controller's part of ``schedule``: repeats the attempt while the session waits, takes over from a controller that
has ended, renders the user's variables into the plan, and assigns the work to hosts."""

from __future__ import annotations

from typing import List, Mapping, Tuple

from ansible.module_utils.parsing.convert_bool import boolean
from ansible.utils.vars import load_extra_vars

from ..module_utils._agents.guard import unguarded
from ..module_utils._core import arrival
from ..module_utils._core.documents import Json
from ..module_utils._core.errors import StateError
from ..module_utils._core.model import Plan
from ..module_utils._core.shared_texts import completed_document
from ..module_utils._core.waiting import deadline_in, wait_until
from ..module_utils._planning.agreement import check_agreement
from ..module_utils._planning.deployment import (
    AgentStatus,
    deployment,
    lease_seconds,
    lost_agents,
    network_patience,
    steps,
)
from ..module_utils._planning.plan import with_user_environment
from ..module_utils._planning.request import Request
from ..module_utils._planning.rules import seconds_up_to
from ..module_utils._planning.settings import KEPT
from ..module_utils._text.views import summary
from ..plugin_utils import _notification as notification
from ..plugin_utils import _plan_text as plan_text
from ..plugin_utils import _reports as reports
from ..plugin_utils._action import ComputeAction, holder, is_gone
from ..plugin_utils._artifacts import Artifacts
from ..plugin_utils._ended_folders import EndedFolders
from ..plugin_utils._fresh_reports import FreshReports
from ..plugin_utils._kept_requests import KeptRequests
from ..plugin_utils._lost_files import restore
from ..plugin_utils._secrets import read_secrets, secret_files
from ..plugin_utils._user_templates import render_environment

# Seconds between two attempts of a session that waits; they grow from the first number to the second.
_INTERVAL = 2.0
_LONGEST_INTERVAL = 10.0
_LONGEST_WAIT = 7 * 86400
_LEASE = 600


class ActionModule(ComputeAction):
    """Calls the module until the session no longer waits, and again to take over from a controller that has ended."""

    def act(self, args: Json, task_vars: Json) -> Json:
        args["holder"] = holder()
        as_text = args.pop("plan_format", None) == "text"
        wait = seconds_up_to(_LONGEST_WAIT)("session_wait", args.pop("wait", None) or 0)
        known = {} if args.get("agents") else self.results_of_hosts(reports.REPORT, task_vars)
        args["agents"] = reports.agent_reports(self, args.get("agents"), task_vars)
        folder, queued = str(args.pop("artifacts", None) or ""), str(args.pop("queued", None) or "")
        head = str(self._task.delegate_to or task_vars.get("inventory_hostname") or "the head")
        kept = KeptRequests(folder)
        request, files = self._asked(args, kept, queued, head, task_vars)
        args["lease"] = lease_seconds(request, _statuses(args), int(args.get("lease") or _LEASE))
        artifacts = Artifacts(folder, request.name)
        args["kept"] = artifacts.session
        folders = EndedFolders.of(folder, check=self._task.check_mode)
        args.update(folders.option())
        avoided = reports.avoided(task_vars, args.pop("avoid", None))
        fresh = FreshReports(self, known, task_vars, avoided)
        args["agents"] = [avoided.added_to(report) for report in args["agents"]]
        try:
            result = self._until_placed(args, 0.0 if self._task.check_mode else wait, fresh, task_vars)
        finally:
            fresh.close()
        folders.remove(result)
        if result.get("session") and not self._task.check_mode:
            _keep_request(kept, request, files, result, is_queued=bool(queued))
        result["avoided"] = avoided.to_json()
        self._notify(result, task_vars)
        result.update(_work(result, request, args["agents"]))
        if result.get("outcome") == "placed" and not self._task.check_mode:
            artifacts.remove(args["kept"])
        if result.get("has_next_command") and not self._task.check_mode:
            artifacts.record_command("", "")
        if result.get("plan"):
            plan = self._complete(result, request, _statuses(args), head, task_vars)
            result["warnings"] = [*(result.get("warnings") or ()), *_unguarded(plan, result, args["agents"])]
            if result.get("outcome") == "running":
                result.update(self._restore(plan, result, artifacts, task_vars))
        return self._for_role(result, folder, as_text=as_text)

    def _asked(
        self, args: Json, kept: KeptRequests, queued: str, head: str, task_vars: Json
    ) -> Tuple[Request, Mapping[str, str]]:
        """The request, and the paths of its secrets: from the kept request if the session was queued, else from the variable.

        Every secret is read before anything is placed: a session without its secrets would fail at its start.
        """
        given = self._given_now() if boolean(args.pop("given", True)) else {}
        request = Request.from_json({**args["request"], **given})
        if queued:
            kept.check(queued, Request.from_json(args["request"]), head)
        secrets = self._templar.template(task_vars.get("session_secrets"))
        files = kept.files(queued) if queued else secret_files(request.secrets, secrets)
        read_secrets(request.secrets, secrets, self._loader, files)
        return request, files

    def _for_role(self, result: Json, folder: str, *, as_text: bool) -> Json:
        """The result with the next steps of the role, what it shows, and the plan in the form that it passes on."""
        check = self._task.check_mode
        result.update(steps(result, check=check))
        if result.get("plan") or result.get("outcome") == "pending":
            result["summary"] = summary(result, folder, check)
        if result.get("plan"):
            result["plan"] = plan_text.pack(result["plan"]) if as_text else completed_document(result["plan"])
        return result

    def _restore(self, plan: Plan, result: Json, artifacts: Artifacts, task_vars: Json) -> Json:
        """Nothing is missing on the agents; files on the controller may be."""
        address = str(result["deployment"]["address"])
        route = reports.route_to(plan.main.agent, address, task_vars)
        restored = restore(plan, result["session"], artifacts, address, route, check=self._task.check_mode)
        return {**restored, "warnings": [*(result.get("warnings") or ()), *(restored.get("warnings") or ())]}

    def _notify(self, result: Json, task_vars: Json) -> None:
        """A queued session that cannot be launched, and sessions that have ended by themselves."""
        own = [(notification.FAILED, result["session"])] if result.get("outcome") == "failed" else []
        others = [(notification.ENDED, session) for session in result.get("ended") or ()]
        notification.notify(self, [*own, *others], task_vars)

    def _given_now(self) -> Json:
        """Variables that a waiting session keeps, if the command line of this run has other values."""
        extra_vars = load_extra_vars(self._loader)
        given = [variable for variable in KEPT if extra_vars.get(variable.full_name) not in (None, "")]
        return {
            variable.field: variable.normal_form(self._templar.template(extra_vars[variable.full_name]))
            for variable in given
        }

    def _complete(
        self, result: Json, request: Request, statuses: List[AgentStatus], head: str, task_vars: Json
    ) -> Plan:
        """Add the user's variables to the plan, and the work of each host to the result."""
        plan = arrival.plan(result["plan"], head)
        check_agreement(plan, request, [status.name for status in statuses], head)
        plan = with_user_environment(plan, render_environment(request, plan))
        result["plan"] = plan.to_short_json()
        result["planned"] = result["plan"]["session"]
        decided = deployment(
            plan,
            statuses,
            head=head,
            addresses={plan.main.agent: reports.address_of(plan.main.agent, task_vars)},
            pull=request.pull,
            is_repair=result["outcome"] != "placed",
        )
        manner = {variable.field: getattr(request, variable.field) for variable in KEPT}
        result["deployment"] = {**decided.to_json(), **manner}
        # Also without a change: a controller may have been lost before it wrote a change into the containers.
        is_limited = bool(request.lifetime or request.idle_timeout or result.get("new_limits"))
        result["must_apply_limits"] = is_limited and result["outcome"] in ("running", "repair")
        if self._task.diff and result["outcome"] in ("placed", "repair"):
            result["diff"] = {"before": {}, "after": plan.to_json(), "after_header": "plan"}
        return plan

    def _until_placed(self, args: Json, wait: float, fresh: FreshReports, task_vars: Json) -> Json:
        """The decision, made again by new reports of the agents while the session waits."""
        result: Json = {}
        must_start = boolean(args.pop("fail_when_pending", None) or False)

        def is_decided() -> bool:
            if result:
                args["agents"] = fresh.collect() or args["agents"]
            result.clear()
            result.update(self._attempt(args, task_vars))
            return result.get("outcome") != "pending"

        if not wait_until(is_decided, deadline_in(wait), _INTERVAL, _LONGEST_INTERVAL) and wait:
            name = result["session"]["name"]
            message = f"Session {name} is still PENDING after {wait:g} s: {result['reason']}."
            return dict(result, failed=True, msg=message)
        if must_start and result.get("outcome") == "pending":
            message = f"Session {result['session']['name']} is PENDING: {result['reason']}."
            return dict(result, failed=True, msg=message)
        return result

    def _attempt(self, args: Json, task_vars: Json) -> Json:
        result = self.module("schedule", args, task_vars)
        if result.get("outcome") == "held" and is_gone(result["session"].get("holder") or {}):
            result = self.module("schedule", dict(args, takeover=result["session"]["launch"]), task_vars)
        if result.get("outcome") == "held":
            reason = str(result["reason"])
            raise StateError("%s; wait for it, or terminate it with terminate.yml." % (reason[:1].upper() + reason[1:]))
        return result


def _work(result: Json, request: Request, agents: List[Json]) -> Json:
    """What is to do on agents, apart from the plan."""
    lost = lost_agents(reports.agent_statuses(agents))
    return {
        "has_command": bool(result.get("plan") and request.command),
        "has_apps": any(app.command for app in request.apps),
        "must_apply_limits": False,
        "network_patience": network_patience(lost, reports.only_networks(result.get("remove") or (), agents)),
    }


def _keep_request(
    kept: KeptRequests, request: Request, files: Mapping[str, str], result: Json, *, is_queued: bool
) -> None:
    """Keep a request while its session waits or has secrets. One of the store is never taken for one of this controller."""
    session, waits = result["session"]["id"], result.get("outcome") == "pending"
    if not waits and (result.get("outcome") == "failed" or not request.secrets):
        kept.forget(session)
    elif not is_queued:
        kept.keep(session, request, files)


def _statuses(args: Json) -> List[AgentStatus]:
    return reports.agent_statuses(args["agents"])


def _unguarded(plan: Plan, result: Json, agents: List[Json]) -> List[str]:
    """A warning if other containers on an agent of a new session could send frames into its network."""
    if result["outcome"] != "placed" or plan.network.driver != "overlay":
        return []
    lacking = unguarded(agents, plan.agents)
    message = (
        "%s: the rules are missing that keep containers from sending frames into overlay networks, or are for another port than the "
        "Swarm's: run provision_agents.yml as a user who can become root, which installs them."
    )
    return [message % ", ".join(lacking)] if lacking else []
