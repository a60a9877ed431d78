# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The reports of agents: their capacity, and the containers that their engines hold."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from .. import label
from ..codec import Document, Json, decoded
from ..exits import DOWN, app_end, command_end
from .plan import Gpu, Port, Resources
from .schema import (
    AMOUNT,
    INTERFACE,
    PORT,
    SHORT_NAME,
    a_flag,
    a_host_address,
    a_line,
    a_text,
    matching,
    or_none,
    ruled,
    rules_of,
    whole,
)

EXIT_CODE = or_none(whole(65535, -65535))

# The labels from which a session is known again whose plan is lost.
_NEEDED_LABELS = (label.NAME, label.OWNER, label.MODE, label.PLACEMENT, label.SUBNET)


@dataclass(frozen=True)
class ObservedContainer:
    """A labelled container as its engine reports it."""

    id: str
    session: str
    hostname: str = ""
    state: str = ""
    resources: Resources = field(default_factory=Resources)
    data: Json = field(default_factory=dict, compare=False)

    @classmethod
    def from_json(cls, data: Json) -> ObservedContainer:
        return decoded(cls, {**data, "data": data})

    def label(self, name: str) -> str:
        """The value of a label; empty without it."""
        return str((self.data.get("labels") or {}).get(name, ""))

    @property
    def placement(self) -> Tuple[str, ...]:
        """The agent of every rank of its session, from its label."""
        return tuple(agent for agent, count in json.loads(self.label(label.PLACEMENT)) for dummy in range(count))

    @property
    def ports(self) -> Tuple[Port, ...]:
        """The ports that it publishes, from its label."""
        return tuple(Port.from_json(port) for port in json.loads(self.label(label.PORTS) or "[]"))

    @property
    def describes_session(self) -> bool:
        """Return whether its labels describe its session. Every user of its engine can make one that has only some of them."""
        return all(map(self.label, _NEEDED_LABELS))


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
    """The state of an app, as PID 1 reports it. ``exit_code`` is that of its last run, None before its end."""

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
class RdmaPort(Document):
    """A port of an RDMA device.

    ``fabric``: its network interface is the agent's interface for the fabric. ``host``: it has a RoCE v2 GID for an address of
    the agent.
    """

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


@dataclass(frozen=True)
class GpuUse(Document):
    """What a GPU does: its utilization in percent, and bytes of its memory. A GPU of MIG does not report all of it."""

    id: str = ruled(a_line)
    percent: Optional[int] = ruled(or_none(AMOUNT), None)
    memory: Optional[int] = ruled(or_none(AMOUNT), None)
    capacity: Optional[int] = ruled(or_none(AMOUNT), None)


@dataclass(frozen=True)
class Measured(Document):
    """What a container uses now, with the use of its GPUs."""

    millicpus: int = ruled(AMOUNT)
    memory: int = ruled(AMOUNT)
    gpus: Tuple[GpuUse, ...] = ruled([rules_of(GpuUse)])

    @classmethod
    def sum_of(cls, measured: Iterable[Measured]) -> Measured:
        """The use of several. They may share a GPU."""
        listed = list(measured)
        gpus = {gpu.id: gpu for each in listed for gpu in each.gpus}
        return cls(sum(each.millicpus for each in listed), sum(each.memory for each in listed), tuple(gpus.values()))


def busy_percents(measured: Iterable[Optional[Measured]]) -> List[int]:
    """The utilization of the GPUs that were measured. A GPU that does not report it, as one of MIG, is left out."""
    return [gpu.percent for each in measured if each for gpu in each.gpus if gpu.percent is not None]


def busy_gpus(measured: Iterable[Optional[Measured]]) -> float | None:
    """Their utilization as a number of GPUs; None if none was measured."""
    percents = busy_percents(measured)
    return sum(percents) / 100 if percents else None


