# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All of ``session_logs_info``: it reads what the hosts have registered on the controller."""

from __future__ import annotations

from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json
from ansible_collections.cluster.compute.plugins.plugin_utils import _reports as reports
from ansible_collections.cluster.compute.plugins.plugin_utils._action import ComputeAction


class ActionModule(ComputeAction):
    """The logs that the head has kept, and those that the hosts have read."""

    _requires_connection = False

    def act(self, args: Json, task_vars: Json) -> Json:
        results = self.results_of_hosts(reports.LOGS, task_vars).values()
        live = [log for result in results for log in result.get("logs") or []]
        return {"changed": False, "logs": [*(args.get("kept") or []), *live]}
