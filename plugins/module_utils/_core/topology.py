# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The members of a session: roles, indexes, hostnames, ranks and local ranks."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, List, Sequence

MAIN = "main"
SUB = "sub"


@dataclass(frozen=True)
class Member:
    """A place in the session: ``rank`` counts from 0 over the whole session, ``index`` from 1 within the role."""

    role: str
    index: int
    rank: int

    @property
    def hostname(self) -> str:
        return "%s%d" % (self.role, self.index)


def members(size: int) -> List[Member]:
    """All members in rank order: main1, sub1, sub2 … (numeric: sub9 before sub10).

    >>> [member.hostname for member in members(3)]
    ['main1', 'sub1', 'sub2']
    """
    return [Member(MAIN, 1, 0)] + [Member(SUB, index, index) for index in range(1, size)]


def rank_of(hostname: str) -> int:
    """The rank of a hostname: the inverse of ``members``.

    >>> rank_of("main1"), rank_of("sub10")
    (0, 10)
    """
    return 0 if hostname.startswith(MAIN) else int(hostname[len(SUB) :])


def replicas(roles: Sequence[str]) -> str:
    """The number of containers of each role, in the order in which the roles appear.

    >>> replicas(["main", "sub", "sub"])
    'main:1,sub:2'
    """
    counts: Dict[str, int] = {}
    for role in roles:
        counts[role] = counts.get(role, 0) + 1
    return ",".join("%s:%d" % pair for pair in counts.items())


def local_ranks(agents: Sequence[str]) -> List[int]:
    """The place of each rank among the ranks on the same agent, given every rank's agent in rank order.

    >>> local_ranks(["a", "a", "b", "b"])
    [0, 1, 0, 1]
    """
    seen: Dict[str, int] = {}
    result = []
    for agent in agents:
        result.append(seen.get(agent, 0))
        seen[agent] = result[-1] + 1
    return result
