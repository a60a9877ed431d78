# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The controller's half of ``schedule``: says who asks, takes over from a controller that is gone, renders the user's
variables into the plan."""

from __future__ import annotations

from ansible_collections.cluster.compute.plugins.module_utils._model import Json, Plan
from ansible_collections.cluster.compute.plugins.module_utils._plan import with_user_environment
from ansible_collections.cluster.compute.plugins.module_utils._request import Request
from ansible_collections.cluster.compute.plugins.plugin_utils._action import ComputeAction, holder, is_gone
from ansible_collections.cluster.compute.plugins.plugin_utils._template import render_environment


class ActionModule(ComputeAction):
    """Two calls of the module only when a lost controller's session is in the way."""

    def act(self, args: Json, task_vars: Json) -> Json:
        args["holder"] = holder()
        result = self.module("schedule", args, task_vars)
        if result.get("outcome") == "held" and is_gone(result["session"].get("holder") or {}):
            args["takeover"] = result["session"]["launch"]
            result = self.module("schedule", args, task_vars)
        if result.get("outcome") == "held":
            message = "%s: wait for it, or end it with terminate.yml." % result["reason"]
            return dict(result, failed=True, msg=message[0].upper() + message[1:])
        if result.get("plan"):
            plan = Plan.from_json(result["plan"])
            rendered = with_user_environment(plan, render_environment(Request.from_json(args["request"]), plan))
            result["plan"] = rendered.to_json()
            if self._task.diff and result["outcome"] in ("placed", "repair"):
                result["diff"] = {"before": {}, "after": result["plan"], "before_header": "nothing", "after_header": "plan"}
        return result
