# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""``session.json``, which describes a session to programs on the controller that launched it. Docs: docs/session_json.md."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple, Type, TypeVar

from ..codec import Document, Json, decoded, subset
from ..constants import SCHEMA
from ..names import check_owner, check_session_name, local_port
from .plan import App, Container, Plan, Port
from .schema import (
    AGENT,
    DRIVER,
    HOME,
    HOSTNAME,
    ID,
    LOGIN,
    MOST,
    PORT,
    UUID,
    WORD,
    a_flag,
    a_line,
    an_address,
    by_rule,
    ruled,
    rules_of,
    whole,
)

_Part = TypeVar("_Part")
SESSION_NAME, OWNER = by_rule(check_session_name, "session_name"), by_rule(check_owner, "session_owner")
_OTHERS = "others"
_MAIN = "main1"
_NO_TIMINGS: Mapping[str, float] = MappingProxyType({})


@dataclass(frozen=True)
class _OpenDocument(Document):
    """A document that is written as it was read, apart from fields that have changed.

    A field with its default is left out. ``others`` has what no field has: unknown keys, and null values. A field of the type Any
    has no rule: this collection writes it for other programs.
    """

    @classmethod
    def from_json(cls: Type[_Part], data: Mapping[str, Any]) -> _Part:
        known = _defaults(cls)
        others = {name: value for name, value in data.items() if name not in known or value is None}
        return decoded(cls, {**data, _OTHERS: others})

    def to_json(self) -> Json:
        own, defaults = vars(self), _defaults(self.__class__)
        given = {name: _plain(own[name]) for name, default in defaults.items() if own[name] != default}
        return {**own[_OTHERS], **given}


def _defaults(kind: Any) -> Dict[str, Any]:
    return {one.name: one.default for one in fields(kind) if one.name != _OTHERS}


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return value.to_json() if isinstance(value, Document) else value


def _rules(kind: type) -> Dict[str, Any]:
    """The rules of the fields, none of which is needed: a document that lacks one is damaged, which is another error."""
    return dict(rules_of(kind))


@dataclass(frozen=True)
class SessionUser(_OpenDocument):
    """The user inside every container. ``home`` is not written."""

    name: str = ruled(LOGIN)
    uid: Optional[int] = ruled(ID, None)
    gid: Optional[int] = ruled(ID, None)
    home: Optional[str] = ruled(HOME, None)
    others: Json = field(default_factory=dict)


@dataclass(frozen=True)
class SessionInfo(_OpenDocument):
    """The session itself. ``created`` is the time of its request, and ``running`` of its last change of state."""

    id: str = ruled(UUID)
    name: str = ruled(SESSION_NAME)
    owner: str = ruled(OWNER)
    user: SessionUser = ruled(_rules(SessionUser))
    group: Any = None
    state: Any = None
    mode: Any = None
    size: Any = None
    image: Any = None
    created: Any = None
    running: Any = None
    others: Json = field(default_factory=dict)

    @classmethod
    def of_plan(cls, plan: Plan, row: Json) -> SessionInfo:
        known = subset(plan.session, "id", "name", "owner", "group", "mode", "size", "image")
        user = SessionUser(**subset(plan.session.user, "name", "uid", "gid"))
        return cls(**known, user=user, state=row["state"], created=row["created"], running=row["changed"])


@dataclass(frozen=True)
class SessionNetwork(_OpenDocument):
    """The private network."""

    driver: str = ruled(DRIVER)
    name: Any = None
    subnet: Any = None
    others: Json = field(default_factory=dict)


@dataclass(frozen=True)
class SessionContainer(_OpenDocument):
    """A container, with the IDs of its GPUs."""

    hostname: str = ruled(HOSTNAME)
    id: str = ruled(UUID, "")
    agent: str = ruled(AGENT, "")
    rank: Optional[int] = ruled(whole(MOST), None)
    local_rank: Optional[int] = ruled(whole(MOST), None)
    address: str = ruled(an_address, "")
    gpus: Optional[Tuple[str, ...]] = ruled([a_line], None)
    others: Json = field(default_factory=dict)

    @classmethod
    def of_plan(cls, container: Container) -> SessionContainer:
        known = subset(container, "id", "hostname", "agent", "rank", "local_rank", "address")
        return cls(**known, gpus=tuple(gpu.id for gpu in container.resources.gpus))


