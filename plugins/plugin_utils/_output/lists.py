# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The tables of sessions.yml: sessions, owners, resource groups and agents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterable, List, Sequence, Tuple

from ...module_utils._shared.documents.report import RED, Measured
from ...module_utils._shared.documents.usage import AgentView, Amounts, GroupView, OwnerView
from ...module_utils._shared.documents.view import AppView, SessionList, SessionView
from ...module_utils._shared.states import ENDED
from ...module_utils._shared.text.table import busy_percents, gpu_parts, table
from ...module_utils._shared.units import show_bytes, show_cpus, show_seconds, show_time
from .._settings.playbook_settings import ALL_COLUMNS, COLUMNS

# What a list shows where a session has no data folder: its files are removed with it.
NO_FOLDER = "none"
# The resources of a session with roles in the usual table, where those of one session would make every line wide.
BY_ROLE = "by role"
# Columns of a table, unless the environment names another number.
WIDTH = 120


@dataclass(frozen=True)
class Resource:
    """A resource: its name, its part of amounts, and how that is shown."""

    name: str
    of: Callable[[Any], Any]
    show: Callable[[float], str]


CPUS = Resource("CPUs", lambda one: one.millicpus, lambda amount: show_cpus(int(amount)))
MEMORY = Resource("Memory", lambda one: one.memory, lambda amount: show_bytes(int(amount)))
GPUS = Resource("GPUs", lambda one: one.gpus, "{:g}".format)
_RESOURCES = (CPUS, MEMORY, GPUS)
# The usual columns; those that are empty in every line are left out.
USUAL = ("session", "owner", "state", "turn", "priority", "size", "each", "started", "end", "result", "reason")


def list_lines(listed: SessionList, name: str, columns: Sequence[str] = (), width: int = WIDTH) -> List[str]:
    """A list as tables: sessions, owners, resource groups and agents. ``name`` is that of the only session to show."""
    if name and not listed.sessions:
        return [f"No session matches session_name {name}."]
    tables = (
        sessions_table(listed.sessions, columns, width),
        owners_table(listed.owners),
        groups_table(listed.groups),
        agents_table(listed.agents, width),
    )
    return [line for lines in tables for line in (*lines, "")][:-1]


def sessions_table(sessions: Sequence[SessionView], columns: Sequence[str] = (), width: int = WIDTH) -> List[str]:
    """A line for every session: those that run, those that wait in the order of the queue, and those that have ended."""
    chosen = COLUMNS if ALL_COLUMNS in columns else tuple(columns) or USUAL
    cells = SHOWN if columns else {**SHOWN, "each": _each}
    rows = [[cells[name](session) or "-" for name in chosen] for session in sorted(sessions, key=place_column)]
    shown = [
        place
        for place, name in enumerate(chosen)
        if columns or name in ("session", "state") or any(row[place] != "-" for row in rows)
    ]
    return table([chosen[place] for place in shown], [[row[place] for place in shown] for row in rows], width)


def place_column(session: SessionView) -> Tuple[int, float]:
    """Return what runs by age, then what waits by turn, then what has ended by its end."""
    if session.state in ENDED:
        return 2, session.changed
    return (1, session.turn) if session.turn else (0, session.created)


def app_column(session: SessionView) -> str:
    return ", ".join(f"{app.name} {address_column(app)}" for app in session.apps)


def _time(seconds: float | None) -> str:
    return show_time(seconds)[len("2026-") :] if seconds else ""


def _reason(session: SessionView) -> str:
    gpus = gpu_column(session.measured)
    return "; ".join(filter(None, (session.reason, *limits_of(session), gpus and f"{gpus} in use")))


def _size(session: SessionView) -> str:
    return "%d %s" % (session.size, session.mode) if session.size > 1 else str(session.size)


def state_column(session: SessionView) -> str:
    """The state, with a word for the first thing that is wrong; the reason has the others.

    >>> state_column(SessionView("uuid", "train", "alice", "RUNNING", degraded=("sub1",)))
    'RUNNING (degraded)'
    """
    words = [remark.partition(":")[0] for remark in remarks(session)]
    return f"{session.state} ({words[0]})" if words else session.state


