# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The controller's half of ``agent_info``: a host that cannot be asked is a report that says so, not a failure."""

from __future__ import annotations

from ansible.errors import AnsibleConnectionFailure

from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json
from ansible_collections.cluster.compute.plugins.plugin_utils._action import ComputeAction


class ActionModule(ComputeAction):
    """One lost agent must not keep a session off the others; what needs it names it."""

    def act(self, args: Json, task_vars: Json) -> Json:
        try:
            result = self.module("agent_info", args, task_vars)
        except AnsibleConnectionFailure as error:
            return {**_lost(args, str(error)), "connected": False}
        if result.get("failed") and (result.get("failure") or {}).get("code") != "input":
            return _lost(args, str(result.get("msg") or result.get("module_stderr") or "the module failed"))
        return result


def _lost(args: Json, reason: str) -> Json:
    """A report with nothing but the agent's name, its group and why it is silent, in one line."""
    report = {"name": args["name"], "group": args.get("group") or "default", "reachable": False}
    return {"changed": False, "agent": {**report, "reason": " ".join(reason.split())[:300]}, "duration": 0.0}
