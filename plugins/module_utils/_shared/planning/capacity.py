# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compute the free capacity of an agent: how many containers of a session it can hold, and the booking of their resources."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Dict, Iterable, List, Mapping, Set, Tuple

from ..constants import BRIDGE_PORTS, SINGLE_NODE
from ..documents.plan import Gpu, Resources
from ..units import show_bytes, show_cpus

# What the idle containers of a session take, each: the engine's shim has 11 threads, and PID 1, sshd and one program are
# processes; the engine keeps six files open. A container takes a port of its bridge and an entry in the neighbours of C(main1).
_LIMITS = (
    ("neighbours", "neighbours (net.ipv4.neigh.default.gc_thresh3)", 1),
    ("processes", "processes (kernel.pid_max)", 14),
    ("files", "open files of the engine (LimitNOFILE)", 6),
)


def kernel_bounds(kernel: Mapping[str, int]) -> Dict[str, Tuple[int, int]]:
    """The limits by name: the amount that the agent has, and the amount that each container takes. Unknown limits are left out."""
    known = {name: (kernel[key], each) for key, name, each in _LIMITS if kernel.get(key)}
    return {"ports of a bridge": (BRIDGE_PORTS, 1), **known}


def kernel_room(bounds: Mapping[str, Tuple[int, int]]) -> int:
    """Return how many containers of a session an agent with these limits can run at most."""
    return min(amount // each for amount, each in bounds.values())


def kernel_shortfall(kernel: Mapping[str, int], count: int) -> str:
    """The first limit that does not suffice for ``count`` containers; empty if all of them do.

    >>> kernel_shortfall({"processes": 32768}, 1000), kernel_shortfall({"processes": 4096}, 300)
    ('', 'needs 4200 processes (kernel.pid_max), has 4096')
    """
    for name, (amount, each) in kernel_bounds(kernel).items():
        if count * each > amount:
            return "needs %d %s, has %d" % (count * each, name, amount)
    return ""


# Sums of fractions of a device are off by less than this.
_WHOLE_TOLERANCE = 1e-9
_SUM_TOLERANCE = 1e-4
# How far a fraction may be from the number of shares that it means: 0.33 is one of three.
_SHARE_TOLERANCE = 0.02
# Red GPUs that a reason names.
_SHOWN_GPUS = 4


@dataclass(frozen=True)
class PerContainer:
    """The resources that every container of a session asks for. ``gpus`` is a whole number, or a fraction below one."""

    millicpus: int
    memory: int
    shm: int = 0
    gpus: float = 0.0
    pinned: bool = False
    fabric: bool = False


@dataclass(frozen=True)
class Demand:
    """The resources that a session requests.

    ``agents`` are the designated agents, and ``policy`` says how strictly they are meant. ``per_agent`` is the largest number of
    containers on an agent; 0 is no limit. ``roles`` are the demands of the roles, and ``role`` names one. ``placed`` are the agents
    that already run containers of the session or role. ``beside`` are the agents that run containers of its other roles.
    ``host``: each container is on an agent of its own, in its network, where ``ports`` must be free.
    """

    size: int
    per_container: PerContainer
    mode: str = SINGLE_NODE
    group: str = "default"
    strategy: str = "pack"
    agents: Tuple[str, ...] = ()
    policy: str = "preferred"
    rdma: bool = False
    per_agent: int = 0
    role: str = ""
    roles: Tuple[Demand, ...] = ()
    placed: Tuple[str, ...] = ()
    beside: Tuple[str, ...] = ()
    host: bool = False
    ports: Tuple[int, ...] = ()

    @property
    def parts(self) -> Tuple[Demand, ...]:
        """The demands of containers that are alike."""
        return self.roles or (self,)

    @property
    def resource_groups(self) -> Set[str]:
        return {part.group for part in self.parts}

    @property
    def most(self) -> int:
        """The largest number of its containers that an agent may hold."""
        return min(self.size, self.per_agent or self.size)


@dataclass
class FreeCapacity:
    """The resources that are free on an agent.

    ``gpus`` maps each device to its free part and its declared number of shares, which is below one for a MIG device: its size.
    ``gpu_memory`` has the memory of devices whose parts are limited. ``red`` maps each device that no session may get to the reason,
    and ``undivided`` is why no session gets a part of one. ``has_fabric``: no other session has its fabric.
    """

    agent: str
    millicpus: int
    memory: int
    gpus: Dict[str, Tuple[float, float]] = field(default_factory=dict)
    cpu_ids: List[int] = field(default_factory=list)
    kernel: Mapping[str, Tuple[int, int]] = field(default_factory=dict)
    red: Mapping[str, str] = field(default_factory=dict)
    gpu_memory: Mapping[str, int] = field(default_factory=dict)
    undivided: str = ""
    has_fabric: bool = True

    def copy(self) -> FreeCapacity:
        return replace(self, gpus=dict(self.gpus), cpu_ids=list(self.cpu_ids))

    def room(self, per_container: PerContainer) -> int:
        """Return how many of these containers fit."""
        if self.millicpus < per_container.millicpus or self.memory < per_container.memory:
            return 0  # most agents of a long queue; the amounts of the kernel are not looked at
        return max(0, min(self._rooms(per_container).values()))

    def shortfall(self, per_container: PerContainer, count: int) -> str:
        """The first resource that does not suffice for ``count`` containers, for people: ``needs 4 CPUs, 1 free``."""
        for slot, room in self._rooms(per_container).items():
            if room < count:
                why = self._why(per_container) if slot == "GPUs" else ""
                return "needs {} {}, {} free".format(*self._needs(slot, per_container, count)) + why
        return ""

    def take(self, per_container: PerContainer) -> Resources:
        """Book one container; the caller has checked that there is room."""
        self.millicpus -= per_container.millicpus
        self.memory -= per_container.memory
        cpuset = ""
        if per_container.pinned:
            count = per_container.millicpus // 1000
            cpuset = ",".join(str(cpu) for cpu in self.cpu_ids[:count])
            del self.cpu_ids[:count]
        return Resources(
            per_container.millicpus,
            per_container.memory,
            per_container.shm,
            tuple(self._take_gpus(per_container.gpus)),
            cpuset,
            per_container.fabric,
        )

    def book(self, resources: Resources) -> None:
        """Book exactly these resources, for example of a placement."""
        self.millicpus -= resources.millicpus
        self.memory -= resources.memory
        self.has_fabric = self.has_fabric and not resources.fabric
        for gpu in resources.gpus:
            part, shares = self.gpus.get(gpu.id, (0.0, 1.0))
            self.gpus[gpu.id] = (max(0.0, round(part - gpu.shares, 9)), shares)
        pinned = parse_cpuset(resources.cpuset)
        if pinned:
            self.cpu_ids = [cpu for cpu in self.cpu_ids if cpu not in pinned]

    def _rooms(self, per_container: PerContainer) -> Dict[str, int]:
        """The resources that are asked for by name, and for how many containers each suffices."""
        rooms = {"CPUs": self.millicpus // per_container.millicpus, "memory": self.memory // per_container.memory}
        if per_container.pinned:
            rooms["unpinned CPUs"] = len(self.cpu_ids) * 1000 // per_container.millicpus
        if per_container.gpus:
            rooms["GPUs"] = self._gpu_room(per_container.gpus)
        return {**rooms, **{name: amount // each for name, (amount, each) in self.kernel.items()}}

    def _needs(self, slot: str, per_container: PerContainer, count: int) -> Tuple[str, str, str]:
        """Return how much ``count`` containers need of a resource, its name, and how much of it is free."""
        if slot in self.kernel:
            amount, each = self.kernel[slot]
            return str(count * each), slot, str(amount)
        if slot == "GPUs":
            # Only what this session can use counts as free: whole devices, or parts of those that are shared.
            free = (
                len(self._whole_gpus())
                if per_container.gpus >= 1
                else self._gpu_room(per_container.gpus) * per_container.gpus
            )
            return "%g" % (count * per_container.gpus), slot, f"{free:g}"
        if slot == "memory":
            return show_bytes(count * per_container.memory), slot, show_bytes(max(0, self.memory))
        free_cpus = self.millicpus if slot == "CPUs" else len(self.cpu_ids) * 1000
        return show_cpus(count * per_container.millicpus), slot, show_cpus(max(0, free_cpus))

    def _why(self, per_container: PerContainer) -> str:
        """Why GPUs are not free that no session has: red ones, and that an agent gives no parts."""
        red = [f"{gpu} is red: {reason}" for gpu, reason in sorted(self.red.items())]
        shown = red[:_SHOWN_GPUS] + (
            ["and %d more are red" % (len(red) - _SHOWN_GPUS)] if len(red) > _SHOWN_GPUS else []
        )
        shown += [self.undivided] if self.undivided and per_container.gpus < 1 else []
        return f" ({'; '.join(shown)})" if shown else ""

    def _gpu_room(self, gpus: float) -> int:
        if gpus >= 1:
            return len(self._whole_gpus()) // int(gpus)
        return sum(_times(part, gpus, shares) for part, shares in self.gpus.values())

    def _whole_gpus(self) -> List[str]:
        return [device for device, (part, _shares) in self.gpus.items() if part > 1 - _WHOLE_TOLERANCE]

    def _take_gpus(self, gpus: float) -> List[Gpu]:
        if gpus >= 1:
            chosen, booked = self._whole_gpus()[: int(gpus)], 1.0
        elif gpus > 0:
            # The most used device that still has the part: unused devices stay free for containers that need whole ones. Of MIG
            # devices, it is the smallest that suffices.
            fitting = [(part, device) for device, (part, shares) in self.gpus.items() if _times(part, gpus, shares)]
            chosen = [min(fitting)[1]]
            booked = _part_of(gpus, self.gpus[chosen[0]][1])
        else:
            return []
        for device in chosen:
            part, shares = self.gpus[device]
            self.gpus[device] = (round(part - booked, 9), shares)
        return [Gpu(device, booked, self._limit(device, booked)) for device in chosen]

    def _limit(self, device: str, part: float) -> int:
        """The memory that a part of a device can use: that of a MIG device is all its own."""
        if part >= 1:
            return 0
        known = self.gpu_memory.get(device, 0)
        return known if self.gpus[device][1] < 1 else int(known * part)


def held_in_all(booked: Iterable[Resources]) -> Tuple[int, int, float]:
    """Return what containers hold together: thousandths of a CPU, bytes of memory, GPUs."""
    listed = list(booked)
    gpus = sum(gpu.shares for resources in listed for gpu in resources.gpus)
    return sum(one.millicpus for one in listed), sum(one.memory for one in listed), gpus


def _shares_of(fraction: float, shares: float) -> int:
    """Return how many shares of the device a fraction means; 0 if it is near no number of shares, or the device has none.

    A third cannot be written exactly, so a fraction is rounded to whole shares.

    >>> [_shares_of(fraction, 3) for fraction in (0.33, 0.3333, 0.67, 0.5)]
    [1, 1, 2, 0]
    """
    count = round(fraction * shares)
    return count if shares > 1 and abs(fraction - count / shares) <= _SHARE_TOLERANCE else 0


def _part_of(fraction: float, shares: float) -> float:
    """The part of a device that a container gets that asks for a fraction; 0 if the device has no such part.

    >>> [_part_of(fraction, 3) for fraction in (0.67, 0.5)], [_part_of(fraction, 0.43) for fraction in (0.1, 0.44, 0.5)]
    ([0.6666666666666666, 0.0], [0.43, 0.43, 0.0])
    """
    if shares < 1:
        return shares if fraction <= shares + _SHARE_TOLERANCE else 0.0
    return _shares_of(fraction, shares) / shares


def _times(part: float, fraction: float, shares: float) -> int:
    """Return how many such fractions the free part of a device holds."""
    each = _part_of(fraction, shares)
    return int(part / each + _SUM_TOLERANCE) if each else 0


def parse_cpuset(text: str) -> Set[int]:
    """The CPUs of a text such as ``0-2,5``."""
    cpus: Set[int] = set()
    for part in filter(None, text.split(",")):
        first, _dash, last = part.partition("-")
        cpus.update(range(int(first), int(last or first) + 1))
    return cpus
