# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The controller's part of ``queue_pass``: adds the agents' reports, and takes over from a controller that has ended."""

from __future__ import annotations

from ..module_utils._core.documents import Json
from ..module_utils._planning.deployment import lost_agents, network_patience
from ..plugin_utils import _notification as notification
from ..plugin_utils import _reports as reports
from ..plugin_utils._action import ComputeAction, holder, is_gone, login
from ..plugin_utils._kept_requests import checked_sessions


class ActionModule(ComputeAction):
    """The module decides on the head; this action adds the results of the play."""

    def act(self, args: Json, task_vars: Json) -> Json:
        args.update(owner=args.get("owner") or login(), holder=holder())
        if args.get("state") == "decided":
            args["agents"] = reports.agent_reports(self, args.get("agents"), task_vars)
        result = self.module("queue_pass", args, task_vars)
        if result.get("holder") and is_gone(result["holder"]):
            result = self.module("queue_pass", dict(args, takeover=True), task_vars)
        head = str(self._task.delegate_to or task_vars.get("inventory_hostname") or "the head")
        result["fitting"], refused = checked_sessions(result.get("fitting") or (), head)
        ended = [(notification.ENDED, session) for session in result.get("ended") or ()]
        notification.notify(self, ended, task_vars)
        lost = lost_agents(reports.agent_statuses(args.get("agents") or []))
        has_waited = reports.only_networks(result.get("remove") or (), args.get("agents") or [])
        return {
            **result,
            "network_patience": network_patience(lost, has_waited),
            "warnings": [*(result.get("warnings") or ()), *refused],
        }
