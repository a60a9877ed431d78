# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The controller's part of ``overlay_probe``: an agent that fails is a result that says so."""

from __future__ import annotations

from ..module_utils._core.documents import Json
from ..plugin_utils._action import ComputeAction, failure_reason


class ActionModule(ComputeAction):
    """An agent without a container in the network does not end the check of the others."""

    def act(self, args: Json, task_vars: Json) -> Json:
        result = self.module_or_failure("overlay_probe", args, task_vars)
        if result.get("failed"):
            return {"changed": False, "probe": {"overlay_reason": failure_reason(result)}}
        return result
