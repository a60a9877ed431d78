# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Place containers on agents: docs/architecture.md §5, as one pure function.

The same input gives the same answer. An agent is never given more than it has free. Either all containers are placed or
none. More capacity never makes a session wait that would be placed without it.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import Dict, Iterable, List, Mapping, Sequence, Tuple

from ..constants import MULTI_NODE, RDMA_FOLDER, SINGLE_NODE
from ..documents.plan import Resources
from ..documents.report import RED, AgentReport, RdmaPort
from ..errors import shorten_list
from .capacity import Demand, FreeCapacity, kernel_bounds, kernel_room, kernel_shortfall

_SHOWN_REASONS = 8
NO_AGENT = "no agent can hold it: "
_UNDESIGNATED = "is not among the designated agents"


@dataclass(frozen=True)
class Placement:
    """The agent and the resources of every rank, and the effective mode."""

    agents: Tuple[str, ...]
    resources: Tuple[Resources, ...]
    mode: str


@dataclass(frozen=True)
class Shortfall:
    """Why nothing was placed, for people. ``is_final``: the end of no session changes it.

    ``is_impossible``: the agents as they are could not hold it if they held nothing else; another agent could.
    """

    reason: str
    is_final: bool = False
    is_impossible: bool = False


def free_of(agent: AgentReport, bookings: Iterable[Resources]) -> FreeCapacity:
    """The capacity of an agent that is not booked."""
    # Nothing limits parts of a GPU while the daemon is missing.
    most = 1.0 if agent.gpu_sharing.reason else float("inf")
    own = agent.capacity
    gpus = {gpu.id: (min(1.0, gpu.shares), min(most, gpu.shares)) for gpu in own.gpus}
    free = FreeCapacity(agent.name, own.millicpus, own.memory, gpus, list(own.cpu_ids))
    for resources in bookings:
        free.book(resources)
    red = [gpu for gpu in agent.gpu_health if gpu.state == RED and gpu.id in free.gpus]
    free.red = {gpu.id: ", ".join(gpu.reasons) for gpu in red}
    free.gpus.update({name: (0.0, free.gpus[name][1]) for name in free.red})
    free.gpu_memory = {gpu.id: gpu.memory for gpu in own.gpus if gpu.memory}
    free.undivided = agent.gpu_sharing.reason
    free.kernel = kernel_bounds(agent.kernel)
    return free


def place(demand: Demand, agents: Sequence[AgentReport], free: Mapping[str, FreeCapacity]) -> Placement | Shortfall:
    """Place all containers of a session, or say what is missing. Books nothing: ``free`` does not change."""
    refused = {agent.name: reason for agent in agents for reason in [refusal(agent, demand)] if reason}
    eligible = [agent for agent in agents if agent.name not in refused]
    if not eligible:
        return Shortfall(_no_agent(refused), is_final=_must_be_repaired(demand, agents))
    room = {agent.name: room_for(demand, free[agent.name]) for agent in eligible}
    counts = _choose(demand, eligible, room, free)
    if counts is not None:
        return _assign(demand, counts, free)
    too_large = _too_large(demand, agents, free)
    if too_large:
        return Shortfall(too_large, is_final=True)
    return Shortfall(_shortfall(demand, eligible, room, free, refused))


def room_for(demand: Demand, free: FreeCapacity) -> int:
    """Return how many containers of the session an agent can hold."""
    if _must_share_fabric(demand, free):
        return 0
    room = free.room(demand.per_container)
    left = max(0, demand.per_agent - demand.placed.count(free.agent))
    return min(room, left) if demand.per_agent else room


def shortfall_of(demand: Demand, free: FreeCapacity, count: int) -> str:
    """Return what an agent lacks for ``count`` containers of the session."""
    if _must_share_fabric(demand, free):
        return "its fabric is used by another session"
    held = demand.placed.count(free.agent)
    rule = "already has %d of its containers, and the limit per agent is %d" % (held, demand.per_agent)
    limit = rule if demand.per_agent else ""
    return free.shortfall(demand.per_container, count) or limit


def _must_share_fabric(demand: Demand, free: FreeCapacity) -> bool:
    """Return whether another session has the fabric of the agent: an engine makes only one macvlan network on an interface."""
    return demand.per_container.fabric and not free.has_fabric and free.agent not in (*demand.placed, *demand.beside)


def _must_be_repaired(demand: Demand, agents: Sequence[AgentReport]) -> bool:
    """Return whether every agent that could hold the session lacks something, or is out of order, in a way that does not pass."""
    wanted = [agent for agent in agents if not excluded(agent, demand)]
    return bool(wanted) and all(_lacks(agent, demand) if agent.reachable else not agent.may_return for agent in wanted)


