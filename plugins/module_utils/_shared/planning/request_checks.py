# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The check of a request: the rule of every variable, then the rules between variables."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Network
from typing import Any, Dict, List, Mapping, Sequence, Tuple

from ..codec import subset
from ..constants import ELASTIC, HOST, LARGEST, MULTI_NODE, RELOCATE, SINGLE_NODE
from ..documents.plan import Role
from ..documents.topology import NOT_COMPUTING, waves
from ..errors import InputError
from ..names import check_environment
from ..units import show_bytes
from .addresses import prefix_for
from .app_rules import check_apps_of_role
from .request import REQUEST_VARIABLES, Request
from .secret_rules import check_beside

_ROLES = "session_roles"


def check_request(variables: Mapping[str, Any]) -> Request:
    """A request from the role's variables without their ``session_`` prefix. Raises InputError for the first broken rule."""
    values: Dict[str, Any] = {}
    for variable in REQUEST_VARIABLES:
        value = variables.get(variable.name)
        if value is not None:
            values[variable.field] = variable.check(variable.full_name, value)
    for name in ("name", "owner"):
        if name not in values:
            raise InputError("session_" + name, variables.get(name), "must be set")
    if "shm" not in values:
        # The user has not chosen it, so it does not refuse a small memory.
        values["shm"] = min(Request.shm, values.get("memory", Request.memory))
    given = values.pop("roles", ())
    # This also applies to one container: a session keeps its mode when its size changes.
    if values.get("network") == HOST:
        values["mode"] = MULTI_NODE
    elif any(part.get("per_agent") for part in (values, *given)):
        values.setdefault("mode", MULTI_NODE)
    request = _with_roles(Request(**values), given)
    check_together(request)
    return request


def _with_roles(request: Request, given: Tuple[Dict[str, Any], ...]) -> Request:
    """The request with whole roles, and the sum of their containers as its size. Raises InputError for the first broken rule."""
    if not given:
        return request
    names = ("image", "millicpus", "memory", "shm", "gpus", "group", "per_agent")
    of_session = {**subset(request, *names), "pinned": request.cpu_pinning}
    roles = []
    for one in given:
        apps = check_apps_of_role(f"{_ROLES}: {one['name']}: apps", one.get("apps", ()))
        shm = min(request.shm, one.get("memory", request.memory)) if request.shm <= Request.shm else request.shm
        own = {"shm": shm, "compute": one["name"] not in NOT_COMPUTING, **one, "apps": apps}
        roles.append(Role(**{**of_session, **own}))
    total = sum(role.size for role in roles)
    if request.size not in (1, total):
        rule = "must be left out with session_roles, whose containers are %d"
        raise InputError("session_cluster_size", request.size, rule % total)
    made = replace(request, roles=tuple(roles), size=total)
    check_whole_roles(made)
    return made


def check_whole_roles(request: Request) -> None:
    """The rules of roles that have all of their values, and between roles; also of a stored request. Raises InputError."""
    if not request.roles:
        return
    if not request.size == len(request.members) <= LARGEST:
        raise InputError(_ROLES, len(request.members), "must have at most %d containers in all" % LARGEST)
    for role in request.roles:
        _check_role(role, [one.name for one in request.roles])
    _check_order(request.roles)
    _check_apps(request)
    if not any(role.compute for role in request.roles):
        raise InputError(_ROLES, "compute: false", "must leave a role that computes")


def _check_role(role: Role, names: List[str]) -> None:
    where = f"{_ROLES}: {role.name}: "
    check_environment(where + "environment", role.environment)
    if role.shm > role.memory:
        rule = f"must be at most the memory of the role, which is {show_bytes(role.memory)}"
        raise InputError(where + "shm", show_bytes(role.shm), rule)
    if role.pinned and role.millicpus % 1000:
        raise InputError(where + "cpus", role.millicpus / 1000, "must be a whole number with cpu_pinning")
    for name in role.after:
        if name not in names:
            raise InputError(where + "after", name, f"must be a role of the session, which are {', '.join(names)}")


def _check_order(roles: Tuple[Role, ...]) -> None:
    started = {name for wave in waves(roles) for name in wave}
    waiting = [role.name for role in roles if role.name not in started]
    if waiting:
        raise InputError(f"{_ROLES}: {waiting[0]}: after", ", ".join(waiting), "must not wait for each other")


def _check_apps(request: Request) -> None:
    """A session has each name once, because files and tokens have the name of their app; a container has each port once."""
    known = [app.name for app in request.apps]
    for role in request.roles:
        where, ports = f"{_ROLES}: {role.name}: apps", [app.port for app in role.apps]
        known += [app.name for app in role.apps]
        for app in role.apps:
            if request.network == HOST:
                rule = "must be left out with session_network host, where only apps of main1 get free ports"
                raise InputError(where, app.name, rule)
            if known.count(app.name) > 1:
                raise InputError(where, app.name, "must be the name of one app of the session only")
            if ports.count(app.port) > 1:
                raise InputError(f"{where}: port", app.port, "must be the port of one app of the role only")


