# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The controller's part of ``agent_examination_info``: it compares the host's clock with its own."""

from __future__ import annotations

import time

from ..module_utils._core.documents import Json
from ..plugin_utils._action import ComputeAction, failure_reason


class ActionModule(ComputeAction):
    """A host that cannot be examined is a report that says so, not a failure."""

    def act(self, args: Json, task_vars: Json) -> Json:
        before = time.time()
        result = self.module_or_failure("agent_examination_info", args, task_vars)
        if result.get("failed"):
            report = {"name": args["name"], "reachable": False, "reason": failure_reason(result)}
            return {"changed": False, "report": report}
        report = result["report"]
        if report["reachable"]:
            report["clock"] = clock_offset(report["time"], before, time.time())
        return result


def clock_offset(reading: float, before: float, after: float) -> float:
    """By how many seconds a clock is certainly ahead, if it was read at any time between the two moments.

    >>> clock_offset(105.0, 100.0, 106.0), clock_offset(3700.0, 100.0, 101.0), clock_offset(90.0, 100.0, 101.0)
    (0.0, 3599.0, -10.0)
    """
    return round(max(0.0, reading - after) - max(0.0, before - reading), 3)
