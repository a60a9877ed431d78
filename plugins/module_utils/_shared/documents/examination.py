# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The doctor's examination of an agent, and what the tests between agents find on it, with a rule for each field."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Mapping, Optional, Tuple

from ..codec import Document
from .report import Fabric, GpuHealth, GpuSharing, RdmaPort, SwarmPlace
from .schema import (
    AGENT,
    AMOUNT,
    MACHINE,
    a_flag,
    a_line,
    a_number,
    a_subnet,
    a_text,
    by_name,
    or_none,
    ruled,
    rules_of,
    texts,
    whole,
)

# What an engine limits by control groups, by the names that findings have. Sessions need the first two.
CPU_QUOTA, MEMORY_LIMIT, SWAP_LIMIT, CPUSET, PIDS_LIMIT = (
    "CPU quota",
    "memory limit",
    "swap limit",
    "cpuset",
    "pids limit",
)
CONTROLLERS = (CPU_QUOTA, MEMORY_LIMIT, SWAP_LIMIT, CPUSET, PIDS_LIMIT)
_SIZE = whole(1 << 60, -1)


@dataclass(frozen=True)
class ExaminedFabric(Fabric):
    """The interface of an agent for the fabric, with its MTU and its speed in Mbit/s; 0: not known."""

    mtu: int = ruled(whole(1 << 20), 0)
    speed: int = ruled(whole(1 << 30), 0)


@dataclass(frozen=True)
class ExaminedRdmaPort(RdmaPort):
    """A port of an RDMA device, with the types of its addresses (GIDs)."""

    gids: Tuple[str, ...] = ruled([a_line], ())


@dataclass(frozen=True)
class NvLinks(Document):
    """The GPUs that ``nvidia-smi`` shows, and the pairs of them that NVLinks connect."""

    gpus: int = ruled(whole(1000), 0)
    linked: int = ruled(whole(1 << 20), 0)


@dataclass(frozen=True)
class ExaminedEngine(Document):
    """An engine, and what it gives to containers.

    ``runtime`` and ``image``: it has the SSH runtime and the reference image. ``disk`` is its folder with the least free space,
    ``disk_free``, which is -1 if it cannot be read. ``cgroups`` are the limits that it supports, ``settings`` those that take
    something from sessions, and ``open_api`` the addresses at which it obeys everyone.
    """

    version: str = ruled(a_line)
    identity: str = ruled(a_line)
    sdk: str = ruled(a_line)
    runtime: bool = ruled(a_flag)
    image: bool = ruled(a_flag)
    disk: str = ruled(a_line)
    disk_free: int = ruled(_SIZE)
    cgroups: Tuple[str, ...] = ruled([a_line])
    cgroup_version: str = ruled(a_line)
    cgroup_driver: str = ruled(a_line)
    nofile: int = ruled(_SIZE)
    memlock: int = ruled(_SIZE)
    log_driver: str = ruled(a_line)
    storage: str = ruled(a_line)
    settings: Tuple[str, ...] = ruled([a_line])
    open_api: Tuple[str, ...] = ruled([a_line])


@dataclass(frozen=True)
class ExaminedGpus(Document):
    """The GPUs of NVIDIA and of AMD, whether the engine has NVIDIA's runtime, and the versions of what containers use."""

    nvidia: int = ruled(AMOUNT)
    amd: int = ruled(AMOUNT)
    has_runtime: bool = ruled(a_flag)
    driver: str = ruled(a_line)
    toolkit: str = ruled(a_line)
    health: Tuple[GpuHealth, ...] = ruled([rules_of(GpuHealth)])
    sharing: GpuSharing = ruled(rules_of(GpuSharing))
    nvlink: NvLinks = ruled(rules_of(NvLinks))


@dataclass(frozen=True)
class ExaminedNetwork(Document):
    """The network of a host. ``subnets`` are in use by networks of the engine, ``session_subnets`` by networks of sessions."""

    address: str = ruled(a_line)
    mtu: int = ruled(whole(1 << 20, 68))
    routes: Tuple[str, ...] = ruled([a_subnet])
    subnets: Tuple[str, ...] = ruled([a_subnet])
    session_subnets: Tuple[str, ...] = ruled([a_subnet])
    fabric: ExaminedFabric = ruled(rules_of(ExaminedFabric))
    rdma: Tuple[ExaminedRdmaPort, ...] = ruled([rules_of(ExaminedRdmaPort)])
    bridge_filter: bool = ruled(a_flag)
    session_guard: str = ruled(a_line)


@dataclass(frozen=True)
class Unreached(Document):
    """An agent that could not be examined, and why."""

    name: str = ruled(AGENT)
    reason: str = ruled(a_text)


