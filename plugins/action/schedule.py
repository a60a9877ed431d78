# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The controller's half of ``schedule``: says who asks, waits its turn, takes over from a controller that is gone, and
renders the user's variables into the plan. Makes sure that the session's folder is no other's."""

from __future__ import annotations

import time

from ansible_collections.cluster.compute.plugins.module_utils._core.errors import InputError, StateError
from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json, Plan
from ansible_collections.cluster.compute.plugins.module_utils._planning.plan import with_user_environment
from ansible_collections.cluster.compute.plugins.module_utils._planning.request import Request
from ansible_collections.cluster.compute.plugins.plugin_utils._action import ComputeAction, holder, is_gone
from ansible_collections.cluster.compute.plugins.plugin_utils._artifacts import Artifacts
from ansible_collections.cluster.compute.plugins.plugin_utils._user_templates import render_environment

# Seconds between two looks at the queue.
_INTERVAL = 2.0


class ActionModule(ComputeAction):
    """The module is called once, again while the session waits, and again past a controller that is gone."""

    def act(self, args: Json, task_vars: Json) -> Json:
        args["holder"] = holder()
        wait = _seconds(args.pop("wait", 0))
        if self._task.check_mode:
            wait = 0.0
        args["agents"] = [report["agent"] for report in args.get("agents") or []]
        request = Request.from_json(args["request"])
        artifacts = Artifacts(args.pop("artifacts", None) or "", request.name)
        args["kept"] = artifacts.session
        result = self._until_placed(args, wait, task_vars)
        if result.get("outcome") == "placed" and not self._task.check_mode:
            artifacts.remove(args["kept"])
        if result.get("plan"):
            plan = Plan.from_json(result["plan"])
            plan = with_user_environment(plan, render_environment(request, plan))
            result["plan"] = plan.to_json()
            if self._task.diff and result["outcome"] in ("placed", "repair"):
                result["diff"] = {"before": {}, "after": result["plan"], "after_header": "plan"}
        return result

    def _until_placed(self, args: Json, wait: float, task_vars: Json) -> Json:
        deadline = time.monotonic() + wait
        result = self._ask(args, task_vars)
        while result.get("outcome") == "pending" and time.monotonic() < deadline:
            time.sleep(min(_INTERVAL, max(0.0, deadline - time.monotonic())))
            result = self._ask(args, task_vars)
        if result.get("outcome") == "pending" and wait:
            name = result["session"]["name"]
            message = "Session %s is still PENDING after %g s: %s." % (name, wait, result["reason"])
            return dict(result, failed=True, msg=message)
        return result

    def _ask(self, args: Json, task_vars: Json) -> Json:
        result = self.module("schedule", args, task_vars)
        if result.get("outcome") == "held" and is_gone(result["session"].get("holder") or {}):
            result = self.module("schedule", dict(args, takeover=result["session"]["launch"]), task_vars)
        if result.get("outcome") == "held":
            reason = str(result["reason"])
            raise StateError("%s: wait for it, or end it with terminate.yml." % (reason[:1].upper() + reason[1:]))
        return result


def _seconds(value: object) -> float:
    try:
        seconds = float(str(value))
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= 7 * 86400:
        raise InputError("session_wait", value, "must be a number of seconds from 0 to 604800")
    return seconds
