# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Prepare the texts and numbers of the page of sessions.yml; the template beside that playbook gives them their form."""

from __future__ import annotations

from dataclasses import replace
from typing import Dict, List, Mapping, Sequence, Tuple

from ...module_utils._shared.codec import Json
from ...module_utils._shared.documents.container_view import ContainerView
from ...module_utils._shared.documents.usage import NO_AMOUNTS, AgentView, Amounts, GroupView, OwnerView
from ...module_utils._shared.documents.view import SessionList, SessionView
from ...module_utils._shared.exits import OTHERWISE
from ...module_utils._shared.states import ENDED, VERIFIED
from ...module_utils._shared.text.table import busy_gpus
from ...module_utils._shared.units import show_time
from .lists import (
    CPUS,
    GPUS,
    MEMORY,
    Resource,
    address_column,
    agent_state,
    app_column,
    failures_of,
    folder_column,
    in_use,
    limits_of,
    owner_cells,
    place_column,
    remarks,
    resources_of,
    share_of,
)
from .plot import plot

# Seconds of the plots.
_DAY = 86400
MONTH = 30 * _DAY
_SPANS = (("The last 24 hours", _DAY), ("The last 30 days", MONTH))
# More parts of a reason are shown on demand.
_PARTS = 3
# How a reason ends if the lifetimes and timeouts of what runs give a time.
_STARTS = "; it starts by "
_KINDS = {"RUNNING": "ok", "TERMINATED": "off", "CANCELLED": "off", "ERROR": "bad"}
_FILTERS = {"TERMINATED": "finished", "ERROR": "other", "CANCELLED": "other"}
# Boxes of a drawing for each agent. Of more containers, those that do not run come first, and a number stands for the rest.
_BOXES = 32
_AGENTS = 12
_MAY_RUN = ("unknown", "created", "paused", "restarting", "waiting", *OTHERWISE)


def page_of(listed: SessionList) -> Json:
    """All that the page shows of a list of C(session_info)."""
    agents, sessions, owners, now = listed.agents, listed.sessions, listed.owners, float(listed.time)
    capacity = capacity_of(agents)
    colors = colors_of(owners, capacity)
    resources = [one for one in RESOURCES if capacity.gpus or one is not GPUS]
    waiting = [session for session in sessions if session.waits]
    return {
        "time": now,
        "names": sorted({session.owner for session in sessions}),
        "tiles": tiles(agents, colors),
        "count": session_count(sessions, owners),
        "resources": [one.name for one in resources],
        "owners": owner_rows(owners, colors, resources),
        "groups": group_rows(listed.groups, resources),
        "waiting": [waiting_row(session) for session in sorted(waiting, key=place_column)],
        "sessions": [session_row(session) for session in reversed(sessions) if not session.waits],
        "plots": [{"title": title, **plot(listed.samples, now - span, now)} for title, span in _SPANS],
        "agents": [agent_card(agent, colors) for agent in agents],
    }


def waiting_row(session: SessionView) -> Json:
    """A session that waits, with its turn in the queue of all owners. Its reason has a part for each agent."""
    reason, _marker, start = session.reason.partition(_STARTS)
    parts = reason.split("; ")
    return {
        "turn": session.turn or "–",
        "name": session.name,
        "owner": session.owner,
        "asks": _times(session) + resources_of(session),
        "priority": session.priority,
        "since": session.created,
        "start": start,
        "reason": reason if len(parts) <= _PARTS else parts[0],
        "parts": parts if len(parts) > _PARTS else [],
    }


def session_row(session: SessionView) -> Json:
    state = session.state
    is_ill = session.degraded or failures_of(session)
    return {
        "name": session.name,
        "owner": session.owner,
        "filter": _FILTERS.get(state, "running"),
        "kind": "warn" if is_ill else _KINDS.get(state, "warn"),
        "state": state + (f" ({session.result})" if session.result else ""),
        # The time that is left has a cell of its own.
        "remarks": [*remarks(session), *(text for text in limits_of(session) if not text.endswith(" left"))],
        "drawing": drawing(session.containers),
        "resources": _times(session) + resources_of(session),
        "use": in_use(session.measured),
        "started": session.started,
        "ends": session.ends if session.runs else None,
        "ended": session.changed if state in ENDED else None,
        "apps": [
            {"text": app.name + (":%d" % app.port if app.port else ""), "address": address_column(app)}
            for app in session.apps
        ],
        **_details(session),
    }


