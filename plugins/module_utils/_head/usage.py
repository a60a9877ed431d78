# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who has how much: what the sessions of each owner hold, on all agents and on each of them."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from collections import Counter
from typing import Dict, Iterable, List, Sequence, Tuple

from .._core import states
from .._core.constants import LABEL_SESSION
from .._core.documents import Json
from .._core.model import Resources
from .._core.reports import Agent
from .bookings import ends_on
from .row import Row
from .store import Store

# What is booked, by agent and owner.
Holdings = Dict[str, Dict[str, List[Resources]]]


def holdings(store: Store, agents: Sequence[Agent]) -> Holdings:
    """What each owner holds on each agent: containers of sessions that have not ended, and those that a launch will create."""
    ends = ends_on(store, agents)
    found: Dict[str, Tuple[str, str, Resources]] = {}
    for agent in agents:
        for container in agent.containers:
            end = ends.get(container.session)
            if end is None or not end.includes(container):
                owner = str((container.data.get("labels") or {}).get(LABEL_SESSION + ".owner", ""))
                found[container.id] = (agent.name, owner, container.resources)
    for row in store.live(states.HOLDING):
        for planned in row.plan.containers if row.plan else ():
            found.setdefault(planned.id, (planned.agent, row.owner, planned.resources))
    booked: Holdings = {agent.name: {} for agent in agents}
    for name, owner, resources in found.values():
        booked.setdefault(name, {}).setdefault(owner, []).append(resources)
    return booked


def amounts(booked: Iterable[Resources]) -> Json:
    """The sum of what containers hold."""
    listed = list(booked)
    return {
        "millicpus": sum(resources.millicpus for resources in listed),
        "memory": sum(resources.memory for resources in listed),
        "gpus": round(sum(gpu.shares for resources in listed for gpu in resources.gpus), 3),
    }


def list_owners(rows: Sequence[Row], held: Holdings, asked: str | None = None) -> List[Json]:
    """Every owner of a live session, and the one that is asked for, by name: sessions, containers and resources."""
    owners = {row.owner for row in rows} | {owner for booked in held.values() for owner in booked}
    owners |= {asked} if asked else set()
    waiting = Counter(row.owner for row in rows if row.state == states.PENDING)
    placed = Counter(row.owner for row in rows if row.state != states.PENDING)
    listed = []
    for owner in sorted(owners):
        mine = [resources for booked in held.values() for resources in booked.get(owner, ())]
        listed.append(
            {
                "owner": owner,
                "sessions": placed[owner],
                "waiting": waiting[owner],
                "containers": len(mine),
                "used": amounts(mine),
            }
        )
    return listed
