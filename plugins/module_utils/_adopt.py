# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: may change in any release.

"""Sessions known only from their labels: rows for the store, and the plan made again from a request and the labels."""

from __future__ import annotations

import json
from typing import Dict, Iterable, List, Sequence, Set, Tuple

from ansible_collections.cluster.compute.plugins.module_utils import _states
from ansible_collections.cluster.compute.plugins.module_utils._address import subnet_layout
from ansible_collections.cluster.compute.plugins.module_utils._capacity import Each, free_of
from ansible_collections.cluster.compute.plugins.module_utils._errors import InputError
from ansible_collections.cluster.compute.plugins.module_utils._model import LABEL, Agent, Live, Plan, Port, Resources
from ansible_collections.cluster.compute.plugins.module_utils._placement import Placed
from ansible_collections.cluster.compute.plugins.module_utils._plan import Ground, build_plan, mtu_for, read_placement
from ansible_collections.cluster.compute.plugins.module_utils._request import Request
from ansible_collections.cluster.compute.plugins.module_utils._store import Row
from ansible_collections.cluster.compute.plugins.module_utils._topology import members

_TOLD = ("session.name", "session.owner", "session.mode", "session.placement", "session.subnet")


def adopted_rows(agents: Iterable[Agent], known: Set[str]) -> List[Row]:
    """A row for every session that runs somewhere and is not ``known``, oldest first; the labels must tell its plan."""
    found: Dict[str, Live] = {}
    for agent in agents:
        for live in agent.containers:
            if live.session not in known and live.state == "running" and all(_label(live, name) for name in _TOLD):
                found.setdefault(live.session, live)
    rows = [
        Row(
            id=session,
            name=_label(live, "session.name"),
            owner=_label(live, "session.owner"),
            resource_group=_label(live, "session.group"),
            state=_states.RUNNING,
            created=float(live.data.get("started_at") or 0.0),
        )
        for session, live in found.items()
    ]
    return sorted(rows, key=lambda row: (row.created, row.id))


def rebuilt_plan(row: Row, request: Request, agents: Sequence[Agent]) -> Plan:
    """The plan of an adopted session; the request must be the one that the labels carry the digest of."""
    lives = {live.hostname: live for agent in agents for live in agent.containers if live.session == row.id}
    some = next(iter(lives.values()))
    if _label(some, "session.request") != request.digest:
        rule = "it is in use by a running session of another request: end it with terminate.yml, or take another name"
        raise InputError("session_name", row.name, rule)
    placement = read_placement(_label(some, "session.placement"))
    hostnames = [member.hostname for member in members(request.size)]
    resources = tuple(
        lives[hostname].resources if hostname in lives else _again(request, agent, agents)
        for hostname, agent in zip(hostnames, placement)
    )
    ground = Ground(
        session_id=row.id,
        launch=_label(some, "launch"),
        placed=Placed(placement, resources, _label(some, "session.mode")),
        subnet=subnet_layout(_label(some, "session.subnet"), request.size),
        ports=_ports(lives),
        mtu=mtu_for(_label(some, "session.mode"), agents, placement),
    )
    return build_plan(request, ground)


def _label(live: Live, name: str) -> str:
    return str(live.data["labels"].get(LABEL + name, ""))


def _ports(lives: Dict[str, Live]) -> Tuple[Port, ...]:
    """What main1 publishes; without main1 nothing is known, and the repair publishes nothing but what it can."""
    text = _label(lives["main1"], "container.ports") if "main1" in lives else ""
    return tuple(Port.from_json(port) for port in json.loads(text or "[]"))


def _again(request: Request, name: str, agents: Sequence[Agent]) -> Resources:
    """What a container that is gone held: the same amounts; its devices and CPUs from what is free there."""
    each: Each = request.demand().each
    for agent in agents:
        if agent.name == name:
            return free_of(agent, [live.resources for live in agent.containers]).take(each)
    return Resources(each.millicpus, each.memory, each.shm)
