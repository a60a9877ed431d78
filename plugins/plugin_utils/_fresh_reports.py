# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reports of all agents of a play, asked for again by an action that waits: a session is placed by what is true then."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from typing import List, Mapping

from ansible.errors import AnsibleError

from ..module_utils._core import arrival
from ..module_utils._core.documents import Json
from ..module_utils._core.errors import ComputeError
from . import _reports as reports
from ._action import ComputeAction, failure_reason
from ._other_hosts import OtherHosts


def lost_report(args: Json, failure: Json) -> Json:
    """A report with the agent's name, its group and the reason why it does not answer."""
    groups = args.get("group") or "default"
    group = groups if isinstance(groups, str) else ",".join(groups)
    report = {"name": args["name"], "group": group, "reachable": False}
    return {**report, "reason": failure_reason(failure)}


def checked_report(args: Json, result: Json) -> Json:
    """The report in a result of C(agent_info). An agent whose report is refused gets nothing, and delays no session elsewhere."""
    try:
        return arrival.report(result["agent"], str(args["name"]))
    except ComputeError as error:
        return {**lost_report(args, {"msg": error.message}), "may_return": False}


class FreshReports:
    """Asks the agents as they were asked before. Connections stay open between two rounds."""

    def __init__(
        self, action: ComputeAction, results: Mapping[str, Json], task_vars: Json, avoided: reports.Avoided
    ) -> None:
        """``results`` are those of ``agent_info``, by host; a host whose result has no options is not asked."""
        self._avoided = avoided
        self._asked = {host: dict(result["options"]) for host, result in results.items() if result.get("options")}
        self._hosts = OtherHosts(action, task_vars)

    def collect(self) -> List[Json]:
        """A report of each agent, in the order of the play; empty if no host can be asked."""
        return self._hosts.each(list(self._asked), self._report)

    def close(self) -> None:
        self._hosts.close()

    def _report(self, host: str) -> Json:
        try:
            result = self._hosts.module(host, "agent_info", self._asked[host])
        except AnsibleError as error:
            result = {"failed": True, "msg": str(error)}
        asked = self._asked[host]
        report = checked_report(asked, result) if result.get("agent") else lost_report(asked, result)
        return self._avoided.added_to(report)
