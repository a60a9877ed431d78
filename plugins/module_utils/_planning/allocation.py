# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a plan stands on once the placement is known: folders that are there, a free subnet, free ports."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from typing import Iterable, Sequence, Set, Tuple

from ansible_collections.cluster.compute.plugins.module_utils._core.constants import SSH_PORT
from ansible_collections.cluster.compute.plugins.module_utils._core.errors import ComputeError, InputError
from ansible_collections.cluster.compute.plugins.module_utils._core.model import Plan, Port
from ansible_collections.cluster.compute.plugins.module_utils._core.reports import Agent
from ansible_collections.cluster.compute.plugins.module_utils._planning.addresses import (
    Subnet,
    choose_port,
    choose_subnet,
    parse_port_range,
)
from ansible_collections.cluster.compute.plugins.module_utils._planning.placement import Placement
from ansible_collections.cluster.compute.plugins.module_utils._planning.request import Request

LOOPBACK = "127.0.0.1"
EVERYWHERE = "0.0.0.0"


def check_folders(request: Request, placed: Placement, agents: Iterable[Agent]) -> None:
    """A data folder is there already: the engine would make an empty one of root's in its place."""
    used = [agent for agent in agents if agent.name in placed.agents]
    for mount in request.mounts:
        lacking = [agent.name for agent in used if agent.paths.get(mount.source) is False]
        if mount.type == "bind" and lacking:
            rule = "the folder must be there; it is not on %s" % ", ".join(lacking)
            raise InputError("session_mounts", mount.source, rule)


def can_allocate(request: Request, placed: Placement, plans: Sequence[Plan], agents: Sequence[Agent]) -> bool:
    """Whether a session that was placed there could be launched."""
    try:
        check_folders(request, placed, agents)
        free_subnet(request, plans, agents)
        free_ports(request, placed.agents[0], plans, agents)
    except ComputeError:
        return False
    return True


def free_subnet(request: Request, plans: Iterable[Plan], agents: Iterable[Agent]) -> Subnet:
    """A subnet that touches no other session's, and no route or network of any agent."""
    taken = {plan.network.subnet for plan in plans}
    for agent in agents:
        taken.update(agent.routes)
        taken.update(agent.subnets)
    return choose_subnet(request.size, request.network_pool, taken)


def free_ports(request: Request, name: str, plans: Iterable[Plan], agents: Sequence[Agent]) -> Tuple[Port, ...]:
    """Where ``main1``'s ssh and apps are published on its agent; nowhere if that is gone from the inventory."""
    agent = next((one for one in agents if one.name == name), None)
    if agent is None:
        return ()
    taken: Set[int] = set(agent.ports)
    # A main1 that is down listens on nothing, and comes back to its ports.
    taken.update(port for live in agent.containers for port in live.data.get("ports") or ())
    taken.update(port.host_port for plan in plans if plan.main.agent == name for port in plan.main.ports)
    first, last = parse_port_range(request.port_range)
    ports = []
    wanted = [("ssh", SSH_PORT, 0, agent.publish)]
    wanted += [(app.name, app.port, app.preferred_port, EVERYWHERE if app.public else LOOPBACK) for app in request.apps]
    for label, container_port, preferred, host_ip in wanted:
        host_port = choose_port(preferred, first, last, taken)
        taken.add(host_port)
        ports.append(Port(label, container_port, host_ip, host_port))
    return tuple(ports)
