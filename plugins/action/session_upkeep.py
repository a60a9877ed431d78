# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The controller's part of ``session_upkeep``: adds the agents' reports, and notifies of degraded sessions."""

from __future__ import annotations

from ..module_utils._core.documents import Json
from ..plugin_utils import _notification as notification
from ..plugin_utils import _reports as reports
from ..plugin_utils._action import ComputeAction, login
from ..plugin_utils._ended_folders import EndedFolders


class ActionModule(ComputeAction):
    """The module reads and writes the store on the head; this action adds the results of the play."""

    def act(self, args: Json, task_vars: Json) -> Json:
        args["agents"] = reports.agent_reports(self, args.get("agents"), task_vars)
        args["owner"] = args.get("owner") or login()
        folders = EndedFolders.of(args.pop("artifacts", None), check=self._task.check_mode)
        result = self.module("session_upkeep", {**args, **folders.option()}, task_vars)
        folders.remove(result)
        degraded = [(notification.DEGRADED, session) for session in result.get("degraded") or ()]
        notification.notify(self, degraded, task_vars)
        return result
