# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Choose the hosts that carry out a plan, and how long each step may take.

The conductor reads these values; it computes none of them itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Iterable, Sequence, Tuple

from ...module_utils._shared.documents.plan import Plan
from ...module_utils._shared.documents.report import AgentReport, ImageState

if TYPE_CHECKING:
    from ...module_utils._shared.planning.request import Request

# Seconds that the removal of a network waits for the engines to let go of it. An overlay cannot be removed
# completely while an agent is lost, so the removal does not wait long then.
NETWORK_PATIENCE = 30
NETWORK_PATIENCE_WITHOUT_AGENT = 3


def network_host(plan: Plan, agents: Sequence[AgentReport], head: str) -> str:
    """The host that creates and removes the network of a plan.

    A bridge belongs to the one agent, and the network of the agents is not created. An overlay needs a manager of its agents' Swarm:
    one that has containers of the plan if possible, and of these the head if it is one, else the first that answers, and the head
    if none does.
    """
    if plan.network.driver != "overlay":
        return plan.main.agent
    swarm = next((agent.swarm for agent in agents if agent.name == plan.main.agent), "")
    managers = [agent.name for agent in agents if agent.reachable and agent.place.manager and agent.swarm == swarm]
    managers = [name for name in managers if name in plan.agents] or managers
    return head if head in managers or not managers else managers[0]


def unreachable_agents(agents: Iterable[AgentReport], failed_removals: Iterable[str] = ()) -> Tuple[str, ...]:
    """The hosts that do not answer, and those on which a removal failed."""
    unreachable = [agent.name for agent in agents if not agent.reachable]
    return tuple(dict.fromkeys([*unreachable, *failed_removals]))


def network_patience(lost: Sequence[str], has_waited: bool = False) -> int:
    """Seconds that the removal of a network may wait for its endpoints. The endpoints of a lost agent stay."""
    return NETWORK_PATIENCE_WITHOUT_AGENT if lost or has_waited else NETWORK_PATIENCE


def image_is_settled(plan: Plan, agents: Sequence[AgentReport], pull: str) -> bool:
    """Return whether every agent of the session has the image of the plan, and the same one, and none is to pull it.

    An agent that was lost during a commit has a former image: no other agent that the session could use may have a newer one.
    """
    needing = plan.images.get(plan.session.image, ())
    used = [agent for agent in agents if agent.name in needing]
    first = used[0].image if used else ImageState()
    rivals = [one.image for one in agents if one.image.reference == plan.session.image and is_permitted(plan, one)]
    if first.made and any(one.owner == first.owner and one.made > first.made for one in rivals):
        return False
    ids = {agent.image.id for agent in used}
    references = {agent.image.reference for agent in used}
    is_complete = len(used) == len(needing) and "" not in ids
    return pull != "always" and is_complete and len(ids) == 1 and references == {plan.session.image}


def is_permitted(plan: Plan, agent: AgentReport) -> bool:
    """Return whether an agent has containers of the session, or is in one of its resource groups: others decide nothing about it."""
    groups = {plan.session.group, *(role.group for role in plan.session.roles)}
    return agent.name in plan.agents or not groups.isdisjoint(agent.groups)


def lease_seconds(request: Request, agents: Iterable[AgentReport], launch_timeout: int) -> int:
    """Seconds for which a placement is kept for its controller: all that the launch may wait for.

    ``launch_timeout`` covers the launch itself. What is stopped before it, or after its failure, has its grace. A bootstrap script
    adds its timeout, and so does each image that an agent may pull: another operator must not take such a launch for lost. No
    report is about the images of roles.
    """
    may_pull = request.pull == "always" or any(agent.reachable and not agent.image.id for agent in agents)
    of_roles = {part.image for part in request.parts} - {request.image}
    return (
        launch_timeout
        + request.grace
        + (request.bootstrap_timeout if request.bootstrap else 0)
        + request.pull_timeout * (may_pull + len(of_roles)) * (request.pull != "never")
        + sum(request.apps_timeout for role in request.roles for waits in (role.ready, role.apps) if waits)
        + (request.apps_timeout if any(app.command for app in request.apps) else 0)
    )
