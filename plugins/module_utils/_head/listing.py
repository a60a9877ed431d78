# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sessions and agents as a list shows them: the rows of the store joined with the engines' reports."""

from __future__ import annotations

from typing import Iterable, List, Mapping, Sequence, Tuple

from .._shared import label, states
from .._shared.codec import Json, subset
from .._shared.constants import RELOCATE
from .._shared.documents.condition import compared
from .._shared.documents.plan import Container, Gpu, Plan, Resources, Role
from .._shared.documents.report import AgentStatus, ObservedContainer
from .._shared.exits import OTHERWISE, UP, WITH_COMMAND, failed_apps, failed_roles, limit_reached
from .._shared.planning.placement import free_of
from .session_record import SessionRecord, amounts
from .session_view import HEALING, details

# What is shown of a container that runs.
_OF_RUNNING = ("batch", "apps", "measured", "fault")
# By agent and ID: an agent that was lost may come back with old containers of a session that has moved.
Observed = Mapping[Tuple[str, str], ObservedContainer]


def list_sessions(rows: Iterable[SessionRecord], agents: Sequence[AgentStatus]) -> List[Json]:
    """Every session with its containers.

    ``degraded`` names those that a RUNNING session lacks, ``unhealthy`` its apps and its commands that have failed.
    """
    observed = {(agent.name, container.id): container for agent in agents for container in agent.containers}
    return [_session(row, observed, agents) for row in rows]


def list_agents(held: Mapping[str, Mapping[str, Sequence[Resources]]], agents: Sequence[AgentStatus]) -> List[Json]:
    """Return what each agent has and what is booked on it, launches included; a PENDING session has nothing booked."""
    return [_agent(agent, held[agent.name]) for agent in agents]


def _session(row: SessionRecord, observed: Observed, agents: Sequence[AgentStatus]) -> Json:
    session, containers = row.settings, _containers(row, observed, agents)
    # A session that has ended by itself lacks nothing.
    is_over = bool(limit_reached(containers))
    lacking = [one["hostname"] for one in containers if one["state"] not in UP and not is_over]
    shape = _shape(row, observed)
    command = next((one["batch"] for one in containers if one["rank"] == 0 and "batch" in one), None)
    return {
        **row.to_json(),
        **shape,
        **details(row, shape["size"], containers, agents),
        "agents": list(dict.fromkeys(container["agent"] for container in containers)),
        "containers": containers,
        "degraded": lacking if row.state == states.RUNNING else [],
        "unhealthy": _failed(containers, command) if row.state == states.RUNNING else [],
        "command": command,
        # When the session ends by itself: seconds, 0 for never, and the time at which its lifetime is over.
        **subset(session, "lifetime", "idle_timeout"),
        "ends": session.began + session.lifetime if session.lifetime else None,
        # What schedule.yml does about it on its next run.
        **subset(session, "on_failure", "on_lost", "restarts", "terminate_when_done"),
        "history": row.history,
        "request": row.request.to_json() if row.request and _is_launchable(row, containers, lacking) else None,
    }


def _failed(containers: Sequence[Json], command: Json | None) -> List[str]:
    apps = [f"app {app['name']}" for app in failed_apps(containers)]
    roles = [f"command of {one['hostname']}" for one in failed_roles(containers)]
    return apps + roles + (["command"] if command and command["exit_code"] else [])


def _is_launchable(row: SessionRecord, containers: Sequence[Json], lacking: Sequence[str]) -> bool:
    """Return whether schedule.yml may launch it: it waits, or it has lost containers or apps and asks for them."""
    heals = row.settings.on_failure in HEALING or row.settings.on_lost == RELOCATE
    has_lost = bool(lacking or failed_apps(containers))
    return row.state == states.PENDING or (row.state == states.RUNNING and heals and has_lost)


def _containers(row: SessionRecord, observed: Observed, agents: Sequence[AgentStatus]) -> List[Json]:
    # Waiting sessions have no containers. Searching all agents for each of hundreds of them would be slow.
    if row.state not in states.HOLDING:
        return []
    if not row.plan:
        return [
            _adopted(agent, container)
            for agent in agents
            for container in agent.containers
            if container.session == row.id
        ]
    reachable = {agent.name for agent in agents if agent.reachable}
    return [
        _planned(row.plan, container, observed.get((container.agent, container.id)), container.agent in reachable)
        for container in row.plan.containers
    ]


