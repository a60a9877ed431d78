# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is booked on each agent, from the labels of the containers and from the store."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from typing import Dict, Iterable, List, Mapping, Sequence

from .._core import states
from .._core.model import Plan, Resources
from .._core.reports import Agent
from .row import End
from .store import Store


def ends_on(store: Store, agents: Iterable[Agent]) -> Dict[str, End]:
    """The ends of the sessions that have ended and have containers on these agents."""
    return store.ends(container.session for agent in agents for container in agent.containers)


def booked_on(agents: Sequence[Agent], ends: Mapping[str, End], plans: Iterable[Plan]) -> Dict[str, List[Resources]]:
    """What is booked on each agent, by its name, from the ends of sessions, by ID, and the plans that hold something.

    It is every labelled container that the end of its session does not include, and every container that the store has placed
    and no engine shows yet.
    """
    booked: Dict[str, Dict[str, Resources]] = {agent.name: {} for agent in agents}
    for agent in agents:
        for observed in agent.containers:
            end = ends.get(observed.session)
            if end is None or not end.includes(observed):
                booked[agent.name][observed.id] = observed.resources
    for plan in plans:
        for container in plan.containers:
            booked.setdefault(container.agent, {}).setdefault(container.id, container.resources)
    return {name: list(resources.values()) for name, resources in booked.items()}


def held_plans(store: Store) -> List[Plan]:
    """The plans of all sessions that hold what they were placed on."""
    return [row.plan for row in store.live(states.HOLDING) if row.plan]