def _lacks(agent: AgentReport, demand: Demand) -> str:
    """The devices that the session asks for and an agent that answers does not have; empty if there are none."""
    if demand.per_container.fabric and agent.fabric.reason:
        return f"{agent.fabric.reason} for session_fabric"
    if demand.host and agent.host_network.reason:
        return f"{agent.host_network.reason} for session_network host"
    if demand.host and agent.name in (*demand.placed, *demand.beside):
        return "has a container of the session"
    used = [str(port) for port in demand.ports if port in agent.ports]
    if used:
        return f"uses port {' and '.join(used)}, at which the containers of the session listen"
    return rdma_refusal(agent, demand.per_container.fabric, demand.host) if demand.rdma else ""


def _too_large(demand: Demand, agents: Sequence[AgentReport], free: Mapping[str, FreeCapacity]) -> str:
    """Why the kernels of all agents together cannot run so many containers; empty if they can, whatever runs there now."""
    wanted = [agent for agent in agents if not excluded(agent, demand)]
    rooms = [kernel_room(free[agent.name].kernel) for agent in wanted]
    if (max if demand.mode == SINGLE_NODE else sum)(rooms) >= demand.size:
        return ""
    lines = [f"{agent.name} {kernel_shortfall(agent.kernel, demand.size)}" for agent in wanted]
    remedy = "raise these limits, add agents, or choose a smaller session_cluster_size"
    if demand.mode == SINGLE_NODE and sum(rooms) >= demand.size:
        remedy = "set session_cluster_mode to multi-node"
    return "%d containers exceed the limits of the kernel (%s); %s" % (demand.size, shortened_list(lines), remedy)


def excluded(agent: AgentReport, demand: Demand) -> str:
    """Why the session asks for other agents than this; empty if it does not."""
    if demand.group not in agent.groups:
        return f"is in resource group {' and '.join(agent.groups)}"
    if demand.policy == "strict" and demand.agents and agent.name not in demand.agents:
        return _UNDESIGNATED
    return ""


def refusal(agent: AgentReport, demand: Demand) -> str:
    """Why an agent can hold no container of this session; empty if it can."""
    elsewhere = excluded(agent, demand)
    if elsewhere:
        return elsewhere
    if not agent.reachable:
        return f"cannot be reached ({agent.reason})" if agent.reason else "cannot be reached"
    if not agent.schedulable or agent.avoid:
        return f"is avoided, because it failed the check ({agent.avoid})" if agent.avoid else "is not schedulable"
    if agent.image.architecture and agent.architecture and agent.image.architecture != agent.architecture:
        return f"is {agent.architecture}, and the image is for {agent.image.architecture}"
    return _lacks(agent, demand)


def _choose(
    demand: Demand, eligible: Sequence[AgentReport], room: Mapping[str, int], free: Mapping[str, FreeCapacity]
) -> Dict[str, int] | None:
    """Return how many containers each agent gets, the agent of main1 first; None if they do not fit."""
    designated = [agent for agent in eligible if agent.name in demand.agents]
    pools = [pool for pool in (designated, list(eligible)) if pool]
    for pool in pools:
        sufficient = [agent.name for agent in pool if room[agent.name] >= demand.size]
        # No agent can hold the session of this role: its strategy decides.
        if sufficient and not (demand.role and demand.strategy == "spread"):
            return {min(sufficient, key=lambda name: best_fit_key(free[name], room[name])): demand.size}
    if demand.mode == SINGLE_NODE:
        return None
    for pool in pools:
        counts = _across(demand, pool, room)
        if counts:
            return counts
    return None


def best_fit_key(free: FreeCapacity, room: int) -> Tuple[float, int, int, int, str]:
    """A key that sorts the agent with the least left first: GPUs count most, then room for more of these containers."""
    gpus = sum(part for part, _shares in free.gpus.values())
    return gpus, room, free.millicpus, free.memory, free.agent


def _across(demand: Demand, pool: Sequence[AgentReport], room: Mapping[str, int]) -> Dict[str, int] | None:
    """Return how many containers each of several agents gets. All are in one Swarm, because an overlay cannot cross two.

    All have one architecture, and with RDMA ports of one kind.
    """
    options = []
    for group in sorted({compatibility_key(agent, demand) for agent in pool if agent.swarm}):
        names = [agent.name for agent in pool if compatibility_key(agent, demand) == group and room[agent.name] > 0]
        if sum(room[name] for name in names) >= demand.size:
            spread = demand.strategy == "spread"
            options.append(_spread(demand.size, names, room) if spread else _pack(demand.size, names, room))
    if not options:
        return None
    return max(options, key=len) if demand.strategy == "spread" else min(options, key=len)


def compatibility_key(agent: AgentReport, demand: Demand) -> Tuple[str, str, str]:
    """Containers of one session have the same image and can exchange data on agents for which this is equal."""
    return agent.swarm, agent.architecture, _kind(agent, demand)


