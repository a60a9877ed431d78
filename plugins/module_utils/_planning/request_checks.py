# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The check of a request: the rule of every variable, then the rules between variables."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from typing import Any, Dict, Mapping, Sequence

from .._core.constants import SINGLE_NODE
from .._core.errors import InputError
from .._core.units import show_bytes
from .addresses import is_in_pools, prefix_for
from .request import REQUEST_VARIABLES, Request
from .secret_rules import check_beside
from .torchrun import check_torchrun


def check_request(variables: Mapping[str, Any]) -> Request:
    """A request from the role's variables without their ``session_`` prefix. Raises InputError for the first broken rule.

    >>> check_request({"name": "train", "owner": "alice", "cluster_size": 2}).size
    2
    """
    values: Dict[str, Any] = {}
    for variable in REQUEST_VARIABLES:
        value = variables.get(variable.name)
        if value is not None:
            values[variable.field] = variable.check(variable.full_name, value)
    for name in ("name", "owner"):
        if name not in values:
            raise InputError("session_" + name, variables.get(name), "must be set")
    request = Request(**values)
    check_together(request)
    return request


def check_group(group: str, groups: Sequence[str]) -> None:
    """Refuse a resource group that no agent has: the session would wait for ever."""
    if groups and group not in groups:
        rule = f"must be a resource group of an agent of this play, which are {', '.join(dict.fromkeys(groups))}"
        raise InputError("session_resource_group", group, rule)


def check_together(request: Request) -> None:
    """Check the rules between the variables of a request. Raises InputError."""
    _check_pools(request)
    check_torchrun(request.torchrun, request.size)
    check_beside(request.secrets, request.environment, request.mounts)
    if request.shm > request.memory:
        rule = f"must be at most session_memory, which is {show_bytes(request.memory)}"
        raise InputError("session_shm", show_bytes(request.shm), rule)
    _check_disk(request)
    if request.cpu_pinning and request.millicpus % 1000:
        raise InputError("session_cpus", request.millicpus / 1000, "must be a whole number with session_cpu_pinning")
    for variable, value in (
        ("command_timeout", request.command_timeout),
        ("terminate_when_done", request.terminate_when_done),
    ):
        if value and not request.command:
            raise InputError("session_" + variable, value, "needs a session_command")
    _check_placement(request)
    targets = [mount.target for mount in request.mounts]
    for target in targets:
        if targets.count(target) > 1:
            raise InputError("session_mounts", target, "must be the target of one mount only")
    names = [app.name for app in request.apps]
    for name in names:
        if names.count(name) > 1:
            raise InputError("session_apps", name, "must be the name of one app only")


def _check_placement(request: Request) -> None:
    if 0 < request.per_agent < request.size and request.mode == SINGLE_NODE:
        rule = "needs session_cluster_mode multi-node, or must be at least session_cluster_size, which is %d"
        raise InputError("session_per_agent", request.per_agent, rule % request.size)
    if request.agents_policy == "strict" and not request.agents:
        raise InputError("session_agents_policy", "strict", "needs session_agents")


def _check_disk(request: Request) -> None:
    if request.read_only_root and request.disk:
        rule = "must be 0 with session_read_only_root, whose writable folders are volumes without a size"
        raise InputError("session_disk", show_bytes(request.disk), rule)


def _check_pools(request: Request) -> None:
    if not is_in_pools(request.size, request.network_pool):
        rule = "needs a /%d, which no pool of session_network_pool can hold (%s)"
        pools = ", ".join(request.network_pool)
        raise InputError("session_cluster_size", request.size, rule % (prefix_for(request.size), pools))
