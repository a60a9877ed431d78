# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The reports of agents: their capacity, and the containers that their engines hold."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any, Iterable, Mapping, Optional, Tuple

from .. import label
from ..codec import Document
from ..exits import DOWN, app_end, command_end
from .plan import Gpu, Port, Resources
from .schema import (
    AGENT,
    AMOUNT,
    GPUS,
    INTERFACE,
    MACHINE,
    MADE,
    MAKER,
    PORT,
    RESOURCES,
    SHORT_NAME,
    UUID,
    a_flag,
    a_host_address,
    a_line,
    a_number,
    a_subnet,
    a_text,
    an_address,
    by_name,
    is_cpuset,
    matching,
    or_none,
    ruled,
    rules_of,
    texts,
    whole,
)

EXIT_CODE = or_none(whole(65535, -65535))

# The part of a container that is null if it was not looked at.
_MEASURED = "measured"


@dataclass(frozen=True)
class BatchState(Document):
    """The state of a command. ``exit_code`` is None until its end, and ``reason`` says why it cannot be known.

    ``begun`` is false if the container was started after the command, which has ended with its earlier run.
    """

    exit_code: Optional[int] = ruled(EXIT_CODE, None)
    oom_killed: bool = ruled(a_flag, False)
    reason: str = ruled(a_text, "")
    begun: bool = ruled(a_flag, True)

    @property
    def has_ended(self) -> bool:
        return self.exit_code is not None

    @property
    def end(self) -> str:
        """Return how the command ended, without a full stop."""
        return command_end(self.exit_code, self.oom_killed, self.reason)


@dataclass(frozen=True)
class AppState(Document):
    """The state of an app, as PID 1 reports it. ``exit_code`` is from its last run, and None before it ends."""

    name: str = ruled(SHORT_NAME)
    state: str = ruled(a_line)
    exit_code: Optional[int] = ruled(EXIT_CODE, None)

    @property
    def has_failed(self) -> bool:
        """Return whether it does not run: PID 1 starts it again after a pause, or not any more."""
        return self.state in DOWN

    @property
    def end(self) -> str:
        """Why an app that has failed does not run, without a full stop."""
        return app_end(self.name, self.state, self.exit_code)


@dataclass(frozen=True)
class Relay(Document):
    """A relay that runs, of the app ``name``."""

    name: str = ruled(SHORT_NAME)
    host_ip: str = ruled(a_line)
    port: int = ruled(PORT)


@dataclass(frozen=True)
class GpuUse(Document):
    """The use of a GPU: its utilization in percent, and bytes of its memory. A GPU of MIG does not report all of it."""

    id: str = ruled(a_line)
    percent: Optional[int] = ruled(or_none(AMOUNT), None)
    memory: Optional[int] = ruled(or_none(AMOUNT), None)
    capacity: Optional[int] = ruled(or_none(AMOUNT), None)


@dataclass(frozen=True)
class Measured(Document):
    """The present use of a container and its GPUs."""

    millicpus: int = ruled(AMOUNT)
    memory: int = ruled(AMOUNT)
    gpus: Tuple[GpuUse, ...] = ruled([rules_of(GpuUse)], ())

    @classmethod
    def sum_of(cls, measured: Iterable[Measured]) -> Measured:
        """The use of several. They may share a GPU."""
        listed = list(measured)
        gpus = {gpu.id: gpu for each in listed for gpu in each.gpus}
        return cls(sum(each.millicpus for each in listed), sum(each.memory for each in listed), tuple(gpus.values()))


@dataclass(frozen=True)
class Enforced(Document):
    """The limits of a container in the kernel: amounts are 0 without a limit, ``cpuset`` is empty for all CPUs, None is unknown."""

    millicpus: Optional[int] = ruled(or_none(AMOUNT), None)
    memory: Optional[int] = ruled(or_none(AMOUNT), None)
    pids: Optional[int] = ruled(or_none(AMOUNT), None)
    cpuset: Optional[str] = ruled(or_none(lambda text: text == "" or is_cpuset(text)), None)


