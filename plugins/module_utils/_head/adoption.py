# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sessions that are known from their labels alone: their rows, and their plans, rebuilt from a request and the labels."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import islice
from typing import Any, Dict, Iterable, List, Mapping, Sequence, Set, Tuple

from .._shared import label, states
from .._shared.constants import HOST, MASTER_PORT, SSH_PORT
from .._shared.documents.plan import Plan, Port, Resources
from .._shared.documents.report import AgentReport, ObservedContainer
from .._shared.documents.topology import Member
from .._shared.errors import ConflictError, InputError
from .._shared.planning.addresses import NO_SUBNET, at_slots
from .._shared.planning.allocation import Allocation
from .._shared.planning.capacity import FreeCapacity
from .._shared.planning.placement import Placement, host_places, rdma_places
from .._shared.planning.plan import PlanInputs, build_plan, mtu_for
from .._shared.planning.request import Request
from .session_record import SessionRecord, Update
from .snapshot import Snapshot
from .usage import capacity_left

# A created container belongs to a launch in progress, which its own store knows.
_HAS_RUN = ("running", "waiting", "apart", "restarting", "paused", "exited", "dead")


def adopted_rows(agents: Iterable[AgentReport], known: Set[str]) -> List[SessionRecord]:
    """A row for every session that has run, is not ``known`` and has all labels that a plan needs; oldest first.

    A session whose containers have all stopped, because their host was restarted, is among them: it can be repaired or
    ended.
    """
    found: Dict[str, ObservedContainer] = {}
    for agent in agents:
        for container in agent.containers:
            if container.session not in known and container.state in _HAS_RUN and container.describes_session:
                found.setdefault(container.session, container)
    rows = [
        SessionRecord(
            id=session,
            name=container.label(label.NAME),
            owner=container.label(label.OWNER),
            resource_group=container.label(label.GROUP),
            state=states.RUNNING,
            created=container.created,
        )
        for session, container in found.items()
    ]
    return sorted(rows, key=lambda row: (row.created, row.id))


def with_rebuilt_plan(snapshot: Snapshot, row: SessionRecord, request: Request) -> Update:
    """An adopted session with the plan that its labels and the request give."""
    agents, plans = snapshot.context.agents, snapshot.held_plans
    free = capacity_left([one for one in agents if one.reachable], snapshot.ends, plans)
    plan = rebuilt_plan(row, request, agents, free, plans)
    return Update(row).having(plan=plan, request=request.with_sizes(plan.session.sizes))


def rebuilt_plan(
    row: SessionRecord,
    request: Request,
    agents: Sequence[AgentReport],
    free: Mapping[str, FreeCapacity],
    plans: Sequence[Plan],
) -> Plan:
    """The plan of an adopted session, from the request whose digest its labels have, in the size that they have.

    ``free`` is what other sessions leave on the agents that answer, and ``plans`` are theirs: devices and ports of a lost container
    are chosen beside them. Raises InputError for another request, and ConflictError if no container of the session is seen or a lost
    container has no room any more.
    """
    own = (one for agent in agents for one in agent.containers if one.session == row.id and one.describes_session)
    observed = {one.hostname: one for one in own}
    example = _example(row, request, observed)
    placed_on, slots = example.placement, _slots(example, request)
    request, mode = request.with_sizes(list(map(len, slots))), example.label(label.MODE)
    resources = tuple(
        observed[member.hostname].resources
        if member.hostname in observed
        else _chosen_again(member, request, free.get(agent))
        for member, agent in zip(request.members, placed_on)
    )
    first, main = example.label(label.FIRST), observed.get("main1")
    ports = (main.planned_ports if main else ()) or Allocation(plans, agents).ports(request, placed_on)
    inputs = PlanInputs(
        session_id=row.id,
        launch=example.label(label.LAUNCH),
        placement=Placement(placed_on, resources, mode),
        **_network(request, example, placed_on, slots, ports, agents),
        mtu=mtu_for(mode, agents, placed_on),
        fabric=example.label(label.FABRIC),
        began=float(example.label(label.BEGAN) or row.created),
        taken_names={agent.name: agent.names for agent in agents},
        rdma_ports=rdma_places(agents, request.fabric, request.network == HOST),
        permitted_folders=tuple(json.loads(example.label(label.FOLDERS) or "[]")),
        first=(example.label(label.REQUEST), first) if first else ("", ""),
    )
    return build_plan(request, inputs)