def _times(session: SessionView) -> str:
    return "%d × " % session.size if session.size != 1 and not session.roles else ""


def _details(session: SessionView) -> Json:
    """Return what is shown on demand, below why a session is as it is; for one that only runs, below its image."""
    kind = "compute session" if session.kind == "compute" else f"cluster session, {session.mode}"
    reason = session.reason
    facts = (
        ("Kind", kind),
        ("Image", session.image or "–"),
        ("Group", session.group),
        ("Priority", session.priority),
        ("Apps", app_column(session) or "–"),
        ("Data directories", folder_column(session)),
        ("ID", session.id),
    )
    history = [(show_time(entry.time), entry.after, entry.reason) for entry in session.history]
    headline = session.image or kind if reason in ("", VERIFIED) else reason
    return {"headline": headline, "facts": facts, "history": history}


def drawing(containers: Sequence[ContainerView]) -> Json:
    """A compact drawing of containers over their agents: a box for each container, a row for each agent."""
    by_agent: Dict[str, List[ContainerView]] = {}
    for container in containers:
        by_agent.setdefault(container.agent, []).append(container)
    rows = [_drawn(agent, held) for agent, held in list(by_agent.items())[:_AGENTS]]
    return {"rows": rows, "more": len(by_agent) - len(rows)}


def _drawn(agent: str, containers: Sequence[ContainerView]) -> Json:
    chosen = containers
    if len(containers) > _BOXES:
        chosen = sorted(containers, key=lambda container: container.state == "running")[:_BOXES]
    return {"agent": agent, "boxes": [_box(one) for one in chosen], "more": len(containers) - len(chosen)}


def _box(container: ContainerView) -> Json:
    state = container.state
    kind = "ok" if state == "running" else "warn" if state in _MAY_RUN else "bad"
    use = in_use(container.measured)
    title = f"{container.hostname}: {state}{f', {use}' if use else ''}"
    return {"title": title, "kind": kind + (" main" if container.hostname == "main1" else "")}


# The owners with the most have a color each; the others share the last one.
COLORS = 8


_MEMORY = replace(MEMORY, show=lambda amount: MEMORY.show(amount) if amount else "0")
RESOURCES = (CPUS, _MEMORY, GPUS)


def capacity_of(agents: Sequence[AgentView]) -> Amounts:
    """Return what all agents that answer have together."""
    return Amounts.sum_of(agent.capacity for agent in agents if agent.reachable)


def colors_of(owners: Sequence[OwnerView], capacity: Amounts) -> Dict[str, str]:
    """The class of each owner's color, those with the most first: the same on the whole page."""

    def weight(owner: OwnerView) -> float:
        return float(sum(one.of(owner.used) / one.of(capacity) for one in RESOURCES if one.of(capacity)))

    ranked = sorted(owners, key=lambda owner: (-weight(owner), owner.owner))
    return {owner.owner: "c%d" % min(number, COLORS - 1) for number, owner in enumerate(ranked)}


def amount_bar(parts: Sequence[Tuple[str, float]], capacity: float, label: str, measured: float | None = None) -> Json:
    """A bar of amounts by color. ``label`` is what it is read out as. Below it, a thin bar shows what is really in use."""
    shown, start = [], 0.0
    for color, amount in parts:
        width = _percent(amount, capacity)
        shown.append({"color": color, "start": f"{start:.4g}%", "width": f"{width:.4g}%"})
        start += width
    used = None if measured is None else f"{_percent(measured, capacity):.4g}%"
    return {"label": label, "parts": shown, "used": used}


def _percent(amount: float, capacity: float) -> float:
    return min(100.0, 100.0 * amount / capacity) if capacity > 0 else 0.0


