# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A request: what a session is, and the one declaration of every variable that says so.

Each field declares its variable: type, default, description and rule. The field has the variable's name without
``session_``, unless ``variable`` gives another, and holds the normal form of its value. The request is stored with the
session and compared with the next request of the same name: the same command gives the same document. The fields that
a plan has, too, are declared in ``documents/declaration.py``: ``ContainerSettings`` and ``BatchSettings``. ``settings.py`` of the
controller declares the variables that are no part of a request; tests/tools/session_schema.py generates the schema of session files
from all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import List, Mapping, Sequence, Tuple

from .. import units, value_rules
from ..codec import Document, digest, non_default_fields
from ..constants import HOST, LARGEST, MULTI_NODE, REFERENCE_IMAGE, SINGLE_NODE, TORCHRUN_MODES
from ..documents.declaration import (
    BatchSettings,
    ContainerSettings,
    declared,
    declared_choice,
    declared_flag,
    declared_whole,
)
from ..documents.plan import App, Mount, Role, Secret, User
from ..documents.topology import Member, members
from ..names import check_environment, check_group, check_owner, check_session_name
from . import app_rules, mount_rules, role_rules, rules, secret_rules
from .capacity import Demand, PerContainer
from .suboptions import APP, MOUNT, ROLE, SECRET, USER
from .variable import (
    APPS,
    COMMIT,
    COPY,
    EXEC,
    LAUNCH,
    LIST,
    LOGS,
    RESTART,
    SCHEDULE,
    TERMINATE,
    USAGE,
    declared_variables,
)


@dataclass(frozen=True)
class NamedRequest(Document):
    """The fields that every request begins with."""

    name: str = declared(
        "str",
        "",
        "Name of the session: 4 to 64 letters, digits, C(-), C(_) and C(.), starting and ending with a letter or digit; "
        "unique among the live sessions of an owner.",
        check_session_name,
        read_by=(LAUNCH, TERMINATE, LOGS, LIST, EXEC, COPY, APPS, COMMIT, RESTART),
        notes={
            LAUNCH: "If empty, a readable pair of words is chosen.",
            TERMINATE: "May be a pattern, such as V(sweep-*), with O(session_many).",
            LOGS: "The newest session of this name is shown.",
            LIST: "If empty, all sessions are listed.",
        },
        required_by=(TERMINATE, LOGS, EXEC, COPY, APPS, COMMIT, RESTART),
        required=True,
    )
    owner: str = declared(
        "str",
        "",
        "Owner of the session: 1 to 32 letters, digits, C(-) or C(_), starting and ending with a letter or digit. If empty, "
        "the controller's user.",
        check_owner,
        read_by=(LAUNCH, SCHEDULE, TERMINATE, LOGS, LIST, USAGE, COMMIT, RESTART),
        notes={
            LAUNCH: "Owners separate sessions by name. They do not restrict anyone who has access to the head.",
            LOGS: "V(all) means every owner.",
            LIST: "V(all) means every owner.",
        },
        required=True,
    )


@dataclass(frozen=True)
class StartSettings:
    """The dependencies of a session besides capacity, and its longest wait."""

    after: Tuple[str, ...] = declared(
        "list",
        [],
        "Names of sessions of the same owner that run a command. The session waits until the newest session of each name has "
        "succeeded. If one of them fails, ends without a result or does not exist, the session fails.",
        rules.check_after,
        elements="str",
        kept=True,
    )
    not_before: str = declared(
        "str",
        "",
        "Earliest start: a date and time in ISO 8601 with a time zone, such as V(2026-12-24T18:00:00+01:00), or a number of seconds "
        "after the request, up to 31536000, which is a year.",
        rules.check_not_before,
        kept=True,
    )
    pending_timeout: int = declared_whole(
        0,
        (0, rules.YEAR),
        "Seconds after the request, or after O(session_not_before) if that is later, for which the session may be PENDING, from 0, "
        "which means no limit, to 31536000, which is a year. A session that waits longer leaves the queue with ERROR.",
        kept=True,
    )

    def earliest(self, requested: float) -> float:
        """The earliest start of a session that was requested at a time, both in seconds since the epoch."""
        if not self.not_before:
            return requested
        if self.not_before.isdigit():
            return requested + int(self.not_before)
        moment = datetime.strptime(self.not_before, rules.UTC_FORMAT).replace(tzinfo=timezone.utc)
        return max(requested, moment.timestamp())


_DAYS = 86400
_SECONDS = (1, 30 * _DAYS)


