# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is free on an agent: how many containers of a kind it can hold, and taking their share of it."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, Iterable, List, Set, Tuple

from ansible_collections.cluster.compute.plugins.module_utils._core.model import Gpu, Resources
from ansible_collections.cluster.compute.plugins.module_utils._core.reports import Agent
from ansible_collections.cluster.compute.plugins.module_utils._core.units import show_bytes, show_cpus

_TINY = 1e-9
# How far a fraction may be from the share that it means, and what sums of shares are off by.
_NEAR = 0.02
_ROUNDED = 1e-4


@dataclass(frozen=True)
class PerContainer:
    """What every container of a session asks for. ``gpus`` is a whole number, or a fraction below one."""

    millicpus: int
    memory: int
    shm: int = 0
    gpus: float = 0.0
    pinned: bool = False


@dataclass
class FreeCapacity:
    """What an agent has left. ``gpus`` maps each device to its free part and its declared number of shares."""

    agent: str
    millicpus: int
    memory: int
    gpus: Dict[str, Tuple[float, float]] = field(default_factory=dict)
    cpu_ids: List[int] = field(default_factory=list)

    def copy(self) -> FreeCapacity:
        """The same again, to book on without a trace."""
        return FreeCapacity(self.agent, self.millicpus, self.memory, dict(self.gpus), list(self.cpu_ids))

    def room(self, each: PerContainer) -> int:
        """How many such containers fit."""
        return max(0, min(self._rooms(each).values()))

    def shortfall(self, each: PerContainer, count: int) -> str:
        """The first slot that cannot hold ``count`` containers, in the user's words: ``needs 4 CPUs, 1 free``."""
        for slot, room in self._rooms(each).items():
            if room < count:
                return "needs %s %s, %s free" % self._needs(slot, each, count)
        return ""

    def take(self, each: PerContainer) -> Resources:
        """Book one container; the caller has checked that there is room."""
        self.millicpus -= each.millicpus
        self.memory -= each.memory
        cpuset = ""
        if each.pinned:
            count = each.millicpus // 1000
            cpuset = ",".join(str(cpu) for cpu in self.cpu_ids[:count])
            del self.cpu_ids[:count]
        return Resources(each.millicpus, each.memory, each.shm, tuple(self._take_gpus(each.gpus)), cpuset)

    def _rooms(self, each: PerContainer) -> Dict[str, int]:
        """Every slot that is asked for, and how many containers it allows."""
        rooms = {"CPUs": self.millicpus // each.millicpus, "memory": self.memory // each.memory}
        if each.pinned:
            rooms["unpinned CPUs"] = len(self.cpu_ids) * 1000 // each.millicpus
        if each.gpus:
            rooms["GPUs"] = self._gpu_room(each.gpus)
        return rooms

    def _needs(self, slot: str, each: PerContainer, count: int) -> Tuple[str, str, str]:
        """What ``count`` containers need of a slot, its name, and what is free of it."""
        if slot == "GPUs":
            # Only what this session can use counts as free: whole devices, or parts of those that are shared.
            free = len(self._whole_gpus()) if each.gpus >= 1 else self._gpu_room(each.gpus) * each.gpus
            return "%g" % (count * each.gpus), slot, "%g" % free
        if slot == "memory":
            return show_bytes(count * each.memory), slot, show_bytes(max(0, self.memory))
        free_cpus = self.millicpus if slot == "CPUs" else len(self.cpu_ids) * 1000
        return show_cpus(count * each.millicpus), slot, show_cpus(max(0, free_cpus))

    def _gpu_room(self, gpus: float) -> int:
        if gpus >= 1:
            return len(self._whole_gpus()) // int(gpus)
        return sum(_times(part, gpus, shares) for part, shares in self.gpus.values())

    def _whole_gpus(self) -> List[str]:
        return [device for device, (part, _shares) in self.gpus.items() if part > 1 - _TINY]

    def _take_gpus(self, gpus: float) -> List[Gpu]:
        if gpus >= 1:
            chosen, booked = self._whole_gpus()[: int(gpus)], 1.0
        elif gpus > 0:
            # The fullest device that still has the part: whole devices stay whole for those who need them.
            fitting = [(part, device) for device, (part, shares) in self.gpus.items() if _times(part, gpus, shares)]
            chosen = [min(fitting)[1]]
            declared = self.gpus[chosen[0]][1]
            booked = _shares_of(gpus, declared) / declared
        else:
            return []
        for device in chosen:
            part, shares = self.gpus[device]
            self.gpus[device] = (round(part - booked, 9), shares)
        return [Gpu(device, booked) for device in chosen]


def _shares_of(fraction: float, shares: float) -> int:
    """How many of the device's shares a fraction means; 0 where it is not near any number of them, or the device is whole.

    Nobody writes a third exactly.

    >>> [_shares_of(fraction, 3) for fraction in (0.33, 0.3333, 0.67, 0.5)]
    [1, 1, 2, 0]
    """
    count = round(fraction * shares)
    return count if shares > 1 and abs(fraction - count / shares) <= _NEAR else 0


def _times(part: float, fraction: float, shares: float) -> int:
    """How many such fractions the free part of a device holds, counted in whole shares."""
    wanted = _shares_of(fraction, shares)
    return int(part * shares + _ROUNDED) // wanted if wanted else 0


def parse_cpuset(text: str) -> Set[int]:
    """
    >>> sorted(parse_cpuset("0-2,5"))
    [0, 1, 2, 5]
    """
    cpus: Set[int] = set()
    for part in filter(None, text.split(",")):
        first, _dash, last = part.partition("-")
        cpus.update(range(int(first), int(last or first) + 1))
    return cpus


def free_of(agent: Agent, bookings: Iterable[Resources]) -> FreeCapacity:
    """An agent's capacity without what is booked on it."""
    free = FreeCapacity(agent.name, agent.millicpus, agent.memory, {gpu.id: (1.0, gpu.shares) for gpu in agent.gpus})
    pinned: Set[int] = set()
    for booked in bookings:
        free.millicpus -= booked.millicpus
        free.memory -= booked.memory
        pinned |= parse_cpuset(booked.cpuset)
        for gpu in booked.gpus:
            part, shares = free.gpus.get(gpu.id, (0.0, 1.0))
            free.gpus[gpu.id] = (max(0.0, round(part - gpu.shares, 9)), shares)
    free.cpu_ids = [cpu for cpu in agent.cpu_ids if cpu not in pinned]
    return free
