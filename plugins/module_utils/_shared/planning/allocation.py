# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Allocate what a plan needs besides the placement: data folders that exist, a free subnet, free ports."""

from __future__ import annotations

from functools import cached_property
from typing import Dict, FrozenSet, Iterable, List, Sequence, Set, Tuple

from ..constants import HOST, MASTER_PORT, RDMA_FOLDER, SSH_PORT
from ..documents.plan import Plan, Port
from ..documents.report import AgentReport
from ..documents.topology import address_of_app
from ..errors import InputError
from ..units import parse_port_range
from .addresses import Subnet, choose_port, choose_subnet
from .placement import Placement
from .request import Request


def checked_folders(request: Request) -> List[str]:
    """The folders that the agents report for a request: its data folders, and that of RDMA devices."""
    return [mount.source for mount in request.mounts if mount.type == "bind"] + [RDMA_FOLDER] * request.rdma


def check_folders(request: Request, placement: Placement, agents: Iterable[AgentReport]) -> None:
    """Refuse a data folder that an agent lacks: the engine would create an empty folder of root in its place.

    A volume without options is a different directory on each agent. A session on several agents is refused unless that is meant.
    """
    used = [agent for agent in agents if agent.name in placement.agents]
    for mount in request.mounts:
        lacking = [agent.name for agent in used if agent.paths.get(mount.source) is False]
        if mount.type == "bind" and lacking:
            rule = f"must exist on every agent of the session; it does not exist or does not answer on {', '.join(lacking)}"
            raise InputError("session_mounts", mount.source, rule)
        if mount.type == "volume" and not mount.options and not mount.local and len(used) > 1:
            names = ", ".join(sorted(agent.name for agent in used))
            rule = "is a different directory on each agent of the session (%s): add 'local: true' if that is meant, or options"
            raise InputError("session_mounts", mount.source, rule % names)


class Allocation:
    """The subnets and ports that are free during one decision. What sessions ask for alike is looked for once."""

    def __init__(self, plans: Sequence[Plan], agents: Sequence[AgentReport]) -> None:
        self._plans = plans
        self._agents = {agent.name: agent for agent in agents}
        self._taken_ports: Dict[str, Set[int]] = {}
        self._subnets: Dict[Tuple[int, Tuple[str, ...]], Subnet] = {}

    def check(self, request: Request, placement: Placement) -> None:
        """Raise a ComputeError if a session with this placement cannot be launched."""
        check_folders(request, placement, self._agents.values())
        if request.network != HOST:
            self.subnet(request)
        self.fabric(request)
        self.master_port(request, placement.agents, self.ports(request, placement.agents))

    def subnet(self, request: Request) -> Subnet:
        """A subnet that overlaps with no other session's, and with no route or network of any agent, and hides no address it needs."""
        asked = (request.size, request.network_pool)
        if asked not in self._subnets:
            self._subnets[asked] = choose_subnet(*asked, self._taken_networks)
        return self._subnets[asked]

    def fabric(self, request: Request) -> str:
        """Another such subnet, for the fabric; empty if the session does not ask for one."""
        if not request.fabric:
            return ""
        taken = {*self._taken_networks, self.subnet(request).subnet}
        return choose_subnet(request.size, request.network_pool, taken).subnet

    def ports(self, request: Request, names: Sequence[str]) -> Tuple[Port, ...]:
        """Where SSH and the apps of ``main1`` are published on its agent, which comes first; nowhere if the inventory lacks it.

        On the network of the hosts they listen there, and SSH of the others listens at the same port.
        """
        if names[0] not in self._agents:
            return ()
        taken, wanted, ports = self._taken(request, names), wanted_ports(request, self._agents[names[0]].publish), []
        asked_for = {preferred for _label, _port, preferred, _host_ip in wanted}
        for label, container_port, preferred, host_ip in wanted:
            # No port takes what another one asks for.
            others = taken | (asked_for - {preferred})
            host_port = choose_port(preferred, *parse_port_range(request.port_range), others)
            taken.add(host_port)
            ports.append(Port(label, host_port if request.network == HOST else container_port, host_ip, host_port))
        return tuple(ports)

    def master_port(self, request: Request, names: Sequence[str], ports: Sequence[Port]) -> int:
        """The port for MASTER_PORT and TF_CONFIG, which on the network of the hosts no one else uses."""
        if request.network != HOST:
            return MASTER_PORT
        taken = self._taken(request, names).union(port.host_port for port in ports)
        return choose_port(None, *parse_port_range(request.port_range), taken)

    def _taken(self, request: Request, names: Sequence[str]) -> Set[int]:
        used = names if request.network == HOST else names[:1]
        return set().union(*(self.ports_taken_on(name) for name in used if name in self._agents))

    @cached_property
    def _taken_networks(self) -> FrozenSet[str]:
        agents = self._agents.values()
        used = [name for agent in agents for name in (*agent.routes, *agent.needed_addresses)]
        subnets = (subnet for agent in agents for network in agent.networks for subnet in network.subnets)
        return frozenset(used).union(
            subnets,
            (
                subnet
                for plan in self._plans
                for subnet in (plan.network.subnet, plan.network.fabric)
                # The network of the agents is in their routes.
                if subnet and not plan.network.is_of_host
            ),
        )

    def ports_taken_on(self, name: str) -> Set[int]:
        """The ports of an agent that are in use, or that a session keeps."""
        if name not in self._taken_ports:
            agent = self._agents[name]
            taken = set(agent.ports)
            # A main1 that has stopped listens on no port and keeps its ports.
            taken.update(port for container in agent.containers for port in container.ports)
            taken.update(port.host_port for plan in self._plans if plan.main.agent == name for port in plan.main.ports)
            on_hosts = [plan.network for plan in self._plans if plan.network.is_of_host and name in plan.agents]
            taken.update(port for network in on_hosts for port in (network.ssh_port, network.master_port))
            self._taken_ports[name] = taken
        return self._taken_ports[name]


def wanted_ports(request: Request, publish: str) -> List[Tuple[str, int, int, str]]:
    """The ports of ``main1`` that a session publishes: name, port in the container, preferred port or 0, and address of the agent."""
    apps = [
        (
            app.name,
            app.port,
            app.preferred_port or (app.port if request.network == HOST else 0),
            address_of_app(app, publish),
        )
        for app in request.apps
    ]
    return [("ssh", SSH_PORT, 0, publish), *apps]
