# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is free and who has it, at a glance: a bar for each resource, a row for each owner, a card for each agent."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, List, Mapping, Sequence

from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json
from ansible_collections.cluster.compute.plugins.module_utils._core.units import show_bytes, show_cpus
from ansible_collections.cluster.compute.plugins.module_utils._page.bars import Colours, amount_bar
from ansible_collections.cluster.compute.plugins.module_utils._page.markup import Html, element, joined
from ansible_collections.cluster.compute.plugins.module_utils._tables import (
    agent_state,
    failed_apps_of,
    share_of,
    show_amounts,
)


@dataclass(frozen=True)
class Resource:
    """A resource: its key in a list, its name, and how an amount of it is shown."""

    key: str
    name: str
    show: Callable[[float], str]


RESOURCES = (
    Resource("millicpus", "CPUs", lambda amount: show_cpus(int(amount))),
    Resource("memory", "Memory", lambda amount: show_bytes(int(amount)) if amount else "0"),
    Resource("gpus", "GPUs", "{:g}".format),
)


def capacity_of(agents: Sequence[Json]) -> Mapping[str, float]:
    """What all agents that answer have together."""
    usable = [agent for agent in agents if agent["reachable"]]
    return {resource.key: sum(agent["capacity"][resource.key] for agent in usable) for resource in RESOURCES}


def tiles(agents: Sequence[Json], sessions: Sequence[Json], owners: Sequence[Json], colours: Colours) -> Html:
    """A tile for each resource that the agents have, and one for the number of sessions."""
    capacity = capacity_of(agents)
    shown = [_tile(resource, agents, capacity, colours) for resource in RESOURCES if capacity[resource.key]]
    running = sum(owner["sessions"] for owner in owners)
    waiting = sum(owner["waiting"] for owner in owners)
    degraded = sum(bool(session["degraded"]) for session in sessions)
    notes = ["%d waiting" % waiting, "%d containers" % sum(owner["containers"] for owner in owners)]
    notes += ["%d degraded" % degraded] if degraded else []
    unhealthy = sum(bool(failed_apps_of(session)) for session in sessions)
    notes += ["%d unhealthy" % unhealthy] if unhealthy else []
    count = element("p", element("b", running), " session" if running == 1 else " sessions", class_="big")
    shown.append(element("div", element("h3", "Sessions"), count, element("p", ", ".join(notes)), class_="tile"))
    return element("div", joined(*shown), class_="tiles")


def _tile(resource: Resource, agents: Sequence[Json], capacity: Mapping[str, float], colours: Colours) -> Html:
    usable = [agent for agent in agents if agent["reachable"]]
    key, show, whole = resource.key, resource.show, capacity[resource.key]
    used = sum(agent["used"][key] for agent in usable)
    free = [max(0, agent["capacity"][key] - agent["used"][key]) for agent in usable if agent["schedulable"]]
    parts = [
        (colours.of(owner), sum(agent["owners"].get(owner, {}).get(key, 0) for agent in usable))
        for owner in colours.order
    ]
    in_use = _in_use(resource, usable)
    notes = ["%s of %s allocated" % (show(used), show(whole))]
    notes += ["%s in use" % show(in_use)] if in_use is not None and key != "gpus" else []
    notes += ["at most %s free on one agent" % show(max(free))] if len(free) > 1 else []
    label = "%s: %s" % (resource.name, ", ".join(notes))
    return element(
        "div",
        element("h3", resource.name),
        element("p", element("b", show(sum(free))), " free", class_="big"),
        amount_bar(parts, whole, label, in_use),
        element("p", ", ".join(notes)),
        class_="tile",
    )


def _in_use(resource: Resource, agents: Sequence[Json]) -> float | None:
    """What was measured on these agents; of GPUs, as the number of busy devices. None if nothing was."""
    measured = [agent["measured"] for agent in agents if agent["measured"]]
    if resource.key != "gpus":
        return round(sum(each[resource.key] for each in measured), -2) if measured else None
    percents = [gpu["percent"] for each in measured for gpu in each["gpus"] if gpu["percent"] is not None]
    return sum(percents) / 100 if percents else None


