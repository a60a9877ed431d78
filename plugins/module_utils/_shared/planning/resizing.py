# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Other sizes for a session that runs: the request, what the added containers ask for, and the plan.

Containers that stay keep their agent, address, ID, name and devices. New containers get the next indexes of their role. A role that
shrinks loses its last containers. Ranks follow the order of the roles, so a change of one role changes the ranks of later roles.
"""

from __future__ import annotations

import uuid
from collections import Counter
from dataclasses import replace
from itertools import count
from typing import Collection, Mapping, Sequence, Tuple

from .. import label
from ..constants import MULTI_NODE, SINGLE_NODE
from ..documents.plan import Container, Plan
from ..documents.report import AgentReport
from ..documents.topology import members
from ..errors import ConflictError
from .addresses import NO_SUBNET, at_slots, prefix_for, slot_of
from .capacity import Demand
from .placement import Placement, of_one_kind
from .plan import build_plan, inputs_of
from .request import Request

_NOTHING = Placement((), (), "")


def is_resize(former: Request, request: Request) -> bool:
    """Return whether two requests ask for the same session in different sizes."""
    sizes = request.sizes
    is_other = former.sizes != sizes and len(former.sizes) == len(sizes)
    return is_other and not former.with_sizes(sizes).differences(request)


def added_since(plan: Plan, former: Sequence[int]) -> Tuple[str, ...]:
    """The containers that a plan did not have in the former sizes; none without former sizes."""
    roles = [replace(role, size=size) for role, size in zip(plan.session.roles, former)]
    known = {member.hostname for member in members(sum(former), roles)}
    return tuple(one.hostname for one in plan.containers if former and one.hostname not in known)


def without(request: Request, hostnames: Collection[str]) -> Request:
    """The same request without these containers, which are the last of their roles."""
    gone = Counter(member.role for member in request.members if member.hostname in hostnames)
    return request.with_sizes(
        [part.size - (gone[part.name] if part.name else sum(gone.values())) for part in request.parts]
    )


def growth_demand(request: Request, plan: Plan, agents: Sequence[AgentReport]) -> Demand:
    """Return what the added containers ask for: a place on the network of the session, which ends at its host or its Swarm.

    With RDMA, it also ends at agents with ports of another kind.
    """
    mode, within = SINGLE_NODE, [plan.main.agent]
    if plan.network.driver != "bridge":
        mode, swarm = request.mode, next((agent.swarm for agent in agents if agent.name == plan.main.agent), "")
        wanted = request.agents if request.agents_policy == "strict" else [agent.name for agent in agents]
        reached = [agent for agent in agents if agent.swarm == swarm or plan.network.is_of_host]
        alike = of_one_kind(reached, [agent for agent in agents if agent.name in plan.agents], request.demand())
        within = [agent.name for agent in alike if agent.name in wanted]
    staying, network = _staying(plan, request), plan.network
    parts = tuple(
        replace(
            part,
            size=size - former,
            mode=mode,
            # Without a designated agent, any would do.
            agents=tuple(within) or (plan.main.agent,),
            policy="strict",
            placed=tuple(one.agent for one in staying if part.role in ("", one.role)),
            beside=tuple(one.agent for one in staying if part.role not in ("", one.role)),
            ports=(network.ssh_port, network.master_port) if network.is_of_host else (),
        )
        for part, size, former in zip(request.demand().parts, request.sizes, plan.session.sizes)
        if size > former
    )
    return replace(parts[0], size=sum(part.size for part in parts), role="", roles=parts if request.roles else ())


def _staying(plan: Plan, request: Request) -> Tuple[Container, ...]:
    """The containers of a plan that it has in the sizes of the request, too."""
    names = {member.hostname for member in request.members}
    return tuple(one for one in plan.containers if one.hostname in names)


def check_subnet(request: Request, plan: Plan) -> None:
    """Refuse a size for which the subnet of the session has no addresses."""
    prefix = int(plan.network.subnet.rpartition("/")[2])
    if not plan.network.is_of_host and prefix > prefix_for(request.size):
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
    hosts: Mapping[str, Tuple[str, str]] | None = None,
) -> Plan:
    """The plan of a session in the sizes of the request. ``added`` is the place of the containers that it does not have yet."""
    session, network = plan.session, plan.network
    staying = {one.hostname: one for one in _staying(plan, request)}
    used = {name: slot_of(network.gateway, one.address) for name, one in staying.items()}
    new = zip(added.agents, added.resources, (slot for slot in count() if slot not in used.values()))
    places = [
        (staying[name].agent, staying[name].resources, used[name]) if name in staying else next(new)
        for name in (member.hostname for member in request.members)
    ]
    agents, resources, slots = (tuple(part) for part in zip(*places))
    mode = MULTI_NODE if len(set(agents)) > 1 else session.mode
    former = inputs_of(plan)
    inputs = replace(
        former,
        launch=launch or str(uuid.uuid4()),
        placement=Placement(agents, resources, mode),
        subnet=NO_SUBNET if network.is_of_host else at_slots(network.subnet, slots),
        hosts={**(hosts or {}), **former.hosts},
        taken_names=taken_names or {},
        rdma_ports={**former.rdma_ports, **(rdma_ports or {})},
        first=(session.request, former.first[1] or ",".join(map(str, session.sizes))),
        local_ranks=(),
    )
    made = build_plan(request, inputs)
    return replace(made, containers=tuple(_kept(one, staying.get(one.hostname)) for one in made.containers))


def _kept(made: Container, former: Container | None) -> Container:
    """A container of the new plan. One that stays is still made from what its engine has made it from."""
    if former is None:
        return made
    spec = {name: text for name, text in former.labels.items() if name == label.SPEC}
    return replace(made, name=former.name, labels={**made.labels, **spec})