def remarks(session: SessionView) -> List[str]:
    """Return what a running session lacks, what has failed in it, and how its command ended."""
    if not session.runs:
        return []
    if session.limit_reached:
        return ["ended"]
    lists = (("degraded", session.degraded), ("paused", session.paused), ("unhealthy", failures_of(session)))
    found = [f"{word}: {', '.join(names)}" for word, names in lists if names]
    command = session.command
    if command and command.has_ended:
        found.append("command failed" if command.exit_code else "command succeeded")
    elif command and not command.begun:
        found.append("command does not run")
    return found


def failures_of(session: SessionView) -> List[str]:
    """Return what has failed besides the command of main1, whose failure is a result."""
    return [name for name in session.unhealthy if name != "command"]


def limits_of(session: SessionView) -> List[str]:
    """When a running session ends by itself, by the clock of the head, which has placed it."""
    if not session.runs or session.limit_reached:
        return []
    left = "" if session.time_left is None else f"{show_seconds(session.time_left)} left"
    idle = f"ends when idle for {show_seconds(session.idle_timeout)}" if session.idle_timeout else ""
    return list(filter(None, (left, idle)))


def resources_of(session: SessionView) -> str:
    """The resources of each container, or of each container of a role; GPUs only if it has any."""
    if session.roles:
        return "; ".join("%d %s: %s" % (role.size, role.name, show_amounts(role)) for role in session.roles)
    parts = "; ".join(gpu_parts(session.each.gpus))
    return show_amounts(session.amounts) + (f" ({parts})" if parts else "")


def _each(session: SessionView) -> str:
    return BY_ROLE if session.roles else resources_of(session)


def show_amounts(amounts: Amounts) -> str:
    """CPUs, memory and, if there are any, GPUs.

    >>> show_amounts(Amounts(500, 1 << 30, 2))
    '0.5 CPUs, 1g, 2 GPUs'
    """
    gpus = f", {amounts.gpus:g} GPUs" if amounts.gpus else ""
    return f"{show_cpus(int(amounts.millicpus))} CPUs, {show_bytes(int(amounts.memory))}{gpus}"


def in_use(measured: Measured | None) -> str:
    """Return what was measured; empty if nothing was."""
    if not measured:
        return ""
    amounts = f"{show_cpus(round(int(measured.millicpus), -2))} CPUs, {show_bytes(int(measured.memory))}"
    return ", ".join(filter(None, (amounts, gpu_column(measured))))


def gpu_column(measured: Measured | None) -> str:
    """The mean utilization of GPUs; empty if none was measured.

    >>> from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.report import GpuUse
    >>> gpu_column(Measured(0, 0, tuple(GpuUse("GPU-1", percent) for percent in (0, 50, None))))
    'GPUs 25%'
    """
    percents = busy_percents([measured])
    return "GPUs %d%%" % round(sum(percents) / len(percents)) if percents else ""


def folder_column(session: SessionView) -> str:
    if session.folders is None:
        return "?"
    return ", ".join(folder.target for folder in session.folders) or NO_FOLDER


def address_column(app: AppView) -> str:
    """Address and port of an app. A loopback address is one of its agent; an app without a port is reached by SSH.

    >>> address_column(AppView("lab", "2001:db8::7", 30001, "node1"))
    '[2001:db8::7]:30001'
    >>> address_column(AppView("lab", "127.0.0.1", 30001, "node1"))
    '127.0.0.1:30001 on node1'
    """
    if not app.port:
        return "by SSH tunnel"
    host = f"[{app.address}]" if ":" in app.address else app.address
    where = f" on {app.agent}" if host.startswith("127.") else ""
    return "%s:%d%s" % (host, app.port, where)


def owners_table(owners: Sequence[OwnerView]) -> List[str]:
    """A line for every owner: what the owner's sessions hold, how much a policy allows, and what is left."""
    rows = [(owner.owner, *owner_cells(owner, _RESOURCES)) for owner in owners]
    header = ("owner", "sessions", "waiting", "containers", "cpus", "memory", "gpus", "may still have")
    return table(header, rows)


