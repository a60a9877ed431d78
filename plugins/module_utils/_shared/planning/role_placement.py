# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The placement of a session with roles: each role like a session of its own, on what the roles before it have left; all or none.

If one agent can hold all roles, they go there. Otherwise the roles that need the most come first. Because the order of roles can
decide whether they fit, some other orders are tried, too.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import islice, permutations
from typing import Dict, List, Mapping, Sequence, Tuple

from ..constants import HOST, MULTI_NODE, SINGLE_NODE
from ..documents.plan import Resources
from ..documents.report import AgentReport, GpuSharing, HostNetwork
from .capacity import Demand, FreeCapacity
from .placement import (
    NO_AGENT,
    Placement,
    Shortfall,
    best_fit_key,
    compatibility_key,
    excluded,
    free_of,
    refusal,
    room_for,
    shortened_list,
    shortfall_of,
)
from .placement import place as place_alike

# Orders of roles that are tried: all of three roles.
_MOST_ORDERS = 6
IMPOSSIBLE = "no host can hold this as they are"
Free = Mapping[str, FreeCapacity]
Emptied = Tuple[Sequence[AgentReport], Free]


def place(demand: Demand, agents: Sequence[AgentReport], free: Free) -> Placement | Shortfall:
    """Place all containers of a session, or say what is missing. Books nothing: ``free`` does not change."""
    agents = _with_image(demand, agents)
    if demand.host:
        # Hosts reach each other without a Swarm.
        agents = [replace(agent.in_swarm(HOST), host_network=network) for agent, network in _distinct(agents)]
    if not demand.roles:
        return place_alike(demand, agents, free)
    # The strategy is about several agents.
    roles = [replace(role, strategy="pack") for role in demand.roles]
    for role in roles:
        alone = place_alike(role, agents, free)
        if isinstance(alone, Shortfall):
            return Shortfall(f"role {role.role}: {alone.reason}", alone.is_final)
    if not demand.host or demand.size == 1:
        found = _on_one(demand, sorted(roles, key=_hardness), agents, free)
        if isinstance(found, Placement) or demand.mode == SINGLE_NODE:
            return found
    return _across(demand, agents, free)


def _with_image(demand: Demand, agents: Sequence[AgentReport]) -> Sequence[AgentReport]:
    """The agents. One without the image gets the architecture of the image that others have, unless one of them has its own.

    An image that no agent can run decides nothing: the others may get another one of that name.
    """
    asked = [one for one in agents if one.reachable and not all(excluded(one, part) for part in demand.parts)]
    known = {one.image.architecture for one in asked} & {one.architecture for one in asked} - {""}
    others = " and ".join(sorted(known))
    return (
        [
            one if one.image.architecture or one.architecture in known else _with_architecture(one, others)
            for one in agents
        ]
        if known
        else agents
    )


def _with_architecture(agent: AgentReport, of_image: str) -> AgentReport:
    return replace(agent, image=replace(agent.image, architecture=of_image))


def _distinct(agents: Sequence[AgentReport]) -> List[Tuple[AgentReport, HostNetwork]]:
    """The agents with their networks, of which none is usable if another agent has the same address, as behind two NATs."""
    held = Counter(agent.host_network.address for agent in agents if not agent.host_network.reason)
    shared = HostNetwork(reason="has the address of another agent, which is not usable")
    return [(one, shared if held[one.host_network.address] > 1 else one.host_network) for one in agents]


def emptied(agents: Sequence[AgentReport]) -> Emptied:
    """The agents after all that may change, and what each has while it holds nothing: the same for every request of a decision."""
    ready = [_idle(agent) for agent in agents]
    return ready, {agent.name: free_of(agent, ()) for agent in ready}


def never_fits(demand: Demand, agents: Sequence[AgentReport], empty: Emptied | None = None) -> str:
    """Why the agents could not hold a session if they held nothing else; empty if they could.

    It is also empty while an agent of the resource group does not answer, or its nvidia-smi does not: that agent might. An agent that
    is drained, that failed a check or that is in no Swarm may change, and a red GPU may become green.
    """
    wanted = [agent for agent in agents if not all(excluded(agent, part) for part in demand.parts)]
    has_gpus = any(part.per_container.gpus for part in demand.parts)
    # The parts of the GPUs of these are not known for now.
    unseen = [one for one in wanted if one.gpu_sharing.may_pass and all(gpu.shares == 1 for gpu in one.capacity.gpus)]
    if not all(agent.reachable for agent in wanted) or (has_gpus and unseen):
        return ""
    found = place(demand, *(empty or emptied(agents)))
    return found.reason if isinstance(found, Shortfall) else ""


