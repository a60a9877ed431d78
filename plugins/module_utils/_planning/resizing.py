# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Another size for a session that runs: the request, what the added containers ask for, and the plan.

The containers that stay keep agent, address, ID, name and devices. Those that are added get the next indexes, and the last go first.
"""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import Collection, Mapping, Sequence

from .._core.constants import LABEL_FIRST, SINGLE_NODE
from .._core.errors import ConflictError
from .._core.model import Plan
from .._core.reports import Agent
from .addresses import prefix_for, subnet_layout
from .placement import Demand, Placement
from .plan import PlanInputs, build_plan
from .request import Request

_NOTHING = Placement((), (), "")


def with_size(request: Request, size: int) -> Request:
    """The same request with another size, which is also the largest number of nodes of an elastic training."""
    least, colon, _most = request.torchrun_nodes.partition(":")
    return replace(request, size=size, torchrun_nodes=least + colon + (str(size) if colon else ""))


def is_resize(former: Request, request: Request) -> bool:
    """Whether two requests ask for the same session in different sizes."""
    return former.size != request.size and not with_size(former, request.size).differences(request)


def growth_demand(request: Request, plan: Plan, agents: Sequence[Agent]) -> Demand:
    """What the added containers ask for: a place on the network of the session, which ends at its host or its Swarm."""
    size = request.size - len(plan.containers)
    placed = tuple(container.agent for container in plan.containers)
    demand = replace(request.demand(), size=size, policy="strict", placed=placed)
    if plan.network.driver == "bridge":
        return replace(demand, mode=SINGLE_NODE, agents=(plan.main.agent,))
    swarm = next((agent.swarm for agent in agents if agent.name == plan.main.agent), "")
    wanted = request.agents if request.agents_policy == "strict" else [agent.name for agent in agents]
    return replace(
        demand, agents=tuple(agent.name for agent in agents if agent.swarm == swarm and agent.name in wanted)
    )


def check_subnet(request: Request, plan: Plan) -> None:
    """Refuse a size for which the subnet of the session has no addresses."""
    prefix = int(plan.network.subnet.rpartition("/")[2])
    if prefix > prefix_for(request.size):
        message = "Session %s keeps its %d containers: its subnet %s has no addresses for %d. End it, and launch it with that size."
        raise ConflictError(
            message % (request.name, len(plan.containers), plan.network.subnet, request.size), request.name
        )


def resized(
    plan: Plan,
    request: Request,
    added: Placement = _NOTHING,
    *,
    launch: str = "",
    taken_names: Mapping[str, Collection[str]] | None = None,
    rdma_ports: Mapping[str, Sequence[str]] | None = None,
) -> Plan:
    """The plan of a session in the size of the request. ``added`` is the place of the containers that it does not have yet."""
    staying, session, network = plan.containers[: request.size], plan.session, plan.network
    places = (*(container.agent for container in staying), *added.agents)
    resources = (*(container.resources for container in staying), *added.resources)
    inputs = PlanInputs(
        session_id=session.id,
        launch=launch or str(uuid.uuid4()),
        placement=Placement(places, resources, session.mode),
        subnet=subnet_layout(network.subnet, request.size),
        ports=plan.main.ports,
        mtu=network.mtu,
        fabric=network.fabric,
        began=session.began,
        own_volumes=session.own_volumes,
        taken_names=taken_names or {},
        rdma_ports=rdma_ports or {},
        permitted_folders=session.permitted_folders,
        first=(session.request, plan.main.labels.get(LABEL_FIRST) or str(session.size)),
    )
    made = build_plan(request, inputs)
    kept = [replace(new, name=old.name) for new, old in zip(made.containers, staying)]
    return replace(made, containers=(*kept, *made.containers[len(kept) :]))