def _network(
    request: Request,
    example: ObservedContainer,
    placed_on: Sequence[str],
    slots: Sequence[Sequence[int]],
    ports: Tuple[Port, ...],
    agents: Sequence[AgentReport],
) -> Dict[str, Any]:
    """The addresses and ports of a plan. On the network of the hosts, an agent that does not answer has no known address."""
    if request.network != HOST:
        subnet = at_slots(example.label(label.SUBNET), [slot for part in slots for slot in part])
        return {"subnet": subnet, "ports": ports}
    hosts = host_places(agents)
    lost = [name for name in placed_on if name not in hosts]
    if lost:
        raise ConflictError(
            f"Session {request.name} is known from its labels alone, and the address of {lost[0]} is not known: bring it back and "
            "run this again, or end the session with terminate.yml.", lost[0])  # fmt: skip
    text = example.label(label.HOST_PORTS) or "%d,%d" % (SSH_PORT, MASTER_PORT)
    ssh, master = map(int, text.split(","))
    first = [replace(port, container_port=ssh, host_port=ssh) for port in ports[:1]]
    return {"subnet": NO_SUBNET, "ports": (*first, *ports[1:]), "master_port": master, "hosts": hosts}


def _example(row: SessionRecord, request: Request, observed: Mapping[str, ObservedContainer]) -> ObservedContainer:
    """The newest container of the session, whose labels describe it, after a check that its labels have this request.

    The sizes may differ, because a running session can be resized. Labels keep the digest of the first request.
    """
    # Each change of the size gives the containers that it adds labels of their own.
    example = max(observed.values(), key=lambda one: (one.created, one.rank), default=None)
    if example is None:
        raise ConflictError(
            f"Session {row.name} is known from its labels alone, and no agent that answers has a container of it: bring its "
            "agents back and run this again, or end the session with terminate.yml.", row.name)  # fmt: skip
    sizes = list(map(len, _slots(example, request)))
    first = [int(size) for size in example.label(label.FIRST).split(",") if size] or sizes
    is_alike = len(sizes) == len(first) == len(request.sizes) and sum(sizes) == len(example.placement)
    if not is_alike or example.label(label.REQUEST) != request.with_sizes(first).digest:
        rule = "is used by a running session with other settings: end that session with terminate.yml, or choose another name"
        raise InputError("session_name", row.name, rule)
    return example


def _slots(container: ObservedContainer, request: Request) -> List[List[int]]:
    """The places of the addresses of its session in the subnet, role by role. Without the label, they are in the order of ranks."""
    text = container.label(label.SLOTS)
    if text:
        found: List[List[int]] = json.loads(text)
        return found
    sizes = request.sizes if request.roles else [len(container.placement)]
    places = iter(range(sum(sizes)))
    return [list(islice(places, size)) for size in sizes]


def _chosen_again(member: Member, request: Request, free: FreeCapacity | None) -> Resources:
    """The resources of a lost container: the same amounts, with devices and CPUs that are free on its agent."""
    per_container = next(part for part in request.demand().parts if part.role in ("", member.role)).per_container
    if free is None:
        return Resources(per_container.millicpus, per_container.memory, per_container.shm)
    if not free.room(per_container):
        raise ConflictError(
            f"Session {request.name} has lost {member.hostname}, and {free.agent} has no room for it any more "
            f"({free.shortfall(per_container, 1)}): free some room, or end the session with terminate.yml.", free.agent)  # fmt: skip
    return free.take(per_container)
