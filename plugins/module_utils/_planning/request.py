# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A request: the checked variables of the role ``session`` in one normal form.

The normal form is stored with the session and compared with the next request of the same name: the same command gives
the same document.
"""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any, Dict, List, Mapping, Tuple

from ansible_collections.cluster.compute.plugins.module_utils._core.constants import SINGLE_NODE
from ansible_collections.cluster.compute.plugins.module_utils._core.errors import InputError
from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json, Mount, User, digest
from ansible_collections.cluster.compute.plugins.module_utils._core.units import show_bytes
from ansible_collections.cluster.compute.plugins.module_utils._planning.addresses import is_in_pools, prefix_for
from ansible_collections.cluster.compute.plugins.module_utils._planning.capacity import PerContainer
from ansible_collections.cluster.compute.plugins.module_utils._planning.placement import Demand
from ansible_collections.cluster.compute.plugins.module_utils._planning.rules import App
from ansible_collections.cluster.compute.plugins.module_utils._planning.torchrun import NONE, Torchrun, check_torchrun
from ansible_collections.cluster.compute.plugins.module_utils._planning.variables import REQUEST_VARIABLES

# How it is launched. Two requests that differ in nothing else ask for the same session.
_LAUNCH_SETTINGS = tuple(variable.field for variable in REQUEST_VARIABLES if variable.kept)
_ADDED_SINCE_1_0_0 = ("torchrun_mode", "torchrun_nodes", "torchrun_restarts")


@dataclass(frozen=True)
class Request:
    """A checked request, in its normal form."""

    name: str
    owner: str
    size: int = 1
    mode: str = SINGLE_NODE
    image: str = ""
    millicpus: int = 1000
    memory: int = 1 << 30
    shm: int = 64 << 20
    gpus: float = 0.0
    cpu_pinning: bool = False
    group: str = "default"
    agents: Tuple[str, ...] = ()
    agents_policy: str = "preferred"
    strategy: str = "pack"
    priority: int = 10
    environment: Mapping[str, str] = field(default_factory=dict)
    torchrun_mode: str = NONE
    torchrun_nodes: str = ""
    torchrun_restarts: int = 3
    mounts: Tuple[Mount, ...] = ()
    apps: Tuple[App, ...] = ()
    command: str = ""
    command_timeout: int = 0
    bootstrap: str = ""
    on_failure: str = "keep"
    terminate_when_done: bool = False
    user: User = field(default_factory=User)
    network_encrypted: bool = False
    network_pool: Tuple[str, ...] = ("10.201.0.0/16",)
    port_range: str = "30000-31000"
    bootstrap_timeout: int = 300
    verify_timeout: int = 60
    pull: str = "missing"
    pull_timeout: int = 1800

    def to_json(self) -> Json:
        document: Json = asdict(self)
        document["agents"] = list(self.agents)
        document["network_pool"] = list(self.network_pool)
        document["mounts"] = [dict(asdict(mount), options=dict(mount.options)) for mount in self.mounts]
        document["apps"] = [asdict(app) for app in self.apps]
        document["environment"] = dict(self.environment)
        return document

    @classmethod
    def from_json(cls, data: Json) -> Request:
        values = {known.name: data[known.name] for known in fields(cls) if known.name in data}
        for name in ("agents", "network_pool"):
            values[name] = tuple(values.get(name) or ())
        values["mounts"] = tuple(Mount.from_json(mount) for mount in data.get("mounts") or ())
        values["apps"] = tuple(App(**app) for app in data.get("apps") or ())
        values["user"] = User.from_json(data.get("user") or {})
        return cls(**values)

    @property
    def digest(self) -> str:
        """The digest of all settings that make the session what it is.

        Settings that release 1.0.0 does not have count only if they are not the default.
        """
        document = self.to_json()
        unused = {name for name in _ADDED_SINCE_1_0_0 if document[name] == getattr(type(self), name)}
        return digest({name: document[name] for name in document if name not in unused.union(_LAUNCH_SETTINGS)})

    @property
    def torchrun(self) -> Torchrun:
        return Torchrun(self.torchrun_mode, self.torchrun_nodes, self.torchrun_restarts)

    def differences(self, other: Request) -> List[str]:
        """The fields in which two requests differ, as ``millicpus`` or ``environment``; empty if they ask for the same session."""
        mine, theirs = self.to_json(), other.to_json()
        return [name for name in mine if mine[name] != theirs[name] and name not in _LAUNCH_SETTINGS]

    def demand(self) -> Demand:
        """What the placement needs to know."""
        per_container = PerContainer(self.millicpus, self.memory, self.shm, self.gpus, self.cpu_pinning)
        return Demand(self.size, per_container, self.mode, self.group, self.strategy, self.agents, self.agents_policy)


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
    _check_together(request)
    return request


def _check_together(request: Request) -> None:
    _check_pools(request)
    check_torchrun(request.torchrun, request.size)
    if request.shm > request.memory:
        rule = "must be at most session_memory, which is %s" % show_bytes(request.memory)
        raise InputError("session_shm", show_bytes(request.shm), rule)
    if request.cpu_pinning and request.millicpus % 1000:
        raise InputError("session_cpus", request.millicpus / 1000, "must be a whole number with session_cpu_pinning")
    for variable, value in (
        ("command_timeout", request.command_timeout),
        ("terminate_when_done", request.terminate_when_done),
    ):
        if value and not request.command:
            raise InputError("session_" + variable, value, "needs a session_command")
    if request.agents_policy == "strict" and not request.agents:
        raise InputError("session_agents_policy", "strict", "needs session_agents")
    targets = [mount.target for mount in request.mounts]
    for target in targets:
        if targets.count(target) > 1:
            raise InputError("session_mounts", target, "must be the target of one mount only")
    names = [app.name for app in request.apps]
    for name in names:
        if names.count(name) > 1:
            raise InputError("session_apps", name, "must be the name of one app only")


def _check_pools(request: Request) -> None:
    if not is_in_pools(request.size, request.network_pool):
        rule = "needs a /%d, which no pool of session_network_pool can hold (%s)"
        pools = ", ".join(request.network_pool)
        raise InputError("session_cluster_size", request.size, rule % (prefix_for(request.size), pools))
