# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The controller's part of ``session``: adds the registered results of the hosts, and manages the session's artifacts."""

from __future__ import annotations

import json
import time

from ..module_utils._core import arrival, states
from ..module_utils._core.documents import Json
from ..module_utils._core.errors import ComputeError
from ..module_utils._core.model import Plan
from ..module_utils._planning.deployment import lost_agents, network_patience
from ..module_utils._text.views import session_document, termination_summary
from ..plugin_utils import _notification as notification
from ..plugin_utils import _reports as reports
from ..plugin_utils import _shared_config as shared_config
from ..plugin_utils import _trace as trace
from ..plugin_utils._action import TASK, ComputeAction, holder
from ..plugin_utils._artifacts import Artifacts
from ..plugin_utils._ended_folders import EndedFolders
from ..plugin_utils._kept_requests import KeptRequests

# The head keeps the logs of a session that ends. The last lines show how it ended; whole logs could fill the disk of the head.
_KEPT_LOGS = {"tail": 10000, "total": 16 << 20, "deadline": 30}


class ActionModule(ComputeAction):
    """The module changes the store on the head; this action changes the session's folder on the controller."""

    def act(self, args: Json, task_vars: Json) -> Json:
        own = {name: args.pop(name, None) for name in ("artifacts", "plan", "address", "timings")}
        state = args.get("state")
        if state in ("terminating", "terminated"):
            args["agents"] = reports.agent_reports(self, args.get("agents"), task_vars)
        if state in reports.KEPT_LOGS and args.get("logs") is None:
            found = self.results_of_hosts(reports.KEPT_LOGS[state], task_vars).values()
            args["logs"] = [{"logs": result["logs"]} for result in found if result.get("logs")]
        if state == "terminated" and args.get("reached") is None:
            args["reached"] = _reached(args["agents"], task_vars)
        if own["plan"] and own["timings"] is None:
            own["timings"] = reports.timings_of_phases(task_vars).to_json()
        is_end = state in ("terminating", "terminated")
        folders = EndedFolders.of(own["artifacts"] if is_end else None, check=self._task.check_mode)
        result = self.module("session", {**args, **folders.option(), "holder": holder()}, task_vars)
        if result.get("failed"):
            return result
        self._notify(result, args, task_vars)
        stored = result.pop("plan", None)
        if not own["plan"]:
            result.update(_checked_plan(stored, str(self._task.delegate_to or "the head")))
        if state == "failed":
            # Otherwise the next session of this ansible-playbook would have these tasks in its trace.
            trace.forget()
            result["reason"] = _reason(result["session"], args)
            result["retried"] = args.get("launch") if result["session"].get("state") == states.PENDING else ""
        if is_end:
            result.update(self._ending(result, args))
        folders.remove(result)
        result.update(self._keep(own, result["session"], str(args.get("result") or "")))
        return result

    def _ending(self, result: Json, args: Json) -> Json:
        """What is shown of the end, and the input of the tasks that follow its begin."""
        name = str(args.get("name") or args.get("id"))
        shown = {"summary": termination_summary(result["session"], name, self._task.check_mode)}
        return shown if args["state"] == "terminated" else {**shown, **_next_steps(result, args["agents"])}

    def _notify(self, result: Json, args: Json, task_vars: Json) -> None:
        own = notification.event_of(bool(result.get("changed")), result["session"], str(args.get("result") or ""))
        others = [(notification.ENDED, session) for session in result.get("ended") or ()]
        notification.notify(self, [(own, result["session"]), *others], task_vars)

    def _keep(self, own: Json, session: Json, result: str) -> Json:
        """Write ``session.json`` while the session lives; remove the session's folder after its end."""
        if not own["artifacts"] or not session or self._task.check_mode:
            return {}
        artifacts = Artifacts(own["artifacts"], session["name"])
        if result and session["state"] == states.RUNNING:
            artifacts.record_command(result, session["reason"])
            return {}
        # A session that waits again gets new keys with its next plan.
        if session["state"] in states.ENDED or session["state"] == states.PENDING:
            artifacts.remove(session["id"])
            if session["state"] in states.ENDED:
                KeptRequests(own["artifacts"]).forget(session["id"])
            return _noted(artifacts, {})
        if own["plan"]:
            plan = arrival.plan(own["plan"], TASK)
            document = session_document(plan, session, str(own["address"]), own["timings"] or {}, artifacts.folder)
            artifacts.write_json("session.json", document)
            explained = {"explanation": self._keep_trace(artifacts, plan)}
            return _noted(artifacts, {"document": document, "artifacts": artifacts.folder, **explained})
        return {}

    def _keep_trace(self, artifacts: Artifacts, plan: Plan) -> str:
        """Write ``trace.json``, and return what it shows; this task itself ends with it."""
        head = str(self._task.delegate_to or "head")
        own = trace.task_entry(self._task, head, (self._begun, time.time()), self._modules)
        entries = [*trace.notes(), own]
        artifacts.write(trace.NAME, json.dumps(trace.trace_document(entries), separators=(",", ":")).encode())
        trace.forget()
        return trace.explanation(entries, plan)


def _checked_plan(stored: Json | None, head: str) -> Json:
    """The stored plan for the result. A session whose plan is refused can still be ended."""
    try:
        return {"plan": arrival.plan(stored, head).to_json() if stored else None}
    except ComputeError as error:
        return {"plan": None, "warnings": [error.message]}


def _noted(artifacts: Artifacts, result: Json) -> Json:
    """The result, once the file that the user's ssh includes is up to date."""
    warning = shared_config.update(artifacts.base)
    return {**result, "warnings": [warning]} if warning else result


def _reached(agents: list[Json], task_vars: Json) -> list[str]:
    """The agents from which the session is removed: they answer, and no task failed on them."""
    left = [str(host) for host in task_vars.get("ansible_play_hosts") or []]
    return [agent["name"] for agent in agents if agent.get("reachable") and agent["name"] in left]


def _reason(session: Json, args: Json) -> str:
    """Why this launch failed: the recorded reason, unless the session now belongs to another launch."""
    is_own = session.get("launch") == args.get("launch")
    return str(session["reason"] if is_own else args.get("reason") or "")


def _next_steps(result: Json, agents: list[Json]) -> Json:
    """The input of the following tasks: whether this run terminates the session, and what to remove."""
    session = result["session"]
    is_terminating = session.get("state") == states.TERMINATING
    lost = lost_agents(reports.agent_statuses(agents))
    return {
        "is_terminating": is_terminating,
        "remove": ([session["id"]] if is_terminating else []) + result["remove"],
        "network_patience": network_patience(
            lost, not is_terminating and reports.only_networks(result["remove"], agents)
        ),
        "logs": dict(_KEPT_LOGS, session=session["id"]) if is_terminating else {},
    }
