# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All of ``agent_diagnosis``: it evaluates the registered results of the hosts of the play."""

from __future__ import annotations

from typing import List

from ..module_utils._agents.diagnosis import diagnose, summarize
from ..module_utils._agents.findings import Requirements
from ..module_utils._agents.overlay_checks import matrix
from ..module_utils._core.documents import Json
from ..module_utils._planning.variable import CHECK
from ..module_utils._text.table import findings_table, overlay_matrix
from ..plugin_utils import _last_check as last_check
from ..plugin_utils._action import ComputeAction
from ..plugin_utils._conduct.variables import checked
from ..plugin_utils._report_file import nice, write
from ..plugin_utils._reports import addresses

SPEC = {
    "examinations": {"type": "str", "required": True},
    "probes": {"type": "list", "elements": "str", "default": []},
    "pools": {"type": "list", "elements": "str", "default": list(Requirements.pools)},
    "encrypted": {"type": "bool", "default": False},
    "head": {"type": "str", "default": ""},
    "overlay": {"type": "dict", "default": {}},
    "artifacts": {"type": "path"},
}


class ActionModule(ComputeAction):
    """A host without a result was lost before its examination."""

    _requires_connection = False

    def act(self, args: Json, task_vars: Json) -> Json:  # noqa: ARG002 (the check reads the task itself)
        _valid, options = self.validate_argument_spec(argument_spec=SPEC)
        hosts = task_vars["ansible_play_hosts_all"]
        examined = self.results_of_hosts(options["examinations"], task_vars)
        reports = [(examined.get(host) or {}).get("report") or _lost(host) for host in hosts]
        probes: dict[str, Json] = {host: {} for host in hosts}
        for variable in options["probes"]:
            for host, result in self.results_of_hosts(variable, task_vars).items():
                probes[host].update(result.get("probe") or {})
        required = Requirements(options["pools"], options["encrypted"], options["head"])
        findings = diagnose(reports, probes, required, options["overlay"])
        result = {"changed": False, **summarize(findings, hosts), "overlay": matrix(probes)}
        result["lines"] = self._report(result, checked(self, task_vars, CHECK)["variables"])
        if not self._task.check_mode:
            warning = last_check.write(
                options["artifacts"] or "", addresses(task_vars), result["unfit"], result["unguarded"]
            )
            result["warnings"] = [warning] if warning else []
        return result

    def _report(self, result: Json, settings: Json) -> List[str]:
        """The findings as lines, in the format of C(check_format), and in the file of C(check_file)."""
        document = nice({name: result[name] for name in ("fit", "counts", "findings", "overlay")})
        if settings["check_file"]:
            write(settings["check_file"], document + "\n", 0o644, check=self._task.check_mode)
        if settings["check_format"] == "json":
            return document.splitlines()
        return [*findings_table(result["findings"]), *(overlay_matrix(result["overlay"]) if result["overlay"] else [])]


def _lost(host: str) -> Json:
    return {"name": host, "reachable": False, "reason": "it was not examined"}