def _planned(plan: Plan, container: Container, seen: ObservedContainer | None, is_reachable: bool) -> Json:
    """A container of a plan, as its engine reports it."""
    observed = compared(plan, container, seen) if seen else None
    return {
        **subset(container, "hostname", "agent", "address", "rank", "id"),
        **(_condition(observed) if observed else {"state": "missing" if is_reachable else "unknown"}),
    }


def _adopted(agent: AgentStatus, container: ObservedContainer) -> Json:
    """A container of a session without a plan, from its labels alone."""
    return {
        "hostname": container.hostname,
        "agent": agent.name,
        "address": container.data.get("address", ""),
        "rank": int(container.data.get("rank") or 0),
        "id": container.id,
        **_condition(container),
    }


def _condition(container: ObservedContainer) -> Json:
    """A container's state; if it has stopped, also how it ended. One that has ended with its command has the end of that."""
    data = container.data
    if container.state in ("running", *OTHERWISE):
        return {"state": container.state, **{name: data[name] for name in _OF_RUNNING if data.get(name)}}
    ended = {"exit_code": data.get("exit_code"), "oom_killed": bool(data.get("oom_killed"))}
    command = {"batch": data["batch"]} if ended["exit_code"] in WITH_COMMAND and data.get("batch") else {}
    return {"state": container.state, **ended, **command}


def _shape(row: SessionRecord, observed: Observed) -> Json:
    """Size, mode, image and the resources of each container: from the plan or the request, else from the labels."""
    if row.plan:
        session = row.plan.session
        image = ", ".join(row.plan.images) if session.roles else session.image
        return {**_shown(session.size, session.mode, image, row.plan.main.resources), **_roles(session.roles)}
    if row.request:
        request = row.request
        resources = Resources(request.millicpus, request.memory, request.shm)
        image = ", ".join(dict.fromkeys(part.image for part in request.parts))
        return {**_shown(request.size, request.mode, image, resources), "gpus": request.gpus, **_roles(request.roles)}
    mine = (container for container in observed.values() if container.session == row.id)
    example = next((container for container in mine if container.describes_session), None)
    if example is None:
        return _shown(0, "", "", Resources())
    size = len(example.placement)
    return _shown(size, example.label(label.MODE), str(example.data.get("image") or ""), example.resources)


def _roles(roles: Sequence[Role]) -> Json:
    """Return what the containers of each role have; nothing without roles."""
    shown = [subset(one, "name", "size", "millicpus", "memory", "gpus") for one in roles]
    return {"roles": shown} if shown else {}


def _shown(size: int, mode: str, image: str, resources: Resources) -> Json:
    gpus = round(sum(gpu.shares for gpu in resources.gpus), 3)
    return {"size": size, "mode": mode, "image": image, "gpus": gpus, "each": resources.to_json()}


def _agent(agent: AgentStatus, held: Mapping[str, Sequence[Resources]]) -> Json:
    owners = {owner: amounts(booked) for owner, booked in sorted(held.items())}
    everything = [one for booked in held.values() for one in booked]
    free = free_of(agent, everything)
    gpus = _whole(sum(part for part, _shares in free.gpus.values()))
    return {
        **subset(agent, "name", "group", "architecture", "reachable", "reason", "schedulable"),
        "capacity": {"millicpus": agent.millicpus, "memory": agent.memory, "gpus": _gpu_count(agent.gpus)},
        "used": amounts(everything),
        "free": {"millicpus": max(0, free.millicpus), "memory": max(0, free.memory), "gpus": gpus},
        "owners": owners,
        "gpu_health": [gpu.to_json() for gpu in agent.gpu_health],
        "gpu_sharing": agent.gpu_sharing.to_json(),
        "measured": _measured(agent),
    }


def _gpu_count(gpus: Sequence[Gpu]) -> float:
    """Return how many GPUs these are: a MIG device is less than one.

    >>> _gpu_count([Gpu("GPU-1", 4.0), Gpu("MIG-1", 0.4286, 1 << 30)])
    1.429
    """
    return _whole(sum(min(1.0, gpu.shares) for gpu in gpus))


def _whole(amount: float) -> float:
    rounded = round(amount, 3)
    return int(rounded) if rounded == int(rounded) else rounded


def _measured(agent: AgentStatus) -> Json | None:
    """Return what the sessions of an agent use now, and what its GPUs do; None if nothing was measured."""
    known = [container.data["measured"] for container in agent.containers if container.data.get("measured")]
    if not known and not agent.gpu_use:
        return None
    return {
        "millicpus": sum(each["millicpus"] for each in known),
        "memory": sum(each["memory"] for each in known),
        "gpus": list(agent.gpu_use),
    }