@dataclass(frozen=True)
class ObservedContainer(Document):
    """A labelled container as its engine reports it. What its agent has not looked at is None.

    ``ports`` are reserved for it, and ``published`` are those that it publishes now. ``fault`` says how it differs from its plan.
    """

    id: str = ruled(matching(r"(?:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})?"))
    session: str = ruled(UUID)
    name: str = ruled(a_line, "")
    owner: str = ruled(a_line, "")
    group: str = ruled(a_line, "")
    mode: str = ruled(a_line, "")
    hostname: str = ruled(SHORT_NAME, "")
    role: str = ruled(SHORT_NAME, "")
    index: int = ruled(whole(9999), 0)
    rank: int = ruled(whole(9999), 0)
    launch: str = ruled(a_line, "")
    spec: str = ruled(a_line, "")
    engine_id: str = ruled(a_line, "")
    engine_name: str = ruled(a_line, "")
    image: str = ruled(a_line, "")
    state: str = ruled(a_line, "")
    exit_code: Optional[int] = ruled(EXIT_CODE, None)
    oom_killed: bool = ruled(a_flag, False)
    created: float = ruled(a_number, 0.0)
    address: str = ruled(a_line, "")
    network: str = ruled(a_line, "")
    resources: Resources = ruled(RESOURCES, Resources)
    ports: Tuple[int, ...] = ruled([PORT], ())
    published: Optional[Tuple[int, ...]] = ruled([PORT], None)
    enforced: Optional[Enforced] = ruled(rules_of(Enforced), None)
    labels: Mapping[str, str] = ruled(texts, dict)
    batch: Optional[BatchState] = ruled(rules_of(BatchState), None)
    apps: Optional[Tuple[AppState, ...]] = ruled([rules_of(AppState)], None)
    relays: Optional[Tuple[Relay, ...]] = ruled([rules_of(Relay)], None)
    measured: Optional[Measured] = ruled(or_none(rules_of(Measured)), None)
    fault: Optional[str] = ruled(a_text, None)

    @property
    def written(self) -> Mapping[str, Any]:
        return {name: value for name, value in vars(self).items() if value is not None or name == _MEASURED}

    def label(self, name: str) -> str:
        """The value of a label; empty without it."""
        return self.labels.get(name, "")

    @property
    def placement(self) -> Tuple[str, ...]:
        """The agent of every rank of its session, from its label."""
        return tuple(agent for agent, count in json.loads(self.label(label.PLACEMENT)) for dummy in range(count))

    @property
    def planned_ports(self) -> Tuple[Port, ...]:
        """The ports that its plan publishes, from its label."""
        return tuple(Port.from_json(port) for port in json.loads(self.label(label.PORTS) or "[]"))

    @property
    def describes_session(self) -> bool:
        """Return whether its labels describe its session. Every user of its engine can make one that has only some of them."""
        return all(map(self.label, (label.NAME, label.OWNER, label.MODE, label.PLACEMENT, label.SUBNET)))


@dataclass(frozen=True)
class RdmaPort(Document):
    """A port of an RDMA device, of the interface for the ``fabric``, or with a RoCE v2 GID for an address of the ``host``."""

    name: str = ruled(a_line)
    link_layer: str = ruled(a_line)
    active: bool = ruled(a_flag)
    fabric: bool = ruled(a_flag, False)
    host: bool = ruled(a_flag, False)


@dataclass(frozen=True)
class Fabric(Document):
    """The interface of an agent for the fabric, and why sessions cannot use it."""

    interface: str = ruled(a_line, "")
    reason: str = ruled(a_text, "has no agent_fabric")


@dataclass(frozen=True)
class GpuSharing(Document):
    """The mechanism that limits a part of a GPU to its size on an agent, and why sessions get no part of one, which ``may_pass``."""

    kind: str = ruled(matching("none|mps|mig"), "none")
    reason: str = ruled(a_line, "")
    may_pass: bool = ruled(a_flag, False)


@dataclass(frozen=True)
class HostNetwork(Document):
    """The address of an agent for other hosts, with its interface, and why sessions cannot use its network."""

    address: str = ruled(lambda value: value == "" or a_host_address(value), "")
    interface: str = ruled(lambda value: value == "" or INTERFACE(value), "")
    reason: str = ruled(a_text, "has no IPv4 address")


@dataclass(frozen=True)
class SwarmPlace(Document):
    """The place of an engine in a Swarm. Only managers know the port of its overlays, which is 0 elsewhere."""

    state: str = ruled(a_line, "inactive")
    node_id: str = ruled(a_line, "")
    cluster_id: str = ruled(a_line, "")
    manager: bool = ruled(a_flag, False)
    managers: Tuple[str, ...] = ruled([a_line], ())
    address: str = ruled(a_line, "")
    data_path_port: int = ruled(PORT, 0)


# The states of a GPU. No session is placed on a red one.
GREEN, YELLOW, RED = "green", "yellow", "red"


@dataclass(frozen=True)
class GpuHealth(Document):
    """The health of a GPU, and what is wrong with it."""

    id: str = ruled(a_line)
    state: str = ruled(matching("green|yellow|red"))
    reasons: Tuple[str, ...] = ruled([a_line], ())


@dataclass(frozen=True)
class Capacity(Document):
    """The room for sessions on an agent, after its reservations: ``cpu_ids`` are the CPUs to which containers can be pinned."""

    millicpus: int = ruled(AMOUNT, 0)
    memory: int = ruled(AMOUNT, 0)
    gpus: Tuple[Gpu, ...] = ruled(GPUS, ())
    cpu_ids: Tuple[int, ...] = ruled([whole(65535)], ())


@dataclass(frozen=True)
class EngineState(Document):
    """The engine of an agent. ``identity`` is an ID that no other engine has; empty if it is not known."""

    version: str = ruled(a_line, "")
    api: str = ruled(a_line, "")
    rootless: bool = ruled(a_flag, False)
    swarm: SwarmPlace = ruled(rules_of(SwarmPlace), SwarmPlace)
    identity: str = ruled(a_line, "")


