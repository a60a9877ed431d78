# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a decision of the head depends on."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Collection, Mapping, Tuple

from .._core.documents import Json
from .._core.reports import Agent
from .._planning.policy import SitePolicy
from .._planning.queue import Policy
from .row import Requester


@dataclass(frozen=True)
class Context:
    """What a decision depends on: the agents' reports, who asks, and when.

    ``now`` is in seconds since the epoch, ``lease`` in seconds. ``takeover`` is the launch of a controller that is known
    to be gone. ``site`` is the policy of the site. ``kept`` is the ID of the session that the controller's folder of this name
    belongs to, if there is one. ``requester`` is the login of this process on the head.
    """

    agents: Tuple[Agent, ...]
    holder: Json
    now: float
    policy: Policy = field(default_factory=Policy)
    lease: float = 600.0
    takeover: str = ""
    kept: str = ""
    site: SitePolicy = field(default_factory=SitePolicy)
    requester: Requester = field(default_factory=Requester.of_this_process)

    @property
    def taken_names(self) -> Mapping[str, Collection[str]]:
        """The names that containers without a session have on each agent."""
        return {agent.name: agent.names for agent in self.agents}


def queue_rules(site: SitePolicy, policy: str, age_bound: float) -> Policy:
    """How the queue is gone through: as the policy of the site says, else as the caller does."""
    bound = age_bound if site.queue.age_bound is None else site.queue.age_bound
    return Policy(site.queue.policy or policy, float(bound), site.queue)