@dataclass(frozen=True)
class Request(StartSettings, BatchSettings, ContainerSettings, NamedRequest):
    """A checked request, in its normal form."""

    size: int = declared_whole(
        1,
        (1, LARGEST),
        "Number of containers, from 1 to 1000: C(main1) and the rest C(sub1), C(sub2) and so on.",
        variable="cluster_size",
    )
    mode: str = declared_choice(
        (SINGLE_NODE, MULTI_NODE),
        "Whether the containers may be placed on several agents if one agent cannot hold them. O(session_per_agent) and "
        "O(session_network=host) imply V(multi-node).",
        variable="cluster_mode",
    )
    image: str = declared(
        "str",
        REFERENCE_IMAGE,
        "Image of the containers, by tag or digest, or the name of an environment, such as V(lab). Any Linux image works.",
        value_rules.check_image,
    )
    millicpus: int = declared(
        "float",
        1,
        "CPUs of each container: at least 0.01, with at most three decimals.",
        units.check_cpus,
        variable="cpus",
    )
    memory: int = declared(
        "str", "1g", "Memory of each container, swap included: at least V(6m). Units are binary.", units.check_memory
    )
    shm: int = declared("str", "64m", "Size of C(/dev/shm) in each container, a part of its memory.", units.check_shm)
    gpus: float = declared(
        "float",
        0,
        "GPUs of each container: a whole number, or a fraction below one if the agents declare shares. A fraction means "
        "the share within 0.02 of it: V(0.33) is a third.",
        units.check_gpus,
    )
    cpu_pinning: bool = declared_flag(
        "Give each container CPUs of its own, which no other pinned container shares. O(session_cpus) must be a whole "
        "number."
    )
    group: str = declared(
        "str", "default", "Group of agents that the session runs on.", check_group, variable="resource_group"
    )
    agents: Tuple[str, ...] = declared(
        "list",
        [],
        "Designated agents, by inventory name. Each must be in the group C(agents).",
        value_rules.check_names,
        elements="str",
    )
    agents_policy: str = declared_choice(
        ("preferred", "strict"),
        "V(preferred) tries the designated agents first. V(strict) uses no other agents and requires O(session_agents).",
    )
    strategy: str = declared_choice(
        ("pack", "spread"),
        "V(pack) uses the fewest agents, V(spread) fills them evenly, if one agent cannot hold the session.",
    )
    per_agent: int = declared_whole(
        0,
        (0, LARGEST),
        "Largest number of containers of the session on an agent, up to 1000; V(0) is no limit. With V(1), each container is on a "
        "host of its own. A limit implies O(session_cluster_mode=multi-node).",
    )
    priority: int = declared_whole(10, (0, 100), "Priority in the queue, from 0 to 100. A higher priority comes first.")
    environment: Mapping[str, str] = declared(
        "dict",
        {},
        "Environment variables. A value may refer to its container between C(<%) and C(%>), as in C(shard-<% rank %>).",
        check_environment,
    )
    roles: Tuple[Role, ...] = declared(
        "list", [], role_rules.DESCRIPTION, role_rules.check_roles, elements="dict", options=ROLE
    )
    torchrun_mode: str = declared_choice(
        TORCHRUN_MODES,
        "Whether C(torchrun) without options trains over all containers: V(static) with a fixed number, V(elastic) also "
        "while some of them are lost. With V(none), it trains in one container.",
        variable="torchrun",
    )
    torchrun_nodes: str = declared(
        "str",
        "",
        "Containers of an elastic training as MIN:MAX, where MAX is O(session_cluster_size). If empty, from 1 to all. "
        "Requires O(session_torchrun=elastic).",
        rules.check_nodes,
    )
    torchrun_restarts: int = declared_whole(
        3,
        (0, 1000),
        "Number of times that an elastic training starts its processes again after a failure, from 0 to 1000.",
    )
    mounts: Tuple[Mount, ...] = declared(
        "list",
        [],
        "Data directories, the same in every container: dictionaries, or strings as Docker writes them, such as "
        "V(/srv/data:/data:ro). A volume with C(options) is removed with the last session that "
        "mounts it.",
        mount_rules.check_mounts,
        elements="raw",
        options=MOUNT,
    )
    secrets: Tuple[Secret, ...] = declared(
        "list",
        [],
        "Secrets, as files in C(/run/secrets) of every container that only the user C(work) can read.",
        secret_rules.check_secrets,
        elements="dict",
        options=SECRET,
        read_by=(LAUNCH, SCHEDULE),
        notes={
            SCHEDULE: "A waiting session keeps the names. Only the controller that requested it keeps the paths of files."
        },
    )
    apps: Tuple[App, ...] = declared(
        "list",
        [],
        app_rules.DESCRIPTION,
        app_rules.check_apps,
        elements="raw",
        options=APP,
        read_by=(LAUNCH, APPS),
        notes={APPS: "Apps to start in the running session. Their ports are reached by SSH."},
    )
    user: User = declared(
        "dict", {}, "Numbers of the user C(work), to match the data directories.", rules.check_user, options=USER
    )
    network_encrypted: bool = declared_flag("Encrypt the traffic of an overlay network.")
    network_pool: Tuple[str, ...] = declared(
        "list",
        ["10.201.0.0/16"],
        "Address pools that sessions take their subnets from: private IPv4 networks of at least a /27, one of them large enough "
        "for the session.",
        rules.check_network_pool,
        elements="str",
    )
    port_range: str = declared(
        "str",
        "30000-31000",
        "Ports of the agents that C(main1) may publish, as FIRST-LAST, from 1024 to 65535.",
        rules.check_port_range,
        read_by=(LAUNCH, APPS),
    )
    bootstrap_timeout: int = declared_whole(
        300, _SECONDS, "Seconds that the bootstrap script may take in each container, from 1 to 2592000.", kept=True
    )
    verify_timeout: int = declared_whole(
        60,
        _SECONDS,
        "Seconds within which every container must answer by SSH, from 1 to 2592000. Four containers add a second.",
        kept=True,
    )
    apps_timeout: int = declared_whole(
        120,
        _SECONDS,
        "Seconds within which every app must be ready, from 1 to 2592000.",
        read_by=(LAUNCH, APPS),
        kept=True,
    )
    pull: str = declared_choice(
        ("missing", "always", "never"),
        "Whether agents pull the image if they lack it, before every launch, or never. An agent that lacks the image "
        "then gets a copy from another agent or from the controller.",
        kept=True,
    )
    pull_timeout: int = declared_whole(
        1800,
        _SECONDS,
        "Seconds that pulling the image may take, from 1 to 2592000. A registry that does not answer fails after ten "
        "seconds.",
        kept=True,
    )

    @property
    def digest(self) -> str:
        """The digest of all settings that make the session what it is."""
        return digest(non_default_fields(self))

    def differences(self, other: Request) -> List[str]:
        """The fields in which two requests differ, as ``millicpus`` or ``environment``; empty if they ask for the same session."""
        mine, theirs = self.to_json(), other.to_json()
        return [name for name in mine if mine[name] != theirs[name] and name not in _LAUNCH_SETTINGS]

    def demand(self) -> Demand:
        """Return what the placement needs to know."""
        demands = tuple(self._demand_of(role) for role in self.roles)
        return replace(demands[0], size=self.size, role="", roles=demands) if demands else self._demand_of(*self.parts)

    def _demand_of(self, role: Role) -> Demand:
        per_container = PerContainer(role.millicpus, role.memory, role.shm, role.gpus, role.pinned, self.fabric)
        is_on_host = self.network == HOST
        per_agent = 1 if is_on_host else role.per_agent
        how = (self.mode, role.group, self.strategy, self.agents, self.agents_policy, self.rdma, per_agent)
        return Demand(role.size, per_container, *how, role=role.name, host=is_on_host)

    @property
    def parts(self) -> Tuple[Role, ...]:
        """The roles; all containers as one role without a name, if they are alike."""
        amounts = (self.image, self.millicpus, self.memory, self.shm, self.gpus, self.cpu_pinning)
        return self.roles or (Role("", self.size, *amounts, self.group, self.per_agent),)

    @property
    def sizes(self) -> Tuple[int, ...]:
        """The size of each role; without roles, of the session."""
        return tuple(part.size for part in self.parts)

    def with_sizes(self, sizes: Sequence[int]) -> Request:
        """The same request with another size of each role; without roles, of the session.

        What computes is also the largest number of nodes of an elastic training.
        """
        roles = tuple(replace(role, size=size) for role, size in zip(self.roles, sizes))
        made = replace(self, size=sum(sizes), roles=roles)
        least, colon, _most = self.torchrun_nodes.partition(":")
        most = sum(part.size for part in made.parts if part.compute)
        return replace(made, torchrun_nodes=least + colon + (str(most) if colon else ""))

    @property
    def groups(self) -> Tuple[str, ...]:
        """The resource group of each role; without roles, of the session."""
        return tuple(part.group for part in self.parts)

    @property
    def members(self) -> List[Member]:
        return members(self.size, self.roles)

    def part_of(self, role: str) -> Role:
        """Return what the containers of a role ask for."""
        return next((part for part in self.parts if part.name == role), self.parts[0])

    def total(self, amount: str) -> float:
        return sum(part.size * float(getattr(part, amount)) for part in self.parts)


REQUEST_VARIABLES = declared_variables(Request)
# How it is launched. Two requests that differ in nothing else ask for the same session.
_LAUNCH_SETTINGS = tuple(variable.field for variable in REQUEST_VARIABLES if variable.kept)
# Of the request of a session that waits, only its owner sees these: they may contain secrets.
PRIVATE_FIELDS = ("environment", "secrets", "command", "bootstrap")