@dataclass(frozen=True)
class EngineLimits(Document):
    """The limits that an engine can give a container: -1 is unlimited, 0 not known."""

    nofile: int = ruled(a_number, 0)
    memlock: int = ruled(a_number, 0)


@dataclass(frozen=True)
class ImageState(Document):
    """The image that a report is about. ``made`` and ``owner`` are empty if it was not made of a container of a session."""

    reference: str = ruled(a_text, "")
    present: bool = ruled(a_flag, False)
    id: str = ruled(a_line, "")
    architecture: str = ruled(MACHINE, "")
    made: str = ruled(MADE, "")
    owner: str = ruled(MAKER, "")


@dataclass(frozen=True)
class Runtime(Document):
    """The volume of the SSH runtime."""

    volume: str = ruled(a_line, "")
    present: bool = ruled(a_flag, False)


@dataclass(frozen=True)
class OverlayGuard(Document):
    """The rules that keep containers out of overlays, and their UDP port. ``state`` is empty where this user cannot see them."""

    state: str = ruled(a_line, "")
    port: int = ruled(PORT, 0)


@dataclass(frozen=True)
class EngineNetwork(Document):
    """Any network of an engine: its subnets, which a new subnet must not overlap, and its session."""

    name: str = ruled(a_line, "")
    driver: str = ruled(a_line, "")
    subnets: Tuple[str, ...] = ruled([a_subnet], ())
    session: str = ruled(a_line, "")


@dataclass(frozen=True)
class IgnoredContainer(Document):
    """A container that claims to belong to a session, and its first label that cannot be read."""

    engine_name: str = ruled(a_line)
    label: str = ruled(a_line)


@dataclass(frozen=True)
class AgentReport(Document):
    """An agent as it reports itself, which is all that the scheduler knows of it.

    One that an agent has made up must not stop decisions about all others, so each part has its type, and a size that can exist.
    ``may_return`` is false if waiting changes nothing: the agent must be repaired. ``avoid`` says why it gets no new session.
    """

    name: str = ruled(AGENT)
    reachable: bool = ruled(a_flag, True)
    reason: str = ruled(a_text, "")
    may_return: bool = ruled(a_flag, True)
    group: str = ruled(a_line, "default")
    schedulable: bool = ruled(a_flag, True)
    avoid: str = ruled(a_text, "")
    architecture: str = ruled(MACHINE, "")
    publish: str = ruled(an_address, "127.0.0.1")
    address: str = ruled(a_line, "")
    capacity: Capacity = ruled(rules_of(Capacity), Capacity)
    engine: EngineState = ruled(rules_of(EngineState), EngineState)
    limits: EngineLimits = ruled(rules_of(EngineLimits), EngineLimits)
    paths: Mapping[str, bool] = ruled(by_name(a_line, a_flag), dict)
    image: ImageState = ruled(rules_of(ImageState), ImageState)
    runtime: Runtime = ruled(rules_of(Runtime), Runtime)
    kernel: Mapping[str, int] = ruled(by_name(a_line, AMOUNT), dict)
    mtu: int = ruled(whole(65535, 68), 1500)
    routes: Tuple[str, ...] = ruled([a_subnet], ())
    needed_addresses: Tuple[str, ...] = ruled([a_subnet], ())
    overlay_guard: OverlayGuard = ruled(rules_of(OverlayGuard), OverlayGuard)
    networks: Tuple[EngineNetwork, ...] = ruled([rules_of(EngineNetwork)], ())
    ports: Tuple[int, ...] = ruled([PORT], ())
    names: Tuple[str, ...] = ruled([a_line], ())
    containers: Tuple[ObservedContainer, ...] = ruled([rules_of(ObservedContainer)], ())
    ignored_containers: Tuple[IgnoredContainer, ...] = ruled([rules_of(IgnoredContainer)], ())
    silent_folders: Tuple[str, ...] = ruled([a_line], ())
    gpu_use: Tuple[GpuUse, ...] = ruled([rules_of(GpuUse)], ())
    gpu_health: Tuple[GpuHealth, ...] = ruled([rules_of(GpuHealth)], ())
    gpu_sharing: GpuSharing = ruled(rules_of(GpuSharing), GpuSharing)
    rdma_ports: Tuple[RdmaPort, ...] = ruled([rules_of(RdmaPort)], ())
    fabric: Fabric = ruled(rules_of(Fabric), Fabric)
    host_network: HostNetwork = ruled(rules_of(HostNetwork), HostNetwork)

    @property
    def groups(self) -> Tuple[str, ...]:
        return tuple(self.group.split(","))

    @property
    def place(self) -> SwarmPlace:
        """Its place in a Swarm. Only an active member has one."""
        own = self.engine.swarm
        return own if own.state == "active" else SwarmPlace(own.state, own.node_id)

    @property
    def swarm(self) -> str:
        """The ID of its Swarm; empty without one."""
        return self.place.cluster_id

    def in_swarm(self, cluster: str) -> AgentReport:
        """The agent as a member of a Swarm."""
        place = replace(self.engine.swarm, state="active", cluster_id=cluster)
        return replace(self, engine=replace(self.engine, swarm=place))
