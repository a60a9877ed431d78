# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the agents report, as far as decisions need it: their capacity, and the containers that their engines hold."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, Mapping, Tuple

from .constants import LABEL_SESSION
from .documents import Document, Json
from .model import Gpu, Resources

# The labels from which a session is known again whose plan is lost.
_NEEDED_LABELS = tuple(f"{LABEL_SESSION}.{name}" for name in ("name", "owner", "mode", "placement", "subnet"))


@dataclass(frozen=True)
class ObservedContainer:
    """A labelled container as its engine reports it."""

    id: str
    session: str
    hostname: str
    state: str
    resources: Resources
    data: Json = field(default_factory=dict, compare=False)

    @classmethod
    def from_json(cls, data: Json) -> ObservedContainer:
        return cls(
            id=str(data["id"]),
            session=str(data["session"]),
            hostname=str(data.get("hostname", "")),
            state=str(data.get("state", "")),
            resources=Resources.from_json(data.get("resources") or {}),
            data=data,
        )

    def label(self, name: str) -> str:
        """The value of a label; empty without it."""
        return str((self.data.get("labels") or {}).get(name, ""))

    @property
    def describes_session(self) -> bool:
        """Whether its labels describe its session. Every user of its engine can make one that has only some of them."""
        return all(map(self.label, _NEEDED_LABELS))


@dataclass(frozen=True)
class RdmaPort(Document):
    """A port of an RDMA device. ``fabric``: its network interface is the agent's interface for the fabric."""

    name: str
    link_layer: str
    active: bool
    fabric: bool = False


@dataclass(frozen=True)
class Fabric(Document):
    """The interface of an agent for the fabric, and why sessions cannot use it."""

    interface: str = ""
    reason: str = "has no agent_fabric"


@dataclass(frozen=True)
class GpuSharing(Document):
    """What limits a part of a GPU to its size on an agent, and why sessions get no part of one, which ``may_pass``."""

    kind: str = "none"
    reason: str = ""
    may_pass: bool = False


@dataclass(frozen=True)
class HostNetwork(Document):
    """The address of an agent for other hosts, with its interface, and why sessions cannot use its network."""

    address: str = ""
    interface: str = ""
    reason: str = "has no IPv4 address"


# The states of a GPU. No session is placed on a red one.
GREEN, YELLOW, RED = "green", "yellow", "red"


@dataclass(frozen=True)
class GpuHealth(Document):
    """The health of a GPU, and what is wrong with it."""

    id: str
    state: str
    reasons: Tuple[str, ...] = ()


@dataclass(frozen=True)
class Agent:
    """An agent as the scheduler sees it: capacity after reservations, and what its engine reports.

    ``may_return`` is false if the agent cannot be used and waiting changes nothing: it must be repaired.
    """

    name: str
    millicpus: int
    memory: int
    gpus: Tuple[Gpu, ...] = ()
    cpu_ids: Tuple[int, ...] = ()
    group: str = "default"
    schedulable: bool = True
    reachable: bool = True
    reason: str = ""
    may_return: bool = True
    avoid: str = ""
    architecture: str = ""
    publish: str = "127.0.0.1"
    mtu: int = 1500
    swarm: str = ""
    node: str = ""
    managers: Tuple[str, ...] = ()
    routes: Tuple[str, ...] = ()
    needed_addresses: Tuple[str, ...] = ()
    subnets: Tuple[str, ...] = ()
    ports: Tuple[int, ...] = ()
    names: Tuple[str, ...] = ()
    containers: Tuple[ObservedContainer, ...] = ()
    network_sessions: Tuple[str, ...] = ()
    image_architecture: str = ""
    paths: Mapping[str, bool] = field(default_factory=dict)
    address: str = ""
    gpu_use: Tuple[Json, ...] = field(default=(), compare=False)
    kernel: Mapping[str, int] = field(default_factory=dict)
    rdma_ports: Tuple[RdmaPort, ...] = ()
    gpu_health: Tuple[GpuHealth, ...] = ()
    fabric: Fabric = field(default_factory=Fabric)
    gpu_sharing: GpuSharing = field(default_factory=GpuSharing)
    host_network: HostNetwork = field(default_factory=HostNetwork)

    @property
    def red_gpus(self) -> Dict[str, str]:
        """Why each red GPU is red."""
        return {gpu.id: ", ".join(gpu.reasons) for gpu in self.gpu_health if gpu.state == RED}

    @property
    def groups(self) -> Tuple[str, ...]:
        """The resource groups of the agent; ``group`` has them in one text, separated by commas."""
        return tuple(self.group.split(","))

    @classmethod
    def from_json(cls, data: Json) -> Agent:
        capacity = data.get("capacity") or {}
        networks = data.get("networks") or ()
        swarm = (data.get("engine") or {}).get("swarm") or {}
        return cls(
            name=str(data["name"]),
            millicpus=int(capacity.get("millicpus", 0)),
            memory=int(capacity.get("memory", 0)),
            gpus=tuple(Gpu.from_json(gpu) for gpu in capacity.get("gpus") or ()),
            cpu_ids=tuple(capacity.get("cpu_ids") or ()),
            group=str(data.get("group", "default")),
            schedulable=bool(data.get("schedulable", True)),
            reachable=bool(data.get("reachable", True)),
            reason=str(data.get("reason") or ""),
            may_return=bool(data.get("may_return", True)),
            avoid=str(data.get("avoid") or ""),
            architecture=str(data.get("architecture") or ""),
            publish=str(data.get("publish") or "127.0.0.1"),
            mtu=int(data.get("mtu") or 1500),
            swarm=str(swarm.get("cluster_id") or "") if swarm.get("state") == "active" else "",
            node=str(swarm.get("node_id") or ""),
            managers=tuple(swarm.get("managers") or ()) if swarm.get("state") == "active" else (),
            routes=tuple(data.get("routes") or ()),
            needed_addresses=tuple(data.get("needed_addresses") or ()),
            subnets=tuple(subnet for network in networks for subnet in network.get("subnets") or ()),
            ports=tuple(data.get("ports") or ()),
            names=tuple(data.get("names") or ()),
            containers=tuple(ObservedContainer.from_json(container) for container in data.get("containers") or ()),
            network_sessions=tuple(network["session"] for network in networks if network.get("session")),
            image_architecture=str((data.get("image") or {}).get("architecture") or ""),
            paths=dict(data.get("paths") or {}),
            address=str(data.get("address") or ""),
            gpu_use=tuple(data.get("gpu_use") or ()),
            kernel=dict(data.get("kernel") or {}),
            rdma_ports=tuple(RdmaPort.from_json(port) for port in data.get("rdma_ports") or ()),
            fabric=Fabric.from_json(data.get("fabric") or {}),
            gpu_sharing=GpuSharing.from_json(data.get("gpu_sharing") or {}),
            host_network=HostNetwork.from_json(data.get("host_network") or {}),
            gpu_health=tuple(GpuHealth.from_json(gpu) for gpu in data.get("gpu_health") or ()),
        )
