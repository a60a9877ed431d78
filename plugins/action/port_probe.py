# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The controller's part of ``port_probe``: an agent on which it fails is a result that says so."""

from __future__ import annotations

from ..module_utils._agents.swarm_plan import data_path_port
from ..module_utils._core.documents import Json
from ..plugin_utils._action import ComputeAction, failure_reason


class ActionModule(ComputeAction):
    """An agent that cannot send does not end the check of the others."""

    def act(self, args: Json, task_vars: Json) -> Json:
        variable = str(args.pop("examinations", None) or "")
        if variable:
            examined = self.results_of_hosts(variable, task_vars).values()
            reports = [result.get("report") or {} for result in examined]
            reports = [report for report in reports if report.get("reachable")]
            args["agents"] = [_agent(report) for report in reports]
            args["vxlan_port"] = data_path_port(report["swarm"] for report in reports)
        result = self.module_or_failure("port_probe", args, task_vars)
        if result.get("failed"):
            return {"changed": False, "probe": {"reason": failure_reason(result)}}
        return result


def _agent(report: Json) -> Json:
    member = report["swarm"]["state"] == "active"
    return {"name": report["name"], "address": report["address"], "mtu": report["mtu"], "member": member}
