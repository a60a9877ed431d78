# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a plan is carried out: which hosts act, what is known of them, and how long each step may take.

The conductor reads these values; it computes none of them itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Iterable, Sequence, Tuple

from .._core.documents import Json
from .._core.model import Plan

if TYPE_CHECKING:
    from .request import Request

# Seconds that the removal of a network waits for the engines to let go of it. An overlay cannot be removed
# completely while an agent is lost, so the removal does not wait long then.
NETWORK_PATIENCE = 30
NETWORK_PATIENCE_WITHOUT_AGENT = 3


@dataclass(frozen=True)
class AgentStatus:
    """What decides about an agent's part in a launch: a part of its report.

    ``swarm`` is the ID of its Swarm, empty if it is in none. ``groups`` are its resource groups. ``image`` is the reference that its
    report is about, and ``image_id`` is empty if the agent does not have that image, and ``image_made`` and ``image_owner`` if it
    was not made of a container of a session.
    """

    name: str
    reachable: bool = True
    swarm: str = ""
    is_manager: bool = False
    image: str = ""
    image_id: str = ""
    image_made: str = ""
    image_owner: str = ""
    groups: Tuple[str, ...] = ()

    @classmethod
    def from_report(cls, report: Json) -> AgentStatus:
        """From an agent's report, which the module ``agent_info`` returns as ``agent``."""
        swarm = (report.get("engine") or {}).get("swarm") or {}
        image = report.get("image") or {}
        return cls(
            name=str(report["name"]),
            reachable=bool(report.get("reachable", True)),
            swarm=str(swarm.get("cluster_id") or ""),
            is_manager=bool(swarm.get("manager")),
            image=str(image.get("reference") or ""),
            image_id=str(image.get("id") or "") if image.get("present") else "",
            image_made=str(image.get("made") or ""),
            image_owner=str(image.get("owner") or ""),
            groups=tuple(str(report.get("group") or "").split(",")),
        )


@dataclass(frozen=True)
class Deployment:
    """The part that each host has in a launch, besides what its plan says.

    Attributes:
        network_host: the host that creates and removes the network.
        image_is_settled: every agent that needs the image of the session has it, and the same one: it is not pulled or copied.
        image_asked: the agents that are asked for the image, because they can be the source of a copy.
        image_rivals: agents whose committed image is used if it is newer than the image on the session's agents.
        image_pull: when the image is pulled: ``missing``, ``always`` or ``never``.
    """

    network_host: str
    image_is_settled: bool
    image_asked: Tuple[str, ...]
    image_rivals: Tuple[str, ...]
    image_pull: str


def deployment(
    plan: Plan, statuses: Sequence[AgentStatus], *, head: str, pull: str = "missing", is_repair: bool = False
) -> Deployment:
    """Who does what for this plan. ``statuses`` has every host of the play, in the order of the play."""
    return Deployment(
        network_host=network_host(plan, statuses, head),
        image_is_settled=image_is_settled(plan, statuses, pull),
        image_asked=tuple(status.name for status in statuses if status.reachable),
        image_rivals=tuple(status.name for status in statuses if status.reachable and _is_permitted(plan, status)),
        # A repair makes what was there, with no newer image of the same name.
        image_pull="missing" if is_repair and pull == "always" else pull,
    )


def network_host(plan: Plan, statuses: Sequence[AgentStatus], head: str) -> str:
    """The host that creates and removes the network of a plan.

    A bridge belongs to the one agent, and the network of the agents is not created. An overlay needs a manager of its agents' Swarm:
    one that has containers of the plan if possible, and of these the head if it is one, else the first that answers, and the head
    if none does.
    """
    if plan.network.driver != "overlay":
        return plan.main.agent
    swarm = next((status.swarm for status in statuses if status.name == plan.main.agent), "")
    managers = [status.name for status in statuses if status.reachable and status.is_manager and status.swarm == swarm]
    managers = [name for name in managers if name in plan.agents] or managers
    return head if head in managers or not managers else managers[0]


def lost_agents(statuses: Iterable[AgentStatus], failed_removals: Iterable[str] = ()) -> Tuple[str, ...]:
    """The hosts that do not answer, and those on which a removal failed."""
    unreachable = [status.name for status in statuses if not status.reachable]
    return tuple(dict.fromkeys([*unreachable, *failed_removals]))


def network_patience(lost: Sequence[str], has_waited: bool = False) -> int:
    """Seconds that the removal of a network may wait for its endpoints. The endpoints of a lost agent stay."""
    return NETWORK_PATIENCE_WITHOUT_AGENT if lost or has_waited else NETWORK_PATIENCE


def image_is_settled(plan: Plan, statuses: Iterable[AgentStatus], pull: str) -> bool:
    """Whether every agent of the session has the image of the plan, and the same one, and none is to pull it.

    An agent that was lost during a commit has a former image: no other agent that the session could use may have a newer one.
    """
    needing, statuses = plan.images.get(plan.session.image, ()), list(statuses)
    used = [status for status in statuses if status.name in needing]
    first = used[0] if used else AgentStatus("")
    rivals = [one for one in statuses if one.image == plan.session.image and _is_permitted(plan, one)]
    if first.image_made and any(
        one.image_owner == first.image_owner and one.image_made > first.image_made for one in rivals
    ):
        return False
    ids = {status.image_id for status in used}
    references = {status.image for status in used}
    is_complete = len(used) == len(needing) and "" not in ids
    return pull != "always" and is_complete and len(ids) == 1 and references == {plan.session.image}


def _is_permitted(plan: Plan, status: AgentStatus) -> bool:
    """Whether an agent has containers of the session, or is in one of its resource groups: others decide nothing about it."""
    groups = {plan.session.group, *(role.group for role in plan.session.roles)}
    return status.name in plan.agents or not groups.isdisjoint(status.groups)


def lease_seconds(request: Request, statuses: Iterable[AgentStatus], launch_timeout: int) -> int:
    """Seconds for which a placement is kept for its controller: all that the launch may wait for.

    ``launch_timeout`` covers the launch itself. What is stopped before it, or after its failure, has its grace. A bootstrap script
    adds its timeout, and so does each image that an agent may pull: another operator must not take such a launch for lost. No
    report is about the images of roles.
    """
    may_pull = request.pull == "always" or any(status.reachable and not status.image_id for status in statuses)
    of_roles = {part.image for part in request.parts} - {request.image}
    return (
        launch_timeout
        + request.grace
        + (request.bootstrap_timeout if request.bootstrap else 0)
        + request.pull_timeout * (may_pull + len(of_roles)) * (request.pull != "never")
        + sum(request.apps_timeout for role in request.roles for waits in (role.ready, role.apps) if waits)
        + (request.apps_timeout if any(app.command for app in request.apps) else 0)
    )
