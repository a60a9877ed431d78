# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Agents that are lost under a session, and where its containers go."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Collection, Dict, List, Mapping, Sequence, Tuple

from .. import label
from ..constants import SINGLE_NODE, VXLAN_OVERHEAD
from ..documents.plan import Container, Plan, Port, Resources
from ..documents.report import AgentReport
from ..units import show_seconds
from .allocation import checked_folders
from .capacity import FreeCapacity
from .placement import Placement, Shortfall, of_one_kind, rdma_places, rdma_ports_in
from .plan import build_plan, inputs_of, show_placement
from .request import Request
from .role_placement import place

# The agent and the resources of each container that moves, by its hostname.
Places = Dict[str, Tuple[str, Resources]]


def expired_agents(
    plan: Plan, agents: Sequence[AgentReport], silent: Mapping[str, float], now: float
) -> Tuple[str, ...]:
    """The agents of a session that are lost to it: without an answer now, and for session_lost_after since the first pass without.

    ``silent`` has the time of that pass, in seconds since the epoch. An agent that is not in the inventory of the pass is not lost.
    """
    unreachable = {agent.name for agent in agents if not agent.reachable}
    patience = plan.session.lost_after
    return tuple(name for name in plan.agents if name in unreachable and now - silent.get(name, now) >= patience)


def describe_loss(plan: Plan, lost: Sequence[str]) -> str:
    """
    >>> from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import Network, Session
    >>> session = Session("", "", "", "", "", "", 1, "", "", lost_after=300)
    >>> describe_loss(Plan(session, Network("", "", "", "", ""), ()), ["b"])
    'b has not answered for 5 min'
    """
    does = "has" if len(lost) == 1 else "have"
    return f"{', '.join(lost)} {does} not answered for {show_seconds(plan.session.lost_after)}"


def new_places(
    request: Request,
    plan: Plan,
    lost: Sequence[str],
    agents: Sequence[AgentReport],
    free: Mapping[str, FreeCapacity],
    fenced: Sequence[str],
) -> Places | Shortfall:
    """Where the containers of lost agents go: all of them, or none. ``fenced`` agents may still have old containers of the session."""
    moving = [container for container in plan.containers if container.agent in lost]
    usable = [agent for agent in agents if agent.name not in (*lost, *fenced) and _can_hold(agent, plan, request)]
    if plan.network.driver == "bridge":
        found = place(replace(request.demand(), mode=SINGLE_NODE), usable, free)
        if isinstance(found, Shortfall):
            return found
        return {one.hostname: pair for one, pair in zip(moving, zip(found.agents, found.resources))}
    groups = _in_its_swarm(request, plan, lost, agents, usable)
    tried = [_one_by_one(request, plan, moving, group, free) for group in groups]
    return next((places for places in tried if not isinstance(places, Shortfall)), tried[0])


def _one_by_one(
    request: Request,
    plan: Plan,
    moving: Sequence[Container],
    agents: Sequence[AgentReport],
    free: Mapping[str, FreeCapacity],
) -> Places | Shortfall:
    demands = {part.role: part for part in request.demand().parts}
    # Without roles, all containers count.
    roles = {one.hostname: one.role if one.role in demands else "" for one in plan.containers}
    held = Counter((one.agent, roles[one.hostname]) for one in plan.containers if one not in moving)
    left = {agent.name: free[agent.name].copy() for agent in agents}
    found: Places = {}
    for container in moving:
        role = roles[container.hostname]
        demand = demands[role]
        usable = [one for one in agents if not demand.per_agent or held[one.name, role] < demand.per_agent]
        placed = tuple(agent for agent, _role in held)
        chosen = place(replace(demand, size=1, mode=SINGLE_NODE, per_agent=0, placed=placed), usable, left)
        if isinstance(chosen, Shortfall):
            return Shortfall(f"{container.hostname}: {chosen.reason}")
        name = chosen.agents[0]
        found[container.hostname] = (name, left[name].take(demand.per_container))
        held[name, role] += 1
    return found


def _can_hold(agent: AgentReport, plan: Plan, request: Request) -> bool:
    """Return whether an agent that answers has the data folders, and packets of the session's network fit through its network."""
    has_folders = all(agent.paths.get(folder) is not False for folder in checked_folders(request))
    return not agent.reachable or (has_folders and agent.mtu - VXLAN_OVERHEAD >= (plan.network.mtu or 0))


def _in_its_swarm(
    request: Request, plan: Plan, lost: Sequence[str], agents: Sequence[AgentReport], usable: Sequence[AgentReport]
) -> List[List[AgentReport]]:
    """The usable agents of the Swarm that has the network, by architecture; if containers stay, only those that are like theirs."""
    staying = [agent for agent in agents if agent.name in plan.agents and agent.name not in lost and agent.swarm]
    swarm = next((agent.swarm for agent in (*staying, *usable) if agent.swarm), "")
    found = [agent for agent in usable if not agent.reachable or (agent.swarm and agent.swarm == swarm)]
    names = dict.fromkeys(agent.architecture for agent in staying or found if agent.reachable)
    groups = [[agent for agent in found if agent.architecture == name or not agent.reachable] for name in names]
    return [of_one_kind(group, [*staying, *group], request.demand()) for group in groups or [found]]


def moved_plan(
    plan: Plan,
    request: Request,
    places: Places,
    ports: Tuple[Port, ...],
    agents: Sequence[AgentReport],
    taken: Mapping[str, Collection[str]],
) -> Plan:
    """The plan with containers on other agents. Those that stay are the same: no engine makes them again."""
    where = [places.get(one.hostname, (one.agent, one.resources)) for one in plan.containers]
    session, network = plan.session, plan.network
    usable = rdma_places(agents, session.fabric, network.is_of_host)
    staying = {one.agent: rdma_ports_in(one.environment) for one in plan.containers if one.hostname not in places}
    inputs = replace(
        inputs_of(plan),
        placement=Placement(tuple(agent for agent, _one in where), tuple(one for _agent, one in where), session.mode),
        ports=ports,
        taken_names=taken,
        rdma_ports={**usable, **staying},
    )
    placement = {label.PLACEMENT: show_placement(inputs.placement.agents)}
    made = build_plan(request, inputs).containers
    containers = tuple(
        new if new.hostname in places else replace(old, labels={**old.labels, **placement})
        for old, new in zip(plan.containers, made)
    )
    return replace(plan, network=replace(network, labels={**network.labels, **placement}), containers=containers)
