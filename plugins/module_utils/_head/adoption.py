# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sessions known only from their labels: rows for the store, and the plan made again from a request and the labels."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import json
from typing import Dict, Iterable, List, Mapping, Sequence, Set, Tuple

from ansible_collections.cluster.compute.plugins.module_utils._core import states
from ansible_collections.cluster.compute.plugins.module_utils._core.constants import LABEL
from ansible_collections.cluster.compute.plugins.module_utils._core.errors import ConflictError, InputError
from ansible_collections.cluster.compute.plugins.module_utils._core.model import Plan, Port, Resources
from ansible_collections.cluster.compute.plugins.module_utils._core.reports import Agent, ObservedContainer
from ansible_collections.cluster.compute.plugins.module_utils._core.topology import members
from ansible_collections.cluster.compute.plugins.module_utils._head.store import Row
from ansible_collections.cluster.compute.plugins.module_utils._planning.addresses import subnet_layout
from ansible_collections.cluster.compute.plugins.module_utils._planning.allocation import free_ports
from ansible_collections.cluster.compute.plugins.module_utils._planning.capacity import (
    FreeCapacity,
    PerContainer,
    free_of,
)
from ansible_collections.cluster.compute.plugins.module_utils._planning.placement import Placement
from ansible_collections.cluster.compute.plugins.module_utils._planning.plan import (
    PlanInputs,
    build_plan,
    mtu_for,
    read_placement,
)
from ansible_collections.cluster.compute.plugins.module_utils._planning.request import Request

_TOLD = ("session.name", "session.owner", "session.mode", "session.placement", "session.subnet")
# A launch in progress has containers that are created: it is its own store's.
_HAS_RUN = ("running", "restarting", "paused", "exited", "dead")
OR_ELSE = "end it with terminate.yml, or take another name"


def adopted_rows(agents: Iterable[Agent], known: Set[str]) -> List[Row]:
    """A row for every session that has run and is not ``known``, oldest first; the labels must tell its plan.

    One of which all containers have stopped (their host was rebooted) is there to be repaired or ended, too.
    """
    found: Dict[str, ObservedContainer] = {}
    for agent in agents:
        for live in agent.containers:
            if live.session not in known and live.state in _HAS_RUN and all(_label(live, name) for name in _TOLD):
                found.setdefault(live.session, live)
    rows = [
        Row(
            id=session,
            name=_label(live, "session.name"),
            owner=_label(live, "session.owner"),
            resource_group=_label(live, "session.group"),
            state=states.RUNNING,
            created=float(live.data.get("created") or 0.0),
        )
        for session, live in found.items()
    ]
    return sorted(rows, key=lambda row: (row.created, row.id))


def rebuilt_plan(
    row: Row,
    request: Request,
    agents: Sequence[Agent],
    booked: Mapping[str, Sequence[Resources]],
    plans: Sequence[Plan],
) -> Plan:
    """The plan of an adopted session; the request must be the one that the labels carry the digest of.

    ``booked`` and ``plans`` are what others hold: what a lost container had is chosen again beside it.
    """
    lives = {live.hostname: live for agent in agents for live in agent.containers if live.session == row.id}
    some = next(iter(lives.values()), None)
    if some is None:
        raise ConflictError(
            "Session %s is known from its labels alone, and no agent that answers has a container of it: bring its "
            "agents back and run this again, or end the session with terminate.yml." % row.name, row.name)  # fmt: skip
    if _label(some, "session.request") != request.digest:
        rule = "the name is in use by a running session with other settings: %s" % OR_ELSE
        raise InputError("session_name", row.name, rule)
    placement = read_placement(_label(some, "session.placement"))
    free = {agent.name: free_of(agent, booked.get(agent.name, ())) for agent in agents if agent.reachable}
    hostnames = [member.hostname for member in members(request.size)]
    resources = tuple(
        lives[hostname].resources if hostname in lives else _again(hostname, request, free.get(agent))
        for hostname, agent in zip(hostnames, placement)
    )
    ground = PlanInputs(
        session_id=row.id,
        launch=_label(some, "launch"),
        placed=Placement(placement, resources, _label(some, "session.mode")),
        subnet=subnet_layout(_label(some, "session.subnet"), request.size),
        ports=_ports(lives) or free_ports(request, placement[0], plans, agents),
        mtu=mtu_for(_label(some, "session.mode"), agents, placement),
    )
    return build_plan(request, ground)


def _label(live: ObservedContainer, name: str) -> str:
    return str(live.data["labels"].get(LABEL + name, ""))


def _ports(lives: Dict[str, ObservedContainer]) -> Tuple[Port, ...]:
    """What main1 publishes; without main1 nothing is known."""
    text = _label(lives["main1"], "container.ports") if "main1" in lives else ""
    return tuple(Port.from_json(port) for port in json.loads(text or "[]"))


def _again(hostname: str, request: Request, free: FreeCapacity | None) -> Resources:
    """What a container that is gone held: the same amounts; its devices and CPUs from what is free where it was."""
    each: PerContainer = request.demand().each
    if free is None:
        return Resources(each.millicpus, each.memory, each.shm)
    if not free.room(each):
        raise ConflictError(
            "Session %s has lost %s, and %s has no room for it any more (%s): make room, or end the session with "
            "terminate.yml." % (request.name, hostname, free.agent, free.shortfall(each, 1)), free.agent)  # fmt: skip
    return free.take(each)