def _kind(agent: AgentReport, demand: Demand) -> str:
    usable = usable_ports(agent, demand.per_container.fabric, demand.host) if demand.rdma else ()
    return next((port.link_layer for port in agent.rdma_ports if port.name in usable), "")


def of_one_kind(agents: Sequence[AgentReport], present: Sequence[AgentReport], demand: Demand) -> List[AgentReport]:
    """The agents of the same architecture as the first ``present`` agent that answers.

    None has RDMA ports of another kind than the first of these that has any which work.
    """
    architecture = next((agent.architecture for agent in present if agent.reachable), "")
    alike = [agent for agent in agents if not (agent.reachable and architecture) or agent.architecture == architecture]
    kind = next((kind for kind in (_kind(agent, demand) for agent in present) if kind), "")
    return [agent for agent in alike if not kind or _kind(agent, demand) in ("", kind)]


def _pack(size: int, names: Sequence[str], room: Mapping[str, int]) -> Dict[str, int]:
    """The fewest agents: those with the most room first, and for the remainder the agent with the least sufficient room."""
    counts: Dict[str, int] = {}
    left = size
    for name in sorted(names, key=lambda name: (-room[name], name)):
        if room[name] >= left:
            holding = [other for other in names if other not in counts and room[other] >= left]
            counts[min(holding, key=lambda other: (room[other], other))] = left
            break
        counts[name] = room[name]
        left -= room[name]
    return counts


def _spread(size: int, names: Sequence[str], room: Mapping[str, int]) -> Dict[str, int]:
    """As even as the room allows: the level that every agent is filled to rises until all containers are placed."""
    level = 0
    while sum(min(room[name], level) for name in names) < size:
        level += 1
    counts = {name: min(room[name], level) for name in sorted(names, key=lambda name: (-room[name], name))}
    surplus = sum(counts.values()) - size
    for name in reversed(list(counts)):
        if surplus and counts[name] == level:
            counts[name] -= 1
            surplus -= 1
    return {name: count for name, count in counts.items() if count}


def _assign(demand: Demand, counts: Mapping[str, int], free: Mapping[str, FreeCapacity]) -> Placement:
    """The ranks in order, those of an agent together, each with its own GPUs and CPUs."""
    agents: List[str] = []
    resources: List[Resources] = []
    for name, count in counts.items():
        left = free[name].copy()
        agents.extend([name] * count)
        resources.extend(left.take(demand.per_container) for dummy in range(count))
    return Placement(tuple(agents), tuple(resources), SINGLE_NODE if len(counts) == 1 else MULTI_NODE)


def _no_agent(refused: Mapping[str, str]) -> str:
    lines = ["{} {}".format(*pair) for pair in sorted(refused.items())]
    return NO_AGENT + shortened_list(lines) if lines else "the inventory has no agent"


