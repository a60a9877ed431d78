# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is booked on each agent, told from the engines' labels and from the store."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from typing import Dict, Iterable, List, Mapping, Sequence

from ansible_collections.cluster.compute.plugins.module_utils._core import states as _states
from ansible_collections.cluster.compute.plugins.module_utils._core.model import Plan, Resources
from ansible_collections.cluster.compute.plugins.module_utils._core.reports import Agent
from ansible_collections.cluster.compute.plugins.module_utils._head.store import Store


def bookings(store: Store, agents: Sequence[Agent]) -> Dict[str, List[Resources]]:
    """What is booked on each agent: every labelled container of a session that has not ended, and what the store has
    placed but no engine shows yet."""
    return booked_on(agents, store.states(), held_plans(store))


def booked_on(agents: Sequence[Agent], states: Mapping[str, str], plans: Iterable[Plan]) -> Dict[str, List[Resources]]:
    booked: Dict[str, Dict[str, Resources]] = {agent.name: {} for agent in agents}
    for agent in agents:
        for live in agent.containers:
            if states.get(live.session) not in _states.ENDED:
                booked[agent.name][live.id] = live.resources
    for plan in plans:
        for container in plan.containers:
            booked.setdefault(container.agent, {}).setdefault(container.id, container.resources)
    return {name: list(one.values()) for name, one in booked.items()}


def held_plans(store: Store) -> List[Plan]:
    """The plans of all sessions that hold what they were placed on."""
    return [Plan.from_json(row.plan) for row in store.live(_states.HOLDING) if row.plan]
