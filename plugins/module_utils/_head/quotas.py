# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What every owner has now, against the quotas of the site's policy."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from typing import Collection, Dict, Iterable, List, Sequence, Tuple

from ansible_collections.cluster.compute.plugins.module_utils._core import states
from ansible_collections.cluster.compute.plugins.module_utils._core.model import Resources
from ansible_collections.cluster.compute.plugins.module_utils._core.reports import Agent
from ansible_collections.cluster.compute.plugins.module_utils._head.row import Row
from ansible_collections.cluster.compute.plugins.module_utils._head.store import Store
from ansible_collections.cluster.compute.plugins.module_utils._planning.policy import SitePolicy
from ansible_collections.cluster.compute.plugins.module_utils._planning.policy_rules import Use, over_quota
from ansible_collections.cluster.compute.plugins.module_utils._planning.request import Request

# The ID of a session, its owner, and what it holds.
SessionUse = Tuple[str, str, Use]


def use_by_owner(store: Store, agents: Sequence[Agent]) -> Dict[str, Use]:
    """What the sessions of each owner hold."""
    return by_owner(uses(store, agents))


def uses(store: Store, agents: Sequence[Agent]) -> List[SessionUse]:
    """What every session holds: by its plan, or by the labels of its containers if it has none."""
    return [(row.id, row.owner, Use.of_resources(_resources(row, agents))) for row in store.live(states.HOLDING)]


def by_owner(found: Iterable[SessionUse], besides: Collection[str] = ()) -> Dict[str, Use]:
    """The sums of all sessions of each owner, besides some."""
    use: Dict[str, Use] = {}
    for session, owner, held in found:
        if session not in besides:
            use[owner] = use.get(owner, Use()).plus(held)
    return use


def _resources(row: Row, agents: Iterable[Agent]) -> Iterable[Resources]:
    if row.plan:
        return [container.resources for container in row.plan.containers]
    return [one.resources for agent in agents for one in agent.containers if one.session == row.id]


class Quotas:
    """The quotas during one decision: sessions that room is kept for count as well."""

    def __init__(self, policy: SitePolicy, use: Dict[str, Use]) -> None:
        self._policy = policy
        self._use = dict(use)

    def count(self, request: Request) -> None:
        self._use[request.owner] = self._use.get(request.owner, Use()).plus(Use.of_request(request))

    def over(self, request: Request) -> str:
        """Why a session must wait for the end of others; empty if it need not."""
        return over_quota(self._policy, self._use, request)
