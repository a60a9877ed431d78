# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plan that the head answers with is the plan of the request: the head chooses agents, devices, addresses and ports, and no more.

The controller makes the plan again from its own request with these choices, and compares.
"""

from __future__ import annotations

import ipaddress
from dataclasses import fields
from typing import Any, Collection, Iterator, Mapping, Tuple

from ...module_utils._shared import label
from ...module_utils._shared.constants import HOST, MASTER_PORT
from ...module_utils._shared.documents.plan import Container, Network, Plan, Session
from ...module_utils._shared.errors import ComputeError
from ...module_utils._shared.names import container_names
from ...module_utils._shared.planning.allocation import wanted_ports
from ...module_utils._shared.planning.plan import build_plan, inputs_of
from ...module_utils._shared.planning.request import Request
from ...module_utils._shared.units import parse_port_range

# What describes the first request of a session that has had another command since.
_OF_FIRST = ("request",)
# Of the name of a part, in a message.
_LONGEST = 100
_FREE_LABELS = (label.SPEC, label.REQUEST)

Difference = Tuple[str, Any, Any]


def check_agreement(plan: Plan, request: Request, agents: Collection[str], head: str) -> None:
    """Raise ComputeError for the first part of a checked plan that differs from what the request asks for."""
    for name, found, wanted in _differences(plan, request, agents):
        message = (
            "The plan of session %s that %s answers is not what was requested: %s is %.80r, and not %.80r. "
            "Nothing is launched; find out who has changed the session store of %s."
        )
        raise ComputeError(message % (request.name, head, name[:_LONGEST], found, wanted, head), head)


def _differences(plan: Plan, request: Request, agents: Collection[str]) -> Iterator[Difference]:
    if plan.session.size != request.size:
        yield "size", plan.session.size, request.size
        return
    yield from _of_places(plan, request, agents)
    yield from _of_ports(plan, request)
    wanted = build_plan(request, inputs_of(plan))
    yield from _of_fields(plan.session, wanted.session, Session, _OF_FIRST)
    yield from _of_fields(plan.network, wanted.network, Network, ("labels",))
    for found, container in zip(plan.containers, wanted.containers):
        yield from _of_container(found, container, plan.session)


def _of_places(plan: Plan, request: Request, agents: Collection[str]) -> Iterator[Difference]:
    allowed = request.agents if request.agents_policy == "strict" else agents
    for container in plan.containers:
        if not 0 <= container.local_rank <= container.rank:
            yield f"{container.hostname}.local_rank", container.local_rank, f"at most {container.rank}"
        if container.agent not in allowed or container.agent not in agents:
            yield f"{container.hostname}.agent", container.agent, sorted(allowed)
        held, part = container.resources, request.part_of(container.role)
        amounts = (held.millicpus, held.memory, held.shm, held.fabric)
        wanted = (part.millicpus, part.memory, part.shm, request.fabric)
        if amounts != wanted:
            yield f"{container.hostname}.resources", amounts, wanted
    if request.mode == "single-node" and len(plan.agents) > 1:
        yield "mode", plan.session.mode, request.mode
    if bool(plan.network.fabric) != request.fabric:
        yield "fabric", plan.network.fabric, request.fabric
    if request.network == HOST and len(plan.agents) < request.size:
        yield "agents", plan.agents, f"{request.size} agents"
    for name, text in (("subnet", plan.network.subnet), ("fabric", plan.network.fabric or plan.network.subnet)):
        subnet = ipaddress.IPv4Network(text)
        if request.network != HOST and not any(
            subnet.subnet_of(ipaddress.IPv4Network(pool)) for pool in request.network_pool
        ):
            yield name, text, ", ".join(request.network_pool)


def _of_ports(plan: Plan, request: Request) -> Iterator[Difference]:
    first, last = parse_port_range(request.port_range)
    # The agent says in which family it publishes.
    beside = next((port.host_ip for port in plan.main.ports), "")
    wanted, is_on_host = wanted_ports(request, beside), request.network == HOST
    found = [(port.name, port.container_port) for port in plan.main.ports]
    # On the network of the host, an app has no other port inside.
    inside = [port.host_port for port in plan.main.ports] if is_on_host else [port for _name, port, *_rest in wanted]
    expected = list(zip([name for name, *_rest in wanted], inside))
    if (found or is_on_host) and (found != expected or len(found) != len(wanted)):
        yield "ports", found, expected
        return
    if not (first <= plan.network.master_port <= last if is_on_host else plan.network.master_port == MASTER_PORT):
        yield "master_port", plan.network.master_port, request.port_range if is_on_host else MASTER_PORT
    for port, (name, _port, preferred, host_ip) in zip(plan.main.ports, wanted):
        if port.host_ip != host_ip:
            yield f"port {name}", port.host_ip, host_ip
        if port.host_port != preferred and not first <= port.host_port <= last:
            yield f"port {name}", port.host_port, request.port_range
    for container in plan.containers[1:]:
        if container.ports:
            yield f"{container.hostname}.ports", container.ports, ()


def _of_container(found: Container, wanted: Container, session: Session) -> Iterator[Difference]:
    known = ("name", "environment", "labels")
    yield from _of_fields(found, wanted, Container, known)
    names = container_names(session.owner, session.name, wanted.hostname, session.id)
    if found.name not in names:
        yield f"{wanted.hostname}.name", found.name, names[0]
    yield from _of_texts(wanted.hostname + ".environment", found.environment, wanted.environment)
    mine, theirs = (
        {name: text for name, text in one.labels.items() if name not in _FREE_LABELS} for one in (found, wanted)
    )
    yield from _of_texts(wanted.hostname + ".labels", mine, theirs)


def _of_fields(found: Any, wanted: Any, kind: Any, without: Collection[str]) -> Iterator[Difference]:
    for known in fields(kind):
        mine, theirs = getattr(found, known.name), getattr(wanted, known.name)
        if known.name not in without and mine != theirs:
            yield known.name, mine, theirs


def _of_texts(place: str, found: Mapping[str, str], wanted: Mapping[str, str]) -> Iterator[Difference]:
    for name in {**found, **wanted}:
        if found.get(name) != wanted.get(name):
            yield f"{place}.{name}", found.get(name), wanted.get(name)
