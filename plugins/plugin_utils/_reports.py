# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Results that the hosts of a play registered under the names of the role ``session``."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Collection, Dict, List, Mapping, Sequence, Tuple

from ..module_utils._core.documents import Json
from ..module_utils._planning.deployment import AgentStatus, PhaseTimings, controller_address, phase_timings
from . import _plan_text as plan_text
from . import _ssh_route
from ._action import ComputeAction, results_in, variables_of_hosts
from ._ssh_route import Route

# The variables in which the tasks register their results.
REPORT = "__session_report"
SCHEDULED = "__session_scheduled"
RECORDED = "__session_recorded"
LOGS = "__session_logs"
# The results that have the logs to keep, by the state that the session is to have.
KEPT_LOGS = {"failed": LOGS, "terminated": "__session_removed"}
REMOVED = "__session_rolled_back"
FAILURE = "ansible_failed_result"
PHASES = {
    "inform": REPORT,
    "schedule": SCHEDULED,
    "network": "__session_network",
    "create": "__session_created",
    "start": "__session_started",
    "verify": "__session_verified",
}


@dataclass(frozen=True)
class Avoided:
    """What a launch avoids though the reports do not show why.

    Subnets and ports are those at which earlier attempts of this launch have failed. ``agents`` has the reason for each agent
    that gets no new session.
    """

    subnets: Tuple[str, ...] = ()
    ports: Tuple[int, ...] = ()
    agents: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> Json:
        return {"subnets": list(self.subnets), "ports": list(self.ports)}

    def added_to(self, report: Json) -> Json:
        """The report of an agent on which these are in use."""
        if report.get("name") in self.agents:
            report = {**report, "avoid": self.agents[report["name"]]}
        if not self.subnets:
            return report
        routes = [*(report.get("routes") or ()), *self.subnets]
        return {**report, "routes": routes, "ports": [*(report.get("ports") or ()), *self.ports]}


def avoided(task_vars: Json, agents: Mapping[str, str] | None = None) -> Avoided:
    """The addresses of the attempts before, if the last attempt failed because of them, and these agents."""
    scheduled, recorded = task_vars.get(SCHEDULED) or {}, task_vars.get(RECORDED) or {}
    plan = plan_text.unpacked(scheduled).get("plan") or {}
    if not recorded.get("retried") or recorded["retried"] != (plan.get("session") or {}).get("launch"):
        return Avoided(agents=agents or {})
    before = scheduled.get("avoided") or {}
    ports = [port["host_port"] for container in plan["containers"] for port in container["ports"]]
    subnets = (*before.get("subnets", ()), plan["network"]["subnet"])
    return Avoided(subnets, (*before.get("ports", ()), *ports), agents or {})


def agent_reports(action: ComputeAction, given: List[Json] | None, task_vars: Json) -> List[Json]:
    """The agents' reports, from the given results or else from the results that the hosts registered."""
    results = given or list(action.results_of_hosts(REPORT, task_vars).values())
    return [dict(result.get("agent") or result) for result in results if result.get("agent") or result.get("name")]


def agent_statuses(reports: List[Json]) -> List[AgentStatus]:
    return [AgentStatus.from_report(report) for report in reports]


def timings_of_phases(task_vars: Json) -> PhaseTimings:
    """The seconds of each phase of the launch, on the slowest host."""
    variables = variables_of_hosts(task_vars)
    found = {phase: list(results_in(variables, name).values()) for phase, name in PHASES.items()}
    # The task that creates containers creates the network, too, if it can.
    found["network"] += [{"duration": result.get("network_duration")} for result in found["create"]]
    return phase_timings(found)


def route_to(host: str, address: str, task_vars: Json) -> Route:
    """The route of the controller's ssh to the address of a host: the inventory may name jump hosts for it."""
    hostvars: Mapping[str, Any] = task_vars.get("hostvars") or {}
    return _ssh_route.route_to(address, hostvars[host]) if host in hostvars else Route(address)


def addresses(task_vars: Json) -> Dict[str, str]:
    """The address of each agent of the play, as the controller reaches it."""
    return {str(host): address_of(str(host), task_vars) for host in task_vars.get("ansible_play_hosts_all") or ()}


def address_of(host: str, task_vars: Json) -> str:
    """The address at which the controller reaches a host of the inventory."""
    hostvars: Mapping[str, Any] = task_vars.get("hostvars") or {}
    if host not in hostvars:
        return host
    variables = hostvars[host]
    connection = variables.get("ansible_connection") or "ssh"
    return controller_address(host, str(connection), str(variables.get("ansible_host") or ""))


def only_networks(sessions: Collection[str], agents: Sequence[Json]) -> bool:
    """Whether nothing is left of these ended sessions but networks: an earlier command has waited for their endpoints."""
    seen = {container.get("session") for agent in agents for container in agent.get("containers") or ()}
    return bool(sessions) and not seen & set(sessions)
