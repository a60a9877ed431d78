# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reports of all agents of a play, asked for again by an action that waits: a session is placed by what is true then."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from contextlib import suppress
from contextvars import Context, copy_context
from threading import Lock
from typing import Dict, List, Mapping, Tuple

from ansible.errors import AnsibleError

from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json
from ansible_collections.cluster.compute.plugins.module_utils._core.parallel import run_all
from ansible_collections.cluster.compute.plugins.plugin_utils import _reports as reports
from ansible_collections.cluster.compute.plugins.plugin_utils._action import ComputeAction, failure_reason
from ansible_collections.cluster.compute.plugins.plugin_utils._other_host import OtherHost

PARALLEL = 16


def lost_report(args: Json, failure: Json) -> Json:
    """A report with the agent's name, its group and the reason why it does not answer."""
    groups = args.get("group") or "default"
    group = groups if isinstance(groups, str) else ",".join(groups)
    report = {"name": args["name"], "group": group, "reachable": False}
    return {**report, "reason": failure_reason(failure)}


class FreshReports:
    """Asks the agents as they were asked before. Connections stay open between two rounds."""

    def __init__(
        self, action: ComputeAction, results: Mapping[str, Json], task_vars: Json, avoided: reports.Avoided
    ) -> None:
        """``results`` are those of ``agent_info``, by host; a host whose result has no options is not asked."""
        self._avoided = avoided
        self._action = action
        self._asked = {host: dict(result["options"]) for host, result in results.items() if result.get("options")}
        self._task_vars = task_vars
        self._agents: Dict[str, OtherHost] = {}
        self._opening = Lock()

    def collect(self) -> List[Json]:
        """A report of each agent, in the order of the play; empty if no host can be asked."""
        # Ansible keeps the context of a task in context variables, which new threads do not have.
        asked = [(host, copy_context()) for host in self._asked]
        return run_all(self._in_context, asked, PARALLEL)

    def close(self) -> None:
        for host in list(self._agents):
            self._close(host)

    def _in_context(self, asked: Tuple[str, Context]) -> Json:
        host, context = asked
        return context.run(self._report, host)

    def _report(self, host: str) -> Json:
        try:
            result = self._open(host).module("agent_info", self._asked[host])
        except AnsibleError as error:
            self._close(host)
            result = {"failed": True, "msg": str(error)}
        report: Json = result["agent"] if result.get("agent") else lost_report(self._asked[host], result)
        return self._avoided.added_to(report)

    def _open(self, host: str) -> OtherHost:
        # Ansible loads plugins and templates variables in one thread.
        with self._opening:
            if host not in self._agents:
                self._agents[host] = OtherHost(self._action, host, self._task_vars)
            return self._agents[host]

    def _close(self, host: str) -> None:
        """Forget the connection; a host that does not answer cannot be cleaned up."""
        other = self._agents.pop(host, None)
        if other is not None:
            with suppress(AnsibleError):
                other.close()