def tiles(agents: Sequence[AgentView], colors: Mapping[str, str]) -> List[Json]:
    capacity = capacity_of(agents)
    usable = [agent for agent in agents if agent.reachable]
    return [_tile(one, usable, one.of(capacity), colors) for one in RESOURCES if one.of(capacity)]


def _tile(resource: Resource, agents: Sequence[AgentView], whole: float, colors: Mapping[str, str]) -> Json:
    of, show = resource.of, resource.show
    used = sum(of(agent.used) for agent in agents)
    free = [of(agent.free) for agent in agents if agent.schedulable]
    parts = [
        (color, sum(of(agent.owners.get(owner, NO_AMOUNTS)) for agent in agents)) for owner, color in colors.items()
    ]
    in_use = _in_use(resource, agents)
    notes = [f"{show(used)} of {show(whole)} allocated"]
    notes += [f"{show(in_use)} in use"] if in_use is not None and resource is not GPUS else []
    notes += [f"at most {show(max(free))} free on one agent"] if len(free) > 1 else []
    note = ", ".join(notes)
    amounts = amount_bar(parts, whole, f"{resource.name}: {note}", in_use)
    return {"name": resource.name, "free": show(sum(free)), "bar": amounts, "note": note}


def _in_use(resource: Resource, agents: Sequence[AgentView]) -> float | None:
    """Return what was measured on these agents; of GPUs, as the number of busy devices. None if nothing was."""
    measured = [agent.measured for agent in agents if agent.measured]
    if resource is GPUS:
        return busy_gpus(measured)
    return round(sum(map(resource.of, measured)), -2) if measured else None


def session_count(sessions: Sequence[SessionView], owners: Sequence[OwnerView]) -> Json:
    """Return how many sessions run, and what else can be counted."""
    notes = [f"{sum(owner.waiting for owner in owners)} waiting"]
    notes.append(f"{sum(owner.containers for owner in owners)} containers")
    degraded, unhealthy = (one.degraded for one in sessions), map(failures_of, sessions)
    for word, found in (("degraded", degraded), ("unhealthy", unhealthy)):
        count = sum(map(bool, found))
        notes += [f"{count} {word}"] if count else []
    return {"running": sum(owner.sessions for owner in owners), "note": ", ".join(notes)}


def owner_rows(owners: Sequence[OwnerView], colors: Mapping[str, str], resources: Sequence[Resource]) -> List[Json]:
    by_name = {owner.owner: owner for owner in owners}
    return [
        {"name": name, "color": color, "cells": owner_cells(by_name[name], resources)} for name, color in colors.items()
    ]


def group_rows(groups: Sequence[GroupView], resources: Sequence[Resource]) -> List[Json]:
    """Return what is allocated of each resource group, and the owner's part; none if it would repeat what is free in all of them."""
    if len(groups) < 2 and not any(group.own for group in groups):
        return []
    shown = [(one, [share_of(one, each) for each in resources]) for one in groups]
    return [{"name": one.group, "color": "", "cells": [one.agents, *shares]} for one, shares in shown]


def agent_card(agent: AgentView, colors: Mapping[str, str]) -> Json:
    """An agent, with a bar for each resource that it has."""
    state = agent_state(agent)
    kind = "ok" if state == "up" else "warn" if agent.reachable else "bad"
    shown = [one for one in RESOURCES if one.of(agent.capacity) or one.of(agent.used)]
    bars = [_agent_bar(resource, agent, colors) for resource in shown]
    return {"name": agent.name, "group": agent.group, "state": state, "kind": kind, "bars": bars}


def _agent_bar(resource: Resource, agent: AgentView, colors: Mapping[str, str]) -> Json:
    of, capacity = resource.of, resource.of(agent.capacity)
    label = f"{resource.name} {resource.show(of(agent.used))} of {resource.show(capacity)}"
    parts = [(color, of(agent.owners[owner])) for owner, color in colors.items() if owner in agent.owners]
    return amount_bar(parts, capacity, label, _in_use(resource, [agent]))
