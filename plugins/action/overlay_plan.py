# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All of ``overlay_plan``: it reads the registered examinations of the hosts of the play."""

from __future__ import annotations

from ..module_utils._agents.findings import Requirements
from ..module_utils._agents.overlay_plan import overlay_plan
from ..module_utils._core.documents import Json
from ..module_utils._planning.rules import seconds_up_to
from ..plugin_utils._action import ComputeAction

SPEC = {
    "examinations": {"type": "str", "required": True},
    "pools": {"type": "list", "elements": "str", "default": list(Requirements.pools)},
    "encrypted": {"type": "bool", "default": False},
    "head": {"type": "str", "default": ""},
    "seconds": {"type": "float", "default": 2.0},
}
_LONGEST = 60


class ActionModule(ComputeAction):
    """Touches no host."""

    _requires_connection = False

    def act(self, args: Json, task_vars: Json) -> Json:  # noqa: ARG002 (the check reads the task itself)
        _valid, options = self.validate_argument_spec(argument_spec=SPEC)
        seconds = seconds_up_to(_LONGEST)("agent_check_seconds", options["seconds"])
        examined = self.results_of_hosts(options["examinations"], task_vars)
        reports = [result["report"] for result in examined.values() if result.get("report")]
        plan = overlay_plan(reports, options["pools"], options["encrypted"], options["head"], seconds)
        return {"changed": False, "plan": plan}
