# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All of ``session_failure``: reads the registered results of the hosts on the controller."""

from __future__ import annotations

from ..module_utils._core import arrival
from ..module_utils._core.documents import Json
from ..module_utils._core.errors import SessionError, TakenError
from ..module_utils._planning.deployment import lost_agents, network_patience
from ..plugin_utils import _reports as reports
from ..plugin_utils._action import TASK, ComputeAction
from ..plugin_utils._joint_result import CAUSES

# The code of a failure of a connection, or of a module that ended without a result.
_UNREACHABLE = "unreachable"


class ActionModule(ComputeAction):
    """Why a launch failed, and which agents could not be cleaned up."""

    _requires_connection = False

    def act(self, args: Json, task_vars: Json) -> Json:
        plan = arrival.outline(args.get("plan") or {}, TASK)
        if args.get("fail_with"):
            raise SessionError(str(args["fail_with"]))
        removals = self.results_of_hosts(reports.REMOVED, task_vars)
        statuses = reports.agent_statuses(reports.agent_reports(self, None, task_vars))
        lost = lost_agents(statuses, [host for host, result in removals.items() if result.get("failure")])
        # Hosts keep the last failure: that of an earlier session of a pass is none of this launch.
        known = self.results_of_hosts(reports.FAILURE, task_vars).values()
        own = [failure for failure in known if _code(failure) != SessionError.code]
        failures = sorted(own, key=lambda failure: _code(failure) not in CAUSES)
        codes = {_code(failure) for failure in failures}
        sentences = list(dict.fromkeys(str(failure["msg"]) for failure in failures if failure.get("msg")))
        left = [host for host in lost if host in plan.agents]
        if left:
            sentences.append(f"Anything left of it on {', '.join(left)} is removed when that agent answers again.")
        return {
            "changed": False,
            "launch": plan.session.launch,
            "reason": " ".join(sentences),
            "is_taken": TakenError.code in codes,
            "is_lost": _UNREACHABLE in codes,
            "lost_agents": list(lost),
            "network_patience": network_patience(lost),
        }


def _code(failure: Json) -> str:
    return str((failure.get("failure") or {}).get("code") or "")