def _shortfall(
    demand: Demand,
    eligible: Sequence[AgentReport],
    room: Mapping[str, int],
    free: Mapping[str, FreeCapacity],
    refused: Mapping[str, str],
) -> str:
    roomiest = sorted(eligible, key=lambda agent: (-room[agent.name], agent.name))
    # With a limit for each agent, an agent may have room for its part.
    short = [agent.name for agent in roomiest if room[agent.name] < demand.most]
    shown = short[:_SHOWN_REASONS]
    lines = [f"{name}: {shortfall_of(demand, free[name], demand.most)}" for name in shown]
    lines += [""] * (len(short) - len(shown))
    if demand.mode == MULTI_NODE and len(eligible) > 1:
        total = sum(room.values())
        if total >= demand.size:
            return _apart(demand, [agent for agent in eligible if room[agent.name]], room)
        lines.append("together they hold %d of %d containers" % (total, demand.size))
    needed = -(-demand.size // demand.most)
    if needed > len(eligible):
        counts = (needed, len(eligible), "is" if len(eligible) == 1 else "are")
        lines = [
            "session_network: host needs %d agents, %d %s eligible" % counts
            if demand.host
            else "session_per_agent: %d needs %d agents, %d %s eligible" % (demand.per_agent, *counts)
        ]
    # A refused agent of this resource group is part of the reason; agents of other groups are not, and none that is out of reach
    # of the network of a session that grows.
    unsaid = (_UNDESIGNATED,) if demand.placed else ()
    refusals = [(name, reason) for name, reason in sorted(refused.items()) if "resource group" not in reason]
    return shortened_list([*lines, *(f"{name} {reason}" for name, reason in refusals if reason not in unsaid)])


def _apart(demand: Demand, agents: Sequence[AgentReport], room: Mapping[str, int]) -> str:
    """Why agents that have room for all containers together cannot hold the session."""
    held: Counter[str] = Counter()
    for agent in agents:
        held[agent.architecture] += room[agent.name]
    if max(held.values()) < demand.size:
        rooms = ", ".join("%s for %d" % pair for pair in sorted(held.items()))
        return "a session runs on one architecture, and none has room for all %d containers: %s" % (demand.size, rooms)
    swarms = {agent.swarm for agent in agents}
    if demand.rdma and len(swarms) == 1 and "" not in swarms:
        return (
            "some agents have InfiniBand and others RoCE for session_rdma: no kind of port has room for all containers"
        )
    apart = sorted(agent.name for agent in agents if not agent.swarm)
    found = f"{', '.join(apart)} in no Swarm" if apart else "%d Swarms" % len(swarms)
    return f"the agents are not in one Swarm ({found}): provision_agents.yml joins them"


def shortened_list(lines: Sequence[str]) -> str:
    return shorten_list(lines, _SHOWN_REASONS, "; ")


def host_places(agents: Sequence[AgentReport]) -> Dict[str, Tuple[str, str]]:
    """The address and the interface of each agent whose network sessions can use."""
    found = {agent.name: agent.host_network for agent in agents}
    return {name: (host.address, host.interface) for name, host in found.items() if not host.reason}


# The address of a RoCE port (GID) belongs to a network interface of its card. A container on a bridge or an overlay has no GID. A
# container on the fabric has one if its interface is above the interface of the port. A container in the network of its agent uses
# the GIDs of the agent. An InfiniBand port needs no interface.
ROCE = "Ethernet"


def usable_ports(agent: AgentReport, fabric: bool, host: bool) -> Tuple[str, ...]:
    """The ports through which a container, on ``fabric`` or in the network of its ``host``, can exchange data.

    If the agent has usable InfiniBand ports, only they count; otherwise, its RoCE ports.
    """
    usable = [port for port in agent.rdma_ports if not _fault(port, agent, fabric, host)]
    infiniband = [port.name for port in usable if port.link_layer != ROCE]
    return tuple(infiniband or [port.name for port in usable])


def rdma_places(agents: Sequence[AgentReport], fabric: bool, host: bool) -> Dict[str, Tuple[str, ...]]:
    """The usable RDMA ports of each agent."""
    return {agent.name: usable_ports(agent, fabric, host) for agent in agents}


def _fault(port: RdmaPort, agent: AgentReport, fabric: bool, host: bool) -> str:
    """Why a container cannot exchange data through a port; empty if it can. An agent_fabric is the interface for training."""
    if port.link_layer == ROCE and not (fabric or host):
        return "is RoCE, which works only with session_fabric or session_network: host"
    if port.link_layer == ROCE and agent.fabric.interface and not port.fabric:
        return f"is RoCE, and not on {agent.fabric.interface}, its agent_fabric"
    if not port.active:
        return "is not active"
    has_no_gid = port.link_layer == ROCE and host and not port.host
    return "has no RoCE v2 GID for an IPv4 address of the host" if has_no_gid else ""


def rdma_refusal(agent: AgentReport, fabric: bool, host: bool) -> str:
    """Why an agent can hold no container of a session with RDMA; empty if it can."""
    if agent.paths.get(RDMA_FOLDER) is False:
        return f"has no {RDMA_FOLDER} for session_rdma"
    if not agent.rdma_ports:
        return "has no RDMA device for session_rdma"
    if usable_ports(agent, fabric, host):
        return ""
    faults: Dict[str, List[str]] = {}
    for port in agent.rdma_ports:
        faults.setdefault(_fault(port, agent, fabric, host), []).append(port.name)
    reasons = [f"{', '.join(names)} {fault}" for fault, names in faults.items()]
    return f"has no port for session_rdma: {', '.join(reasons)}"


def rdma_ports_in(environment: Mapping[str, str]) -> Tuple[str, ...]:
    """The ports in such variables.

    >>> rdma_ports_in(rdma_environment(("mlx5_0:1", "ibp1s0:1"), ""))
    ('mlx5_0:1', 'ibp1s0:1')
    """
    return tuple(re.findall(r"[A-Za-z0-9_.-]+:[0-9]+", environment.get("NCCL_IB_HCA", "")))


def rdma_environment(ports: Sequence[str], address: str) -> Dict[str, str]:
    """Without these, UCX would use TCP through the interface of the session, and NCCL would try other ports and other addresses, too.

    The ``address`` on the fabric, if there is one, is the entry that NCCL takes from the table of a RoCE port: its index is known only
    after the start. UCX tries the entries.

    https://openucx.readthedocs.io/en/master/running.html
    https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html ("=" asks for the exact names)
    """
    if not ports:
        return {}
    own = {"NCCL_IB_ADDR_RANGE": address + "/32"} if address else {}
    return {"UCX_NET_DEVICES": ",".join(ports), "NCCL_IB_HCA": "=" + ",".join(ports), **own}
