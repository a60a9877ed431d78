# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What each resource group has, and what an owner may still have of it."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from typing import Iterable, List, Mapping, Sequence

from .._core.documents import Json
from .._planning.policy import SitePolicy
from .._planning.policy_rules import Use, quota_left

_NAMES = ("millicpus", "memory", "gpus")
_NOTHING = dict.fromkeys(_NAMES, 0)


def list_groups(agents: Sequence[Json], owner: str | None) -> List[Json]:
    """Every resource group of the agents of a list: its capacity, what is allocated of it, and the owner's part of that.

    An agent that cannot be reached adds nothing.
    """
    listed = []
    for group in sorted({name for agent in agents for name in _groups_of(agent)}):
        mine = [agent for agent in agents if group in _groups_of(agent)]
        usable = [agent for agent in mine if agent["reachable"]]
        listed.append(
            {
                "group": group,
                "agents": len(mine),
                "capacity": _sum(agent["capacity"] for agent in usable),
                "used": _sum(agent["used"] for agent in usable),
                "own": _sum(agent["owners"].get(owner, _NOTHING) for agent in usable) if owner else None,
            }
        )
    return listed


def available(policy: SitePolicy, use: Mapping[str, Use], agents: Sequence[Json], owner: str) -> Json:
    """What an owner may still have now: what is free in the permitted groups, at most what the quotas leave."""
    permitted = policy.limits_for(owner, "resource_groups")
    usable = [
        agent
        for agent in agents
        if agent["reachable"]
        and agent["schedulable"]
        and any(all(group in names for names in permitted) for group in _groups_of(agent))
    ]
    free = _sum({name: max(0, agent["capacity"][name] - agent["used"][name]) for name in _NAMES} for agent in usable)
    left = quota_left(policy, use, owner)
    if not all(left.get(name, 1) for name in ("sessions", "containers")):
        return dict(_NOTHING)
    return {name: min(free[name], left.get(name, free[name])) for name in _NAMES}


def _groups_of(agent: Json) -> List[str]:
    return str(agent["group"]).split(",")


def _sum(amounts: Iterable[Json]) -> Json:
    listed = list(amounts)
    return {name: round(sum(each[name] for each in listed), 3) for name in _NAMES}