def owner_rows(owners: Sequence[Json], colours: Colours, with_gpus: bool) -> Html:
    """A table of who has how much, and may still have, with the colours of the bars."""
    if not owners:
        return element("p", "No session uses the agents.", class_="empty")
    by_name = {owner["owner"]: owner for owner in owners}
    resources = _resources(with_gpus)
    names = ("Owner", "Sessions", "Waiting", "Containers", *(resource.name for resource in resources), "May still have")
    return _table(names, [_owner_row(by_name[name], colours, resources) for name in colours.order], "owners")


def _resources(with_gpus: bool) -> Sequence[Resource]:
    return [resource for resource in RESOURCES if with_gpus or resource.key != "gpus"]


def _table(names: Sequence[str], rows: Sequence[Html], style: str) -> Html:
    head = element("tr", joined(*(element("th", name, scope="col") for name in names)))
    return element("table", element("thead", head), element("tbody", joined(*rows)), class_=style)


def _row(name: Html, cells: Sequence[object]) -> Html:
    return element("tr", name, joined(*(element("td", cell, class_="number") for cell in cells)))


def _owner_row(owner: Json, colours: Colours, resources: Sequence[Resource]) -> Html:
    allowed: Mapping[str, float] = owner["allowed"] or {}

    def of(key: str, used: float, show: Callable[[float], str]) -> str:
        return show(used) if allowed.get(key) is None else "%s of %s" % (show(used), show(allowed[key]))

    swatch = element("i", class_="swatch %s" % colours.of(owner["owner"]))
    cells: List[object] = [of("sessions", owner["sessions"], str), owner["waiting"]]
    cells.append(of("containers", owner["containers"], str))
    cells += [of(resource.key, owner["used"][resource.key], resource.show) for resource in resources]
    return _row(element("th", swatch, owner["owner"], scope="row"), [*cells, show_amounts(owner["available"])])


def group_rows(groups: Sequence[Json], with_gpus: bool) -> Html:
    """A table of the resource groups: what is allocated of each, and the owner's part."""
    resources = _resources(with_gpus)
    rows = [
        _row(
            element("th", group["group"], scope="row"),
            [group["agents"], *(share_of(group, resource.key, resource.show) for resource in resources)],
        )
        for group in groups
    ]
    return _table(("Group", "Agents", *(resource.name for resource in resources)), rows, "groups")


def agent_cards(agents: Sequence[Json], colours: Colours) -> Html:
    """A card for each agent, with a bar for each resource that it has."""
    if not agents:
        return element("p", "The inventory has no agents.", class_="empty")
    return element("div", joined(*(_card(agent, colours) for agent in agents)), class_="agents")


def _card(agent: Json, colours: Colours) -> Html:
    state = agent_state(agent)
    kind = "ok" if state == "up" else "warn" if agent["reachable"] else "bad"
    bars = [
        joined(element("span", _of(resource, agent), class_="amount"), _agent_bar(resource, agent, colours))
        for resource in RESOURCES
        if agent["capacity"][resource.key] or agent["used"][resource.key]
    ]
    head = element("h3", agent["name"], " ", element("small", agent["group"]))
    return element(
        "div",
        head,
        element("p", element("span", state, class_="state %s" % kind)),
        joined(*bars),
        class_="agent",
    )


def _of(resource: Resource, agent: Json) -> str:
    used, whole = agent["used"][resource.key], agent["capacity"][resource.key]
    return "%s %s of %s" % (resource.name, resource.show(used), resource.show(whole))


def _agent_bar(resource: Resource, agent: Json, colours: Colours) -> Html:
    parts = [
        (colours.of(owner), agent["owners"][owner][resource.key]) for owner in colours.order if owner in agent["owners"]
    ]
    return amount_bar(parts, agent["capacity"][resource.key], _of(resource, agent), _in_use(resource, [agent]))
