# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Parameters and results of steps, as a controller exchanges them with hosts; ``rules_of`` has the rules of the results."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Iterable, Mapping, Optional, Tuple

from ..codec import Document
from ..errors import Failure
from .image import AgentImage
from .plan import Resources
from .report import AppState, ObservedContainer, Relay
from .schema import (
    AMOUNT,
    RESOURCES,
    SHORT_NAME,
    WORD,
    a_flag,
    a_host_address,
    a_line,
    a_number,
    a_text,
    matching,
    or_none,
    ruled,
    rules_of,
    whole,
)


@dataclass(frozen=True)
class LogRequest(Document):
    """The logs to read: ``tail`` lines of each container, ``total`` bytes of all, in ``deadline`` seconds.

    Without ``containers``, the logs of all containers of the session; with ``ended``, the last lines of those that have ended.
    ``since`` is in seconds since the epoch.
    """

    session: str
    containers: Tuple[str, ...] = ()
    tail: Optional[int] = None
    since: int = 0
    timestamps: bool = False
    total: int = 64 << 20
    deadline: int = 60
    ended: bool = False


@dataclass(frozen=True)
class ContainerLog(Document):
    """The log of a container. The limit of a text does not apply to a log. ``name`` is the engine's, which the head does not keep."""

    hostname: str = ruled(SHORT_NAME)
    state: str = ruled(a_line)
    text: str = ruled(lambda value: isinstance(value, str))
    name: str = ruled(a_line, "")

    @property
    def written(self) -> Mapping[str, Any]:
        return {key: value for key, value in vars(self).items() if value or key != "name"}


@dataclass(frozen=True)
class Logs(Document):
    """The logs of containers, main1 first."""

    logs: Tuple[ContainerLog, ...] = ruled([rules_of(ContainerLog)], ())


@dataclass(frozen=True)
class Change(Document):
    """A step that may have ``changed`` something, or that would in check mode."""

    changed: bool = ruled(a_flag, False)


@dataclass(frozen=True)
class ChangedApps(Change):
    """The apps of containers, and the relays that run on their agents."""

    apps: Tuple[AppState, ...] = ruled([rules_of(AppState)], ())
    relays: Tuple[Relay, ...] = ruled([rules_of(Relay)], ())


@dataclass(frozen=True)
class ChangedImage(Change):
    """An image on an agent."""

    image: AgentImage = ruled(rules_of(AgentImage), lambda: AgentImage(""))


@dataclass(frozen=True)
class BuiltImage(Change):
    """The ID of a built image, which is empty in check mode, and what has been done."""

    id: str = ruled(a_line, "")
    message: str = ruled(a_text, "")


@dataclass(frozen=True)
class MeasuredImage(Document):
    """How large an image of a container can become, and that as a line."""

    size: int = ruled(AMOUNT)
    message: str = ruled(a_text)


@dataclass(frozen=True)
class ChangedNodes(Change):
    """The IDs of the nodes of a Swarm that have changed."""

    nodes: Tuple[str, ...] = ruled([a_line], ())


@dataclass(frozen=True)
class CreatedContainers(Change):
    """The creation of containers. ``network_duration`` is the time of their network in seconds, if it was created there."""

    network_duration: float = ruled(a_number, 0.0)


@dataclass(frozen=True)
class RemovedNetworks(Change):
    """The removal of networks; ``left`` are those that the engine keeps."""

    left: Tuple[str, ...] = ruled([a_line], ())


@dataclass(frozen=True)
class RemovedContainers(Change):
    """The end of containers on an agent.

    ``left_networks`` are shared networks that a manager removes. ``failure`` says what has stayed; everything else is as it says.
    """

    left_networks: Tuple[str, ...] = ruled([a_line], ())
    logs: Tuple[ContainerLog, ...] = ruled([rules_of(ContainerLog)], ())
    failure: Optional[Failure] = ruled(or_none({"code": a_text, "message": a_text, "where": a_text}), None)