def names_of_one_engine(identities: Iterable[Tuple[str, str]]) -> List[List[str]]:
    """The agents that are the same engine, of these names with the identity of their engine. One that is not known is like no other.

    >>> names_of_one_engine([("a", "1"), ("b", ""), ("c", "1"), ("d", ""), ("e", "2")])
    [['a', 'c']]
    """
    found: Dict[str, List[str]] = {}
    for name, identity in identities:
        found.setdefault(identity, []).append(name)
    return [names for identity, names in found.items() if identity and len(names) > 1]


def one_engine(names: Sequence[str]) -> Tuple[str, str]:
    """Return what is wrong with agents that are the same engine, and the remedy.

    >>> one_engine(["a", "b"])
    ('a and b are the same engine', 'remove one of them from the inventory')
    >>> one_engine(["a", "b", "c"])
    ('a, b and c are the same engine', 'keep only one of them in the inventory')
    """
    remedy = "remove one of them from" if len(names) == 2 else "keep only one of them in"
    return f"{', '.join(names[:-1])} and {names[-1]} are the same engine", f"{remedy} the inventory"


# The states of a GPU. No session is placed on a red one.
GREEN, YELLOW, RED = "green", "yellow", "red"


@dataclass(frozen=True)
class GpuHealth(Document):
    """The health of a GPU, and what is wrong with it."""

    id: str = ruled(a_line)
    state: str = ruled(matching("green|yellow|red"))
    reasons: Tuple[str, ...] = ruled([a_line], ())


@dataclass(frozen=True)
class AgentStatus:
    """An agent as the scheduler sees it: capacity after reservations, and what its engine reports.

    ``may_return`` is false if the agent cannot be used and waiting changes nothing: it must be repaired. ``image`` is the reference
    that its report is about. ``image_id`` is empty if the agent does not have that image, and ``image_made`` and ``image_owner`` if
    it was not made of a container of a session.
    """

    name: str
    millicpus: int = 0
    memory: int = 0
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
    identity: str = ""
    swarm: str = ""
    node: str = ""
    manager: bool = False
    managers: Tuple[str, ...] = ()
    routes: Tuple[str, ...] = ()
    needed_addresses: Tuple[str, ...] = ()
    subnets: Tuple[str, ...] = ()
    ports: Tuple[int, ...] = ()
    names: Tuple[str, ...] = ()
    containers: Tuple[ObservedContainer, ...] = ()
    network_sessions: Tuple[str, ...] = ()
    image: str = ""
    image_id: str = ""
    image_made: str = ""
    image_owner: str = ""
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
        return {gpu.id: ", ".join(gpu.reasons) for gpu in self.gpu_health if gpu.state == RED}

    @property
    def groups(self) -> Tuple[str, ...]:
        """The resource groups of the agent; ``group`` has them in one text, separated by commas."""
        return tuple(self.group.split(","))

    @classmethod
    def from_json(cls, data: Json) -> AgentStatus:
        """An agent from its report. Only an active member has a Swarm."""
        engine = data.get("engine") or {}
        swarm = engine.get("swarm") or {}
        joined = swarm if swarm.get("state") == "active" else {}
        networks, capacity, image = data.get("networks") or (), data.get("capacity") or {}, data.get("image") or {}
        found = {
            # The rules of a report know only these parts of it. Anything else there was not checked.
            **{name: capacity.get(name) for name in ("millicpus", "memory", "gpus", "cpu_ids")},
            "publish": data.get("publish") or None,
            "mtu": data.get("mtu") or None,
            "identity": engine.get("identity"),
            "swarm": joined.get("cluster_id"),
            "node": swarm.get("node_id"),
            "manager": joined.get("manager"),
            "managers": joined.get("managers"),
            "subnets": [subnet for network in networks for subnet in network.get("subnets") or ()],
            "network_sessions": [network["session"] for network in networks if network.get("session")],
            "image": image.get("reference"),
            "image_id": image.get("id") if image.get("present") else None,
            **{f"image_{name}": image.get(name) for name in ("made", "owner", "architecture")},
        }
        return decoded(cls, {**data, **found})