def check_resource_group(group: str, groups: Sequence[str]) -> None:
    """Refuse a resource group that no agent has: the session would wait for ever."""
    if groups and group not in groups:
        rule = f"must be a resource group of an agent of this play, which are {', '.join(dict.fromkeys(groups))}"
        raise InputError("session_resource_group", group, rule)


def check_together(request: Request) -> None:
    """Check the rules between the variables of a request. Raises InputError."""
    if request.name in request.after:
        raise InputError("session_after", request.name, "must not be the session itself")
    _check_pools(request)
    _check_torchrun(request)
    for part in request.parts:
        check_beside(request.secrets, {**request.environment, **part.environment}, request.mounts)
    if request.shm > request.memory:
        rule = f"must be at most session_memory, which is {show_bytes(request.memory)}"
        raise InputError("session_shm", show_bytes(request.shm), rule)
    _check_disk(request)
    if request.fabric and request.read_only_root:
        rule = "must be false with session_read_only_root: the names of a container are written after its start"
        raise InputError("session_fabric", request.fabric, rule)
    _check_network(request)
    if request.cpu_pinning and request.millicpus % 1000:
        raise InputError("session_cpus", request.millicpus / 1000, "must be a whole number with session_cpu_pinning")
    for variable in ("command_timeout", "terminate_when_done"):
        if getattr(request, variable) and not request.command:
            raise InputError("session_" + variable, getattr(request, variable), "needs a session_command")
    _check_placement(request)
    _check_on_lost(request)
    _check_once("mounts", "target of one mount", [mount.target for mount in request.mounts])
    _check_once("apps", "name of one app", [app.name for app in request.apps])


def _check_torchrun(request: Request) -> None:
    size = sum(part.size for part in request.parts if part.compute)
    if request.torchrun_nodes and request.torchrun_mode != ELASTIC:
        raise InputError("session_torchrun_nodes", request.torchrun_nodes, "needs session_torchrun elastic")
    if request.torchrun_nodes and int(request.torchrun_nodes.partition(":")[2]) != size:
        rule = "must end with session_cluster_size, which is %d: torchrun runs in every container" % size
        raise InputError("session_torchrun_nodes", request.torchrun_nodes, rule)


def _check_once(variable: str, what: str, values: Sequence[str]) -> None:
    for value in values:
        if values.count(value) > 1:
            raise InputError("session_" + variable, value, f"must be the {what} only")


def _check_placement(request: Request) -> None:
    for part in request.parts:
        if request.mode == SINGLE_NODE and 0 < part.per_agent < part.size:
            where = f"{_ROLES}: {part.name}: per_agent" if part.name else "session_per_agent"
            rule = "contradicts session_cluster_mode single-node, which puts %d containers on one agent: remove one of the two"
            raise InputError(where, part.per_agent, rule % part.size)
    if request.agents_policy == "strict" and not request.agents:
        raise InputError("session_agents_policy", "strict", "needs session_agents")


def _check_network(request: Request) -> None:
    """Refuse what needs a network of the session's own, or another place than one container for each agent."""
    if request.network != HOST:
        return
    for variable, is_set, reason in (
        ("per_agent", any(part.per_agent > 1 for part in request.parts), "1 or unset"),
        ("fabric", request.fabric, "false: containers have all interfaces of their agents"),
        ("network_encrypted", request.network_encrypted, "false: no network is made"),
        ("read_only_root", request.read_only_root, "false: the names of new containers are written into running ones"),
        ("on_lost", request.on_lost == RELOCATE, "keep or end: a container has the address of its agent"),
    ):
        if is_set:
            value = getattr(request, variable)
            raise InputError(f"session_{variable}", value, f"must with session_network host be {reason}")


def _check_on_lost(request: Request) -> None:
    """A volume of an agent is lost with it: that must be meant."""
    lost = [one.source for one in request.mounts if one.type == "volume" and not one.options and not one.local]
    if request.on_lost == RELOCATE and lost:
        rule = f"needs 'local: true' or options for volume {lost[0]} of session_mounts, which stays on the agent that is lost"
        raise InputError("session_on_lost", RELOCATE, rule)


def _check_disk(request: Request) -> None:
    if request.read_only_root and request.disk:
        rule = "must be 0 with session_read_only_root, whose writable directories are volumes without a size"
        raise InputError("session_disk", show_bytes(request.disk), rule)


def _check_pools(request: Request) -> None:
    prefix, pools = prefix_for(request.size), request.network_pool
    if all(IPv4Network(pool).prefixlen > prefix for pool in pools):
        rule = "needs a /%d, which no pool of session_network_pool can hold (%s)"
        raise InputError("session_cluster_size", request.size, rule % (prefix, ", ".join(pools)))