@dataclass(frozen=True)
class SessionApp(_OpenDocument):
    """A port that is published on an agent, or the command of an SSH tunnel to a port of ``container``, or both.

    ``relay``: the port was published after the launch.
    """

    name: str = ruled(WORD)
    address: Optional[str] = ruled(a_line, None)
    port: Optional[int] = ruled(PORT, None)
    tunnel: Optional[str] = ruled(a_line, None)
    relay: Optional[bool] = ruled(a_flag, None)
    container: Optional[str] = ruled(HOSTNAME, None)
    others: Json = field(default_factory=dict)

    @property
    def hostname(self) -> str:
        """The container that has the app."""
        return self.container or _MAIN

    @classmethod
    def published(cls, port: Port, address: str, folder: str) -> SessionApp:
        """A port of the launch. ``tunnel`` is the command for a reader who is not on the agent."""
        # Loopback is for a reader on the agent itself.
        reached = port.host_ip if port.host_ip.startswith("127.") else address
        way = None if port.name == "ssh" else tunnel(folder, port.host_port, port.container_port)
        return cls(port.name, reached, port.host_port, way)

    @classmethod
    def tunneled(cls, session: str, app: App, folder: str, hostname: str = _MAIN) -> SessionApp:
        """An app without a port of an agent: main1 connects a port of the reader's machine to a container."""
        way = tunnel(folder, local_port(session, app.name), app.port, hostname)
        return cls(app.name, "", 0, way, container=hostname)


@dataclass(frozen=True)
class SessionDocument(_OpenDocument):
    """The document. ``resources`` and ``roles`` are amounts of each container, ``timings`` seconds for each phase of the launch.

    ``command`` is null without a batch command, and has its result after a playbook has waited for it.
    """

    session: SessionInfo = ruled(_rules(SessionInfo))
    network: SessionNetwork = ruled(_rules(SessionNetwork))
    containers: Tuple[SessionContainer, ...] = ruled([_rules(SessionContainer)])
    apps: Tuple[SessionApp, ...] = ruled([_rules(SessionApp)])
    schema: Any = None
    resources: Any = None
    roles: Any = None
    command: Any = None
    timings: Any = None
    others: Json = field(default_factory=dict)

    @classmethod
    def of_plan(
        cls, plan: Plan, row: Json, apps: Iterable[SessionApp], timings: Mapping[str, float] = _NO_TIMINGS
    ) -> SessionDocument:
        """The stable result of a launch. ``row`` is the session in the store, and ``timings`` are seconds for each phase."""
        has_command = bool(plan.session.command)
        return cls(
            session=SessionInfo.of_plan(plan, row),
            network=SessionNetwork(**subset(plan.network, "name", "driver", "subnet")),
            containers=tuple(map(SessionContainer.of_plan, plan.containers)),
            apps=tuple(apps),
            schema=SCHEMA,
            resources=_resources(plan.main),
            roles=_roles(plan) or None,
            command={"result": "", "reason": ""} if has_command else None,
            timings={phase: round(float(seconds), 3) for phase, seconds in timings.items()},
            others={} if has_command else {"command": None},
        )

    def with_result(self, result: str, reason: str) -> SessionDocument:
        """The document with the result of the batch command; empty while the command runs."""
        return replace(self, command={"result": result, "reason": reason})


SESSION_DOCUMENT = _rules(SessionDocument)


def _resources(main: Container) -> Json:
    amounts = main.resources
    gpus = sum(gpu.shares for gpu in amounts.gpus)
    return {**subset(amounts, "memory", "shm"), "cpus": amounts.millicpus / 1000, "gpus": gpus}


def _roles(plan: Plan) -> List[Json]:
    return [
        {**subset(role, "name", "size", "image", "memory", "shm", "gpus"), "cpus": role.millicpus / 1000}
        for role in plan.session.roles
    ]


def tunnel(folder: str, own_port: int, port: int, hostname: str = "main1") -> str:
    """The command that forwards a port of this machine to a port of a container. It fails if the local port is in use.

    >>> tunnel("/home/alice/.cluster-compute/train", 30001, 8888)
    'ssh -N -o ExitOnForwardFailure=yes -F /home/alice/.cluster-compute/train/ssh_config -L 30001:main1:8888 main1'
    """
    config = shlex.quote(folder + "/ssh_config") if not folder.startswith("~/") else folder + "/ssh_config"
    return "ssh -N -o ExitOnForwardFailure=yes -F %s -L %d:%s:%d main1" % (config, own_port, hostname, port)
