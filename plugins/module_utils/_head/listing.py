# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sessions and agents as a list shows them: the rows of the store joined with the engines' reports."""

from __future__ import annotations

from dataclasses import replace
from typing import Iterable, List, Mapping, Sequence, Tuple

from .._shared import label, states
from .._shared.codec import subset
from .._shared.constants import RELOCATE
from .._shared.documents.condition import compared
from .._shared.documents.container_view import ContainerView, failed_apps, failed_roles, limit_reached
from .._shared.documents.plan import Container, Gpu, Plan, Resources, Role
from .._shared.documents.report import AgentReport, Measured, ObservedContainer
from .._shared.documents.usage import AgentView, Amounts
from .._shared.documents.view import RoleView, SessionView
from .._shared.exits import OTHERWISE, UP, WITH_COMMAND
from .._shared.planning.placement import free_of
from .session_record import SessionRecord
from .session_view import HEALING, apps_of, folders_of, started_containers
from .usage import held_amounts

_OF_ROW = "id name owner state result reason priority launch created changed".split()
# By agent and ID: an agent that was lost may come back with old containers of a session that has moved.
Observed = Mapping[Tuple[str, str], ObservedContainer]


def list_sessions(rows: Iterable[SessionRecord], agents: Sequence[AgentReport]) -> List[SessionView]:
    """Every session with its containers.

    ``degraded`` names those that a RUNNING session lacks, ``unhealthy`` its apps and its commands that have failed.
    """
    observed = {(agent.name, container.id): container for agent in agents for container in agent.containers}
    return [_session(row, observed, agents) for row in rows]


def list_agents(
    held: Mapping[str, Mapping[str, Sequence[Resources]]], agents: Sequence[AgentReport]
) -> List[AgentView]:
    """Return what each agent has and what is booked on it, launches included; a PENDING session has nothing booked."""
    return [_agent(agent, held[agent.name]) for agent in agents]


def _session(row: SessionRecord, observed: Observed, agents: Sequence[AgentReport]) -> SessionView:
    session, containers = row.settings, _containers(row, observed, agents)
    # A session that has ended by itself lacks nothing.
    is_over = bool(limit_reached(containers))
    lacking = tuple(one.hostname for one in containers if one.state not in UP and not is_over)
    view = SessionView(
        **subset(row, *_OF_ROW),
        holder=row.holder,
        group=row.resource_group,
        agents=tuple(dict.fromkeys(container.agent for container in containers)),
        containers=containers,
        command=next((one.batch for one in containers if one.rank == 0 and one.batch), None),
        # When the session ends by itself: seconds, 0 for never, and the time at which its lifetime is over.
        **subset(session, "lifetime", "idle_timeout"),
        ends=session.began + session.lifetime if session.lifetime else None,
        # What schedule.yml does about it on its next run.
        **subset(session, "on_failure", "on_lost", "restarts", "terminate_when_done"),
        history=row.history,
        request=row.request.to_json() if row.request and _is_launchable(row, containers, lacking) else None,
        started=started_containers(row),
        apps=tuple(apps_of(row, agents)),
        folders=folders_of(row),
        measured=_sum_of(container.measured for container in containers),
    )
    if row.state == states.RUNNING:
        view = replace(view, degraded=lacking, unhealthy=_failed(view))
    return _with_shape(view, row, observed)


def _failed(session: SessionView) -> Tuple[str, ...]:
    apps = [f"app {app.name}" for app in failed_apps(session.containers)]
    roles = [f"command of {one.hostname}" for one in failed_roles(session.containers)]
    return (*apps, *roles, *(["command"] if session.command and session.command.exit_code else []))


def _is_launchable(row: SessionRecord, containers: Sequence[ContainerView], lacking: Sequence[str]) -> bool:
    """Return whether schedule.yml may launch it: it waits, or it has lost containers or apps and asks for them."""
    heals = row.settings.on_failure in HEALING or row.settings.on_lost == RELOCATE
    has_lost = bool(lacking or failed_apps(containers))
    return row.state == states.PENDING or (row.state == states.RUNNING and heals and has_lost)


def _containers(row: SessionRecord, observed: Observed, agents: Sequence[AgentReport]) -> Tuple[ContainerView, ...]:
    # Waiting sessions have no containers. Searching all agents for each of hundreds of them would be slow.
    if row.state not in states.HOLDING:
        return ()
    if not row.plan:
        pairs = ((agent, container) for agent in agents for container in agent.containers)
        return tuple(_adopted(agent, container) for agent, container in pairs if container.session == row.id)
    reachable = {agent.name for agent in agents if agent.reachable}
    return tuple(
        _planned(row.plan, container, observed.get((container.agent, container.id)), container.agent in reachable)
        for container in row.plan.containers
    )