@dataclass(frozen=True)
class Difference(Document):
    """Show what was there and what is there now, as Ansible shows it: texts, or mappings. A ``header`` stands above both."""

    before: Any
    after: Any
    header: str = ""

    @property
    def written(self) -> Mapping[str, Any]:
        headers = {"before_header": self.header, "after_header": self.header} if self.header else {}
        return {"before": self.before, "after": self.after, **headers}


@dataclass(frozen=True)
class Action(Document):
    """A change of a container, volume or network, which has this name in the engine."""

    name: str
    action: str


@dataclass(frozen=True)
class Changes(Change):
    """The result of a module that shows its changes. What is None is no part of it."""

    diff: Tuple[Difference, ...] = ()

    @property
    def written(self) -> Mapping[str, Any]:
        diff = self.diff[0] if len(self.diff) == 1 else self.diff
        return {name: value for name, value in {**vars(self), "diff": diff}.items() if value is not None}


@dataclass(frozen=True)
class StartedCommand(Change):
    """The start of a session's command. ``since`` is when it took the place of another, in the form of an engine's logs."""

    since: str = ruled(a_line, "")


@dataclass(frozen=True)
class Begun(Change):
    """The containers in which the command of a role has begun."""

    begun: Tuple[str, ...] = ()


@dataclass(frozen=True)
class Followed(Change):
    """The running containers whose files name other members now."""

    followed: Tuple[str, ...] = ()


@dataclass(frozen=True)
class InstalledFiles(Changes):
    """The installation of SSH in the containers with these hostnames."""

    installed: Tuple[str, ...] = ()


@dataclass(frozen=True)
class NetworkChanges(Changes):
    """The creation or removal of networks. ``left`` are those that the engine keeps, for the reasons in ``warnings``."""

    network: Mapping[str, Any] = field(default_factory=dict)
    removed: Tuple[str, ...] = ()
    left: Optional[Tuple[str, ...]] = None
    warnings: Optional[Tuple[str, ...]] = None


@dataclass(frozen=True)
class ContainerChanges(Changes):
    """Changes of containers with their volumes and networks, and the containers that remain. ``failure`` says what has stayed."""

    containers: Tuple[ObservedContainer, ...] = ()
    changed_names: Tuple[str, ...] = ()
    actions: Tuple[Action, ...] = ()
    left: Tuple[str, ...] = ()
    logs: Optional[Tuple[ContainerLog, ...]] = None
    failure: Optional[Mapping[str, str]] = None
    installed: Optional[Tuple[str, ...]] = None
    network: Optional[Mapping[str, Any]] = None
    network_duration: Optional[float] = None
    left_networks: Optional[Tuple[str, ...]] = None
    warnings: Optional[Tuple[str, ...]] = None

    def with_files(self, files: InstalledFiles) -> ContainerChanges:
        changed, diff = self.changed or files.changed, (*self.diff, *files.diff)
        return replace(self, changed=changed, diff=diff, installed=files.installed)

    def with_removed(self, networks: Iterable[str]) -> ContainerChanges:
        return replace(self, actions=(*self.actions, *(Action(name, "network removed") for name in networks)))


@dataclass(frozen=True)
class RunningContainer(Document):
    """A container that something else has started, with its address in a network."""

    name: str = ruled(WORD)
    id: str = ruled(matching("[0-9a-f]{64}"))
    network: str = ruled(matching("[0-9a-z]{12,64}"))
    address: str = ruled(a_host_address)
    prefix: int = ruled(whole(32, 8))
    resources: Resources = ruled(RESOURCES)


@dataclass(frozen=True)
class FoundContainers(Document):
    """The running containers of an agent that have the names that were asked for."""

    found: Tuple[RunningContainer, ...] = ruled([rules_of(RunningContainer)], ())


@dataclass(frozen=True)
class CommitSpec(Document):
    """An image to make: of a container of a session, with a name."""

    session: str
    owner: str
    name: str
    container: str
    image: str
    squash: bool = False