def impossible(never: str) -> Shortfall:
    """Return what a session waits for that the agents could never hold, for the reason that ``never_fits`` gives."""
    lacking = "largest free when empty " + never if " free" in never else never.replace(NO_AGENT, "")
    return Shortfall(f"{IMPOSSIBLE}: {lacking}; add a host or ask for less", is_impossible=True)


def _idle(agent: AgentReport) -> AgentReport:
    """The agent after all that may change: the MPS daemon may start, too."""
    sharing = GpuSharing() if agent.gpu_sharing.may_pass else agent.gpu_sharing
    usual = _with_architecture(agent.in_swarm("any"), "")
    return replace(usual, schedulable=True, avoid="", gpu_health=(), gpu_sharing=sharing)


def _on_one(
    demand: Demand, roles: Sequence[Demand], agents: Sequence[AgentReport], free: Free
) -> Placement | Shortfall:
    """All roles on the agent with the tightest fit, a designated one if possible."""
    found: Dict[str, Placement] = {}
    reasons: List[str] = []
    for agent in agents:
        if any(refusal(agent, role) for role in roles):
            continue
        own = free[agent.name]
        short = next((role for role in roles if room_for(role, own) < role.size), None)
        if short is not None:
            reasons.append(f"role {short.role}: {agent.name}: {shortfall_of(short, own, short.size)}")
            continue
        outcome = _in_turn(demand, roles, [agent], free)
        if isinstance(outcome, Placement):
            found[agent.name] = outcome
        else:
            reasons.append(outcome.reason)
    names = [name for name in found if name in demand.agents] or list(found)
    if names:
        return found[min(names, key=lambda name: best_fit_key(free[name], 0))]
    remedy = "no agent can hold all roles: session_cluster_mode multi-node places them on several"
    return Shortfall(f"{remedy} ({shortened_list(reasons)})" if reasons else remedy)


def _across(demand: Demand, agents: Sequence[AgentReport], free: Free) -> Placement | Shortfall:
    """The roles over the agents of one Swarm, because an overlay cannot cross two, and of one architecture.

    With RDMA, over those with ports of one kind.
    """
    reasons: List[str] = []
    useful = [agent for agent in agents if not all(refusal(agent, role) for role in demand.roles)]
    for group in sorted({compatibility_key(agent, demand) for agent in useful if agent.swarm}):
        members = [agent for agent in useful if compatibility_key(agent, demand) == group]
        for order in islice(permutations(sorted(demand.roles, key=_hardness)), _MOST_ORDERS):
            outcome = _in_turn(demand, order, members, free)
            if isinstance(outcome, Placement):
                return outcome
            reasons.append(outcome.reason)
    return Shortfall(reasons[0] if reasons else "the agents are in no Swarm: provision_agents.yml joins them")


def _hardness(role: Demand) -> Tuple[float, int, int, str]:
    """A key that sorts the role that needs the most first."""
    each = role.per_container
    return -each.gpus * role.size, -each.memory * role.size, -each.millicpus * role.size, role.role


def _in_turn(
    demand: Demand, order: Sequence[Demand], agents: Sequence[AgentReport], free: Free
) -> Placement | Shortfall:
    """The roles one after another. Its containers are in the order of ranks, whatever this order."""
    left = {agent.name: free[agent.name].copy() for agent in agents}
    found: Dict[str, Placement] = {}
    for role in order:
        outcome = place_alike(role, agents, left)
        if isinstance(outcome, Shortfall):
            return Shortfall(f"role {role.role}, beside the others: {outcome.reason}")
        found[role.role] = outcome
        agents = [agent for agent in agents if not demand.host or agent.name not in outcome.agents]
        for name, resources in zip(outcome.agents, outcome.resources):
            # The roles of a session share the fabric of an agent.
            left[name].book(replace(resources, fabric=False))
            left[name].kernel = {slot: (amount - each, each) for slot, (amount, each) in left[name].kernel.items()}
    places = [found[role.role] for role in demand.roles]
    used = tuple(name for place in places for name in place.agents)
    given: Tuple[Resources, ...] = tuple(resources for place in places for resources in place.resources)
    return Placement(used, given, SINGLE_NODE if len(set(used)) == 1 else MULTI_NODE)
