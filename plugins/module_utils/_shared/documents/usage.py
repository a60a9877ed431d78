# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The use of resources: amounts, the rows of agents, resource groups and owners in a list, and the samples over time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Iterable, Mapping, Optional, Tuple

from ..codec import Document, Number
from .report import GpuHealth, GpuSharing, Measured
from .schema import AGENT, AMOUNT, ID, a_flag, a_line, a_number, a_text, by_name, or_none, ruled, rules_of

_MAYBE = or_none(a_number)


@dataclass(frozen=True)
class Amounts(Document):
    """Thousandths of a CPU, bytes of memory, and GPUs."""

    millicpus: Number = ruled(a_number)
    memory: Number = ruled(a_number)
    gpus: Number = ruled(a_number)

    @classmethod
    def sum_of(cls, amounts: Iterable[Amounts]) -> Amounts:
        listed = list(amounts)
        return cls(
            sum(one.millicpus for one in listed),
            sum(one.memory for one in listed),
            round(sum(one.gpus for one in listed), 3),
        )


NO_AMOUNTS = Amounts(0, 0, 0)


@dataclass(frozen=True)
class Quota(Document):
    """The highest amounts at a time. The document has only those that have a limit."""

    sessions: Optional[Number] = ruled(_MAYBE, None)
    containers: Optional[Number] = ruled(_MAYBE, None)
    millicpus: Optional[Number] = ruled(_MAYBE, None)
    memory: Optional[Number] = ruled(_MAYBE, None)
    gpus: Optional[Number] = ruled(_MAYBE, None)

    @property
    def written(self) -> Mapping[str, Any]:
        return {name: limit for name, limit in vars(self).items() if limit is not None}

    def most(self, amounts: Amounts, besides: Amounts = NO_AMOUNTS) -> Amounts:
        """These amounts, at most ``besides`` and what the quota permits."""
        return Amounts(
            _most(amounts.millicpus, besides.millicpus, self.millicpus),
            _most(amounts.memory, besides.memory, self.memory),
            _most(amounts.gpus, besides.gpus, self.gpus),
        )


def _most(amount: Number, besides: Number, limit: Optional[Number]) -> Number:
    return amount if limit is None else min(amount, besides + limit)


_AMOUNTS = rules_of(Amounts)


@dataclass(frozen=True)
class AgentView(Document):
    """An agent: its capacity, with GPUs as their number, and what is booked on it, in all and by owner.

    A red GPU is not ``free``. ``measured`` is None if nothing was measured.
    """

    name: str = ruled(AGENT)
    capacity: Amounts = ruled(_AMOUNTS)
    used: Amounts = ruled(_AMOUNTS)
    free: Amounts = ruled(_AMOUNTS)
    group: str = ruled(a_line, "default")
    architecture: str = ruled(a_line, "")
    reachable: bool = ruled(a_flag, True)
    reason: str = ruled(a_text, "")
    schedulable: bool = ruled(a_flag, True)
    owners: Mapping[str, Amounts] = ruled(by_name(a_line, _AMOUNTS), dict)
    gpu_health: Tuple[GpuHealth, ...] = ruled([rules_of(GpuHealth)], ())
    gpu_sharing: GpuSharing = ruled(rules_of(GpuSharing), GpuSharing)
    measured: Optional[Measured] = ruled(or_none(rules_of(Measured)), None)

    @property
    def groups(self) -> Tuple[str, ...]:
        return tuple(self.group.split(","))


@dataclass(frozen=True)
class GroupView(Document):
    """A resource group: what is booked of its capacity. ``own`` is the part of an owner, and ``own_most`` what the owner may have."""

    group: str = ruled(a_line)
    agents: int = ruled(ID)
    capacity: Amounts = ruled(_AMOUNTS)
    used: Amounts = ruled(_AMOUNTS)
    own: Optional[Amounts] = ruled(or_none(_AMOUNTS), None)
    own_most: Optional[Amounts] = ruled(or_none(_AMOUNTS), None)


@dataclass(frozen=True)
class OwnerView(Document):
    """An owner: what the owner's sessions hold, what a policy allows, and what the owner may still have."""

    owner: str = ruled(a_line)
    sessions: int = ruled(ID)
    waiting: int = ruled(ID)
    containers: int = ruled(AMOUNT)
    used: Amounts = ruled(_AMOUNTS)
    allowed: Quota = ruled(rules_of(Quota), Quota)
    available: Amounts = ruled(_AMOUNTS, NO_AMOUNTS)


@dataclass(frozen=True)
class SampledUse(Document):
    """The use of all agents at a time. ``gpu_percent`` is the mean of their GPUs."""

    millicpus: Number = ruled(a_number)
    memory: Number = ruled(a_number)
    gpu_percent: Optional[Number] = ruled(or_none(a_number), None)


@dataclass(frozen=True)
class Sample(Document):
    """The sums over the agents that answer, and the number of sessions that are live and that wait."""

    time: Number = ruled(a_number)
    capacity: Amounts = ruled(_AMOUNTS)
    used: Amounts = ruled(_AMOUNTS)
    measured: SampledUse = ruled(rules_of(SampledUse))
    live: int = ruled(ID)
    waiting: int = ruled(ID)
