# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Documents for tests: agents, requests, plans, and what engines report of containers that a plan describes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ansible_collections.cluster.compute.plugins.module_utils._head.snapshot import Context
from ansible_collections.cluster.compute.plugins.module_utils._shared import label
from ansible_collections.cluster.compute.plugins.module_utils._shared.codec import Json
from ansible_collections.cluster.compute.plugins.module_utils._shared.constants import MULTI_NODE, SINGLE_NODE
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.decision import (
    DecidedSession,
    Decision,
    Holder,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import Container, Gpu, Plan, Port
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.report import (
    AgentReport,
    AppState,
    Capacity,
    EngineNetwork,
    EngineState,
    ImageState,
    ObservedContainer,
    SwarmPlace,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.addresses import choose_subnet
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.capacity import (
    FreeCapacity,
    PerContainer,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.placement import Placement, free_of
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.plan import (
    PlanInputs,
    build_plan,
    mtu_for,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.request import Request
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.request_checks import check_request

GIB = 1 << 30
# What a session waits for that empty agents could not hold.
NEVER = "no host can hold this as they are: largest free when empty %s; add a host or ask for less"
SESSION = "3614fdf3-0e04-4a4b-9d5c-1f7c0a8e6b11"
PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGtra2tra2tra2tra2tra2tra2tra2tra2tra2tra2tr alice@laptop"
LAUNCH = "0b7f5a3e-58a1-4f0b-9f35-6a4f2d8f3a10"


def agent(name: str = "a", cpus: float = 4, memory: int = 16 * GIB, **fields: Any) -> AgentReport:
    """An agent of one Swarm, big enough for a few small containers. Parts of ``place`` and ``image_architecture`` are fields here."""
    own = {key: fields.pop(key) for key in ("node_id", "manager", "managers", "state") if key in fields}
    place = SwarmPlace(**{"state": "active", **own}, cluster_id=fields.pop("swarm", "swarm1"))
    gpus = tuple(gpu if isinstance(gpu, Gpu) else Gpu(gpu) for gpu in fields.pop("gpus", ()))
    capacity = Capacity(int(cpus * 1000), memory, gpus, fields.pop("cpu_ids", tuple(range(int(cpus)))))
    image = ImageState(architecture=fields.pop("image_architecture", ""))
    return AgentReport(name, capacity=capacity, engine=EngineState(swarm=place), image=image, **fields)


def frees(*agents: AgentReport) -> dict[str, FreeCapacity]:
    """The free capacity of agents that hold nothing."""
    return {empty.name: free_of(empty, []) for empty in agents}


def request(**variables: Any) -> Request:
    """A checked request from the variables of the role, without their prefix."""
    return check_request({"name": "train", "owner": "alice", "image": "reference", **variables})


def context(*agents: AgentReport, now: float = 1000.0, holder: Holder | None = None, **fields: Any) -> Context:
    """The context of a decision of alice at the time ``now``."""
    asking = holder or Holder(host="controller", user="alice", pid=42, start="1")
    return Context(agents=tuple(agents), holder=asking, now=now, **fields)


def plan(asked: Request, placement: str | Sequence[str] = "", **inputs: Any) -> Plan:
    """The plan of a request on the named agents, one letter per rank: ``aabb``; ``inputs`` are those of ``PlanInputs``."""
    names = tuple(placement or "a" * asked.size)
    gpus = {name: [Gpu("%s-GPU-%d" % (name, number), 4.0) for number in range(8)] for name in names}
    agents = {name: agent(name, cpus=64, gpus=gpus[name]) for name in names}
    free = frees(*agents.values())
    mode = SINGLE_NODE if len(agents) == 1 else MULTI_NODE
    parts = [asked.part_of(member.role) for member in asked.members]
    each = [PerContainer(one.millicpus, one.memory, one.shm, one.gpus, one.pinned, asked.fabric) for one in parts]
    usual = PlanInputs(
        session_id=SESSION,
        launch=LAUNCH,
        placement=Placement(names, tuple(free[name].take(one) for name, one in zip(names, each, strict=True)), mode),
        subnet=choose_subnet(asked.size, asked.network_pool, ()),
        ports=(Port("ssh", 22, "127.0.0.1", 30000),),
        mtu=mtu_for(mode, list(agents.values()), names),
        fabric="10.201.0.32/27" if asked.fabric else "",
    )
    return build_plan(asked, replace(usual, **inputs))


def running_row(made: Plan) -> Json:
    """The session of a plan as the head answers it."""
    texts = {"name": "train", "owner": "alice", "state": "RUNNING", "reason": ""}
    return {"id": made.session.id, **texts, "created": 1.0, "changed": 2.0}


def decision(outcome: str, made: Plan | None = None, row: Json | None = None, **fields: Any) -> Decision:
    """A decision of the head, with the ``row`` of the session as the head answers it, or that of the plan."""
    session = row or (running_row(made) if made else {"id": SESSION, "name": "train"})
    return Decision(outcome, DecidedSession.from_json(session), plan=made, **fields)


def observed(container: Container, session: str, state: str = "running", created: float = 500.0) -> ObservedContainer:
    """What an engine reports of a container of a plan."""
    return ObservedContainer(
        id=container.id,
        session=session,
        hostname=container.hostname,
        rank=container.rank,
        launch=container.labels[label.LAUNCH],
        spec=container.labels[label.SPEC],
        state=state,
        exit_code=0 if state == "running" else 137,
        created=created,
        address=container.address,
        resources=container.resources,
        ports=tuple(port.host_port for port in container.ports),
        labels=dict(container.labels),
    )


def seen_with(container: ObservedContainer, **parts: Any) -> ObservedContainer:
    """The container with other parts of its document."""
    return ObservedContainer.from_json({**container.to_json(), **parts})


def with_capacity(one: AgentReport, **amounts: Any) -> AgentReport:
    """The agent with other amounts."""
    return replace(one, capacity=replace(one.capacity, **amounts))


def with_place(one: AgentReport, **place: Any) -> AgentReport:
    """The agent at another place in a Swarm."""
    return replace(one, engine=replace(one.engine, swarm=replace(one.engine.swarm, **place)))


def carried_out(
    agents: Iterable[AgentReport], *plans: Plan, states: Mapping[str, str] | None = None
) -> tuple[AgentReport, ...]:
    """The agents with the plans' containers on them; ``states`` by hostname, and ``gone`` for a removed container."""
    return tuple(_with_plans(bare, plans, states or {}) for bare in agents)


def _with_plans(bare: AgentReport, plans: Iterable[Plan], states: Mapping[str, str]) -> AgentReport:
    found, ports, networks = list(bare.containers), list(bare.ports), list(bare.networks)
    for made in plans:
        present = [container for container in made.on(bare.name) if states.get(container.hostname) != "gone"]
        for container in present:
            state = states.get(container.hostname, "running")
            found.append(observed(container, made.session.id, state))
            ports += [port.host_port for port in container.ports if state == "running"]
        if bare.name in made.agents:
            networks.append(EngineNetwork(subnets=(made.network.subnet,), session=made.session.id))
    return replace(bare, containers=tuple(found), networks=tuple(networks), ports=tuple(ports))


def with_apps(agents: Iterable[AgentReport], *apps: Json) -> tuple[AgentReport, ...]:
    """The agents, of which each main1 reports these apps."""
    found = tuple(AppState.from_json(app) for app in apps)

    def of(bare: AgentReport) -> AgentReport:
        changed = (replace(one, apps=found) if one.hostname == "main1" else one for one in bare.containers)
        return replace(bare, containers=tuple(changed))

    return tuple(of(bare) for bare in agents)


def exactly(text: str) -> str:
    """A pattern for the whole of a message."""
    return "^%s$" % re.escape(text)