def _planned(plan: Plan, container: Container, seen: ObservedContainer | None, is_reachable: bool) -> ContainerView:
    """A container of a plan, as its engine reports it."""
    known = subset(container, "hostname", "agent", "address", "rank", "id")
    view = ContainerView(**known, state="missing" if is_reachable else "unknown")
    return _in_condition(view, compared(plan, container, seen)) if seen else view


def _adopted(agent: AgentReport, container: ObservedContainer) -> ContainerView:
    """A container of a session without a plan, from its labels alone."""
    address, rank = container.address, container.rank
    view = ContainerView(container.hostname, agent.name, container.state, address, rank, container.id)
    return _in_condition(view, container)


def _in_condition(view: ContainerView, seen: ObservedContainer) -> ContainerView:
    """The container with its state; if it has stopped, also how it ended. One that has ended with its command has the end of that."""
    if seen.state in ("running", *OTHERWISE):
        return replace(
            view,
            state=seen.state,
            batch=seen.batch,
            apps=seen.apps or (),
            measured=seen.measured,
            fault=seen.fault or "",
        )
    command = seen.batch if seen.exit_code in WITH_COMMAND else None
    return replace(view, state=seen.state, exit_code=seen.exit_code, oom_killed=seen.oom_killed, batch=command)


def _sum_of(measured: Iterable[Measured | None]) -> Measured | None:
    """The sum of what containers use, or None if none of them was measured."""
    known = [each for each in measured if each]
    return Measured.sum_of(known) if known else None


def _with_shape(view: SessionView, row: SessionRecord, observed: Observed) -> SessionView:
    """The session with size, mode, image and the resources of each container: from plan or request, else from the labels."""
    if row.plan:
        session = row.plan.session
        image = ", ".join(row.plan.images) if session.roles else session.image
        view = replace(view, size=session.size, mode=session.mode, image=image, roles=_roles(session.roles))
        return _of_equal(view, row.plan.main.resources)
    if row.request:
        request = row.request
        image = ", ".join(dict.fromkeys(part.image for part in request.parts))
        view = replace(view, size=request.size, mode=request.mode, image=image, roles=_roles(request.roles))
        view = _of_equal(view, Resources(request.millicpus, request.memory, request.shm))
        return replace(view, gpus=request.gpus)
    mine = (container for container in observed.values() if container.session == row.id)
    example = next((container for container in mine if container.describes_session), None)
    if example is None:
        return _of_equal(view, Resources())
    size, image = len(example.placement), example.image
    return _of_equal(replace(view, size=size, mode=example.label(label.MODE), image=image), example.resources)


def _roles(roles: Sequence[Role]) -> Tuple[RoleView, ...]:
    """Return what the containers of each role have."""
    return tuple(RoleView(**subset(one, "name", "size", "millicpus", "memory", "gpus")) for one in roles)


def _of_equal(view: SessionView, each: Resources) -> SessionView:
    """The session, whose containers have these resources each, unless it has roles."""
    gpus = round(sum(gpu.shares for gpu in each.gpus), 3)
    return replace(view, kind="compute" if view.size == 1 else "cluster", gpus=gpus, each=each)


def _agent(agent: AgentReport, held: Mapping[str, Sequence[Resources]]) -> AgentView:
    everything = [one for booked in held.values() for one in booked]
    own, free = agent.capacity, free_of(agent, everything)
    gpus = _whole(sum(part for part, _shares in free.gpus.values()))
    return AgentView(
        **subset(agent, "name", "group", "architecture", "reachable", "reason", "schedulable"),
        capacity=Amounts(own.millicpus, own.memory, _gpu_count(own.gpus)),
        used=held_amounts(everything),
        free=Amounts(max(0, free.millicpus), max(0, free.memory), gpus),
        owners={owner: held_amounts(booked) for owner, booked in sorted(held.items())},
        gpu_health=agent.gpu_health,
        gpu_sharing=agent.gpu_sharing,
        measured=_measured(agent),
    )


def _gpu_count(gpus: Sequence[Gpu]) -> float:
    """Return how many GPUs these are: a MIG device is less than one.

    >>> _gpu_count([Gpu("GPU-1", 4.0), Gpu("MIG-1", 0.4286, 1 << 30)])
    1.429
    """
    return _whole(sum(min(1.0, gpu.shares) for gpu in gpus))


def _whole(amount: float) -> float:
    rounded = round(amount, 3)
    return int(rounded) if rounded == int(rounded) else rounded


def _measured(agent: AgentReport) -> Measured | None:
    """Return what the sessions of an agent use now, and what its GPUs do; None if nothing was measured."""
    known = [container.measured for container in agent.containers if container.measured]
    if not known and not agent.gpu_use:
        return None
    return replace(Measured.sum_of(known), gpus=agent.gpu_use)
