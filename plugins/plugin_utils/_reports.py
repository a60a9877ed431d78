# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Results that the hosts of a play registered under the names of the role ``session``."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from typing import Any, Dict, List, Mapping

from ..module_utils._core.documents import Json
from ..module_utils._planning.deployment import controller_address
from . import _ssh_route
from ._action import ComputeAction
from ._ssh_route import Route

# The variable in which the hosts register their results of C(agent_info).
REPORT = "__session_report"


def agent_reports(action: ComputeAction, given: List[Json] | None, task_vars: Json) -> List[Json]:
    """The agents' reports, from the given results or else from the results that the hosts registered."""
    results = given or list(action.results_of_hosts(REPORT, task_vars).values())
    return [dict(result.get("agent") or result) for result in results if result.get("agent") or result.get("name")]


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
