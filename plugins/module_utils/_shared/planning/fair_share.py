# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ledger of what owners have held, their shares of it, and the order of the queue by several factors."""

from __future__ import annotations

import math
from datetime import datetime, timezone
from typing import Dict, Iterable, Iterator, List, Mapping, NamedTuple, Set, Tuple

from ..codec import Json
from .policy import QueueRules

_GIB = float(1 << 30)


class Holding(NamedTuple):
    """A session's resources for a time, in seconds since the epoch. ``ended`` is None while it holds it.

    A decision reads those of months: a tuple is made in a fifth of the time of a frozen dataclass.
    """

    session: str
    owner: str
    began: float
    ended: float | None
    millicpus: int
    memory: int
    gpus: float

    def seconds(self, now: float, first: float = 0.0, last: float = float("inf")) -> float:
        """The part of the time that lies between two moments, up to now."""
        return max(0.0, min(now if self.ended is None else self.ended, last) - max(self.began, first))


def usage(holdings: Iterable[Holding], groups: Mapping[str, Iterable[str]], now: float) -> List[Json]:
    """A line for each month and owner, and for each month and group of owners, oldest first.

    ``groups`` maps groups to their owners. Months are those of UTC.
    """
    sums: Dict[Tuple[str, str, str], List[float]] = {}
    seen: Dict[Tuple[str, str, str], Set[str]] = {}
    for holding in holdings:
        keys = [("owner", holding.owner)] + [
            ("group", name) for name, owners in groups.items() if holding.owner in owners
        ]
        each = (holding.millicpus / 1000.0, holding.memory / _GIB, holding.gpus)
        for month, first, last in _months(holding.began, now if holding.ended is None else holding.ended):
            hours = holding.seconds(now, first, last) / 3600
            for key in ((month, *whose) for whose in keys):
                sums[key] = [total + amount * hours for total, amount in zip(sums.get(key, [0.0] * 3), each)]
                seen.setdefault(key, set()).add(holding.session)
    names = ("cpu_hours", "memory_gib_hours", "gpu_hours")
    return [
        {
            **dict(zip(("month", "kind", "name"), key)),
            "sessions": len(seen[key]),
            **{name: round(total, 3) for name, total in zip(names, sums[key])},
        }
        for key in sorted(sums, key=lambda key: (key[0], key[1] == "group", key[2]))
    ]


def _months(began: float, ended: float) -> Iterator[Tuple[str, float, float]]:
    """The months that a time touches, with their first and last moment."""
    start = datetime.fromtimestamp(began, timezone.utc).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    while True:
        after = start.replace(year=start.year + start.month // 12, month=start.month % 12 + 1)
        yield "%04d-%02d" % (start.year, start.month), start.timestamp(), after.timestamp()
        if after.timestamp() >= ended:
            return
        start = after


def decayed_use(holdings: Iterable[Holding], half_life: float, now: float) -> Dict[str, float]:
    """Return what each owner has used, in CPU-seconds, of which half is forgotten after the half-life.

    A GPU and the memory beside it count by what makes them scarce: a GPU as ten CPUs, 8 GiB of memory as a CPU; the largest of
    the three counts.
    """
    use: Dict[str, float] = {}
    rate = half_life / math.log(2.0)
    for one in holdings:
        weight = max(one.millicpus / 1000.0, one.memory / _GIB / 8.0, 10.0 * one.gpus)
        begun, over = max(0.0, now - one.began), 0.0 if one.ended is None else max(0.0, now - one.ended)
        # The integral of 2 ** (-age / half_life) over the time that it was held.
        held = rate * (2.0 ** (-over / half_life) - 2.0 ** (-begun / half_life))
        use[one.owner] = use.get(one.owner, 0.0) + weight * held
    return use


def fairness(use: Mapping[str, float], owners: Iterable[str], rules: QueueRules) -> Dict[str, float]:
    """A factor from 0 to 1 for each owner: 1 for an owner who has used nothing, a half at the owner's share, less above it.

    An owner without a share in the rules has the share 1. The shares of all owners that have used something or wait add up.
    """
    known = sorted({*owners, *use})
    shares = {owner: rules.shares.get(owner, 1.0) for owner in known}
    total_use, total_shares = sum(use.values()), sum(shares.values())
    if not total_use:
        return dict.fromkeys(known, 1.0)
    return {owner: 2.0 ** -((use.get(owner, 0.0) / total_use) / (shares[owner] / total_shares)) for owner in known}


def score(priority: int, waited: float, fair: float, size: float, rules: QueueRules) -> float:
    """The rank of a waiting session: the weighted sum of its factors, each from 0 to 1. The highest comes first."""
    age = min(1.0, max(0.0, waited) / rules.age_limit)
    weighed = rules.priority_weight * priority / 100.0 + rules.age_weight * age
    return weighed + rules.share_weight * fair + rules.size_weight * min(1.0, size)
