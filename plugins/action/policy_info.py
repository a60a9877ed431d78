# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The controller's part of ``policy_info``: adds the agents' reports, which know the sessions that the store has from labels alone."""

from __future__ import annotations

from ..module_utils._core.documents import Json
from ..plugin_utils import _reports as reports
from ..plugin_utils._action import ComputeAction


class ActionModule(ComputeAction):
    """The module reads the store on the head."""

    def act(self, args: Json, task_vars: Json) -> Json:
        args["agents"] = reports.agent_reports(self, args.get("agents"), task_vars)
        return self.step("store.policy", args, task_vars)