@dataclass(frozen=True)
class Examination(Document):
    """All that the checks read of an agent.

    ``swarm_error`` says why its place in the Swarm fails, and ``has_moved`` whether the Swarm has an address that it has not.
    ``esp`` says whether its kernel can encrypt networks; it is None without a test. A controller adds ``clock``: by how many seconds
    the agent's ``time`` is ahead of its own.
    """

    name: str = ruled(AGENT)
    time: float = ruled(a_number)
    python: str = ruled(a_line)
    architecture: str = ruled(MACHINE)
    kernel: Mapping[str, int] = ruled(by_name(a_line, AMOUNT))
    systemd: bool = ruled(a_flag)
    nfs: bool = ruled(a_flag)
    silent_folders: Tuple[str, ...] = ruled([a_line])
    engine: ExaminedEngine = ruled(rules_of(ExaminedEngine))
    gpus: ExaminedGpus = ruled(rules_of(ExaminedGpus))
    network: ExaminedNetwork = ruled(rules_of(ExaminedNetwork))
    swarm: SwarmPlace = ruled(rules_of(SwarmPlace))
    swarm_error: str = ruled(a_text, "")
    has_moved: bool = ruled(a_flag, False)
    esp: Optional[bool] = ruled(or_none(a_flag), None)
    esp_reason: str = ruled(a_line, "")
    clock: float = ruled(a_number, 0.0)


@dataclass(frozen=True)
class Peer(Document):
    """An agent as the others reach it: its address and MTU, and whether it is in a Swarm."""

    name: str
    address: str
    mtu: int
    member: bool


@dataclass(frozen=True)
class OverlayMember(Document):
    """The container of an agent in the throw-away overlay network, by the agent's name."""

    name: str
    host: str
    address: str


@dataclass(frozen=True)
class OverlayPlan(Document):
    """The throw-away overlay network of a check, which ``manager`` makes.

    ``reason`` says why there is none, and then there are no ``members``. ``links`` are the pairs whose throughput was measured, each
    for ``seconds``.
    """

    members: Tuple[OverlayMember, ...] = ()
    reason: str = ""
    manager: str = ""
    subnet: str = ""
    gateway: str = ""
    ip_range: str = ""
    mtu: int = 0
    encrypted: bool = False
    seconds: float = 0.0
    links: Tuple[Tuple[str, str], ...] = ()


# A number, or null, for each agent.
_MEASUREMENTS = by_name(a_line, or_none(lambda number: a_number(number) and number >= 0))


@dataclass(frozen=True)
class InOverlay(Document):
    """Findings of an agent's container in the overlay network: addresses by name, who was heard with which size of packet,
    milliseconds and Mbit/s by name, and whether it has finished."""

    names: Mapping[str, str] = ruled(texts, dict)
    heard: Tuple[Tuple[str, ...], ...] = ruled([[a_line]], ())
    latency: Mapping[str, Optional[float]] = ruled(_MEASUREMENTS, dict)
    mbits: Mapping[str, Optional[float]] = ruled(_MEASUREMENTS, dict)
    measured: bool = ruled(a_flag, False)


@dataclass(frozen=True)
class Probe(Document):
    """Findings of the tests between agents on an agent, of which each step finds a part.

    ``received`` are the senders of datagrams with their channels; None if the agent has not returned them. ``connected`` has the
    answer of each port of each agent. The reasons say why the agent takes no part in a test.
    """

    listened: bool = ruled(a_flag, False)
    sent: bool = ruled(a_flag, False)
    contained: bool = ruled(a_flag, False)
    received: Optional[Tuple[Tuple[str, ...], ...]] = ruled(or_none([[a_line]]), None)
    connected: Mapping[str, Mapping[str, str]] = ruled(by_name(a_line, texts), dict)
    overlay: Optional[InOverlay] = ruled(or_none(rules_of(InOverlay)), None)
    reason: str = ruled(a_text, "")
    overlay_reason: str = ruled(a_text, "")
    network_reason: str = ruled(a_text, "")

    def joined(self, later: Probe) -> Probe:
        """Return what is known after a later step."""
        return Probe(
            listened=later.listened or self.listened,
            sent=later.sent or self.sent,
            contained=later.contained or self.contained,
            received=self.received if later.received is None else later.received,
            connected=later.connected or self.connected,
            overlay=later.overlay or self.overlay,
            reason=later.reason or self.reason,
            overlay_reason=later.overlay_reason or self.overlay_reason,
            network_reason=later.network_reason or self.network_reason,
        )
