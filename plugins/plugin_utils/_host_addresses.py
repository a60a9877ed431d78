# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The addresses of the hosts of a play, as the controller reaches them."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from typing import Any, Dict, Mapping

from ..module_utils._core.documents import Json
from ..module_utils._planning.deployment import controller_address
from . import _ssh_route
from ._ssh_route import Route


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