def owner_cells(owner: OwnerView, resources: Iterable[Resource]) -> List[object]:
    """Return what the owner has of these resources, and what a policy allows."""
    return [
        _of_allowed(owner.sessions, owner.allowed.sessions, str),
        owner.waiting,
        _of_allowed(owner.containers, owner.allowed.containers, str),
        *(_of_allowed(one.of(owner.used), one.of(owner.allowed), one.show) for one in resources),
        show_amounts(owner.available),
    ]


def groups_table(groups: Sequence[GroupView]) -> List[str]:
    """A line for every resource group: what is allocated of its capacity, and the owner's part of that."""
    rows = [(one.group, one.agents, *(share_of(one, resource) for resource in _RESOURCES)) for one in groups]
    return table(("group", "agents", "cpus", "memory", "gpus"), rows)


def share_of(group: GroupView, resource: Resource) -> str:
    """Return what is allocated of a resource, and the owner's part, also of what the quotas permit if that is less than the group has.

    >>> parts = [Amounts(0, 0, gpus) for gpus in (8, 2, 1)]
    >>> groups = [GroupView("default", 2, *parts, Amounts(0, 0, most)) for most in (8, 4)]
    >>> tuple(share_of(group, GPUS) for group in groups)
    ('2 of 8, 1 own', '2 of 8, 1 own of 4')
    """
    show, capacity = resource.show, resource.of(group.capacity)
    shares = f"{show(resource.of(group.used))} of {show(capacity)}"
    if group.own is None:
        return shares
    most = resource.of(group.own_most)
    return f"{shares}, {show(resource.of(group.own))} own{f' of {show(most)}' if most < capacity else ''}"


def _of_allowed(used: float, allowed: float | None, show: Callable[[Any], str]) -> str:
    """Return what an owner uses of what a policy allows; without a policy, only what the owner uses."""
    return show(used) if allowed is None else f"{show(used)} of {show(allowed)}"


def agents_table(agents: Sequence[AgentView], width: int = WIDTH) -> List[str]:
    """A line for every agent: how much of its capacity is allocated, and how much of that is in use."""
    kinds = {agent.architecture for agent in agents if agent.reachable}
    differ = len(kinds) > 1
    rows = [
        (
            agent.name,
            *([agent.architecture or "-"] if differ else ()),
            agent.group,
            *(f"{one.show(one.of(agent.used))} of {one.show(one.of(agent.capacity))}" for one in _RESOURCES),
            in_use(agent.measured) or "-",
            agent_state(agent),
        )
        for agent in agents
    ]
    return table(
        ("agent", *(["architecture"] if differ else ()), "group", "cpus", "memory", "gpus", "in use", "state"),
        rows,
        width,
    )


def agent_state(agent: AgentView) -> str:
    """Return whether an agent answers and takes new sessions, and the GPUs that no session gets."""
    if not agent.reachable:
        return f"lost: {agent.reason}"
    red = [f"{gpu.id} is red: {', '.join(gpu.reasons)}" for gpu in agent.gpu_health if gpu.state == RED]
    sharing = agent.gpu_sharing
    fault = [sharing.reason] if sharing.kind != "none" and sharing.reason else []
    return "; ".join(["up" if agent.schedulable else "up, takes no new sessions", *red, *fault])


# What each column shows of a session; an empty text for nothing.
SHOWN: Dict[str, Callable[[SessionView], str]] = {
    "session": lambda session: session.name,
    "owner": lambda session: session.owner,
    "state": state_column,
    "turn": lambda session: str(session.turn or ""),
    "priority": lambda session: str(session.priority),
    "group": lambda session: session.group,
    "kind": lambda session: session.kind,
    "size": _size,
    "each": resources_of,
    "in use": lambda session: in_use(session.measured),
    "image": lambda session: session.image,
    "started": lambda session: _time(session.started),
    "end": lambda session: _time(session.changed) if session.state in ENDED else "",
    "result": lambda session: session.result,
    "agents": lambda session: ", ".join(session.agents),
    "folders": folder_column,
    "apps": app_column,
    "reason": _reason,
}
