# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps that check an agent. Also in check mode, they start what they remove again: a check changes nothing."""

from __future__ import annotations

from typing import List

from .._agents import overlay_probe, port_probe
from .._agents.devices import NO_LIMIT
from .._agents.examination import examine as examination
from .._core.documents import Json
from .._core.errors import EngineError
from .._core.waiting import deadline_in
from .._docker.client import Engine
from .step import Agent

# Seconds after which a listener that nothing removes ends by itself, and for a container that sends.
_LIFETIME, _SENDING = 300, 30
# The networks through which containers reach other hosts: those of overlays, and all others.
_OF_OVERLAYS, _DEFAULT = "docker_gwbridge", "bridge"


def examine(agent: Agent, addresses: List[str], several: bool, sharing: str = NO_LIMIT) -> Json:
    """C(report) describes the agent; ``addresses`` are those at which other agents, if there are ``several``, may reach it.

    ``sharing`` is what is to limit parts of its GPUs.
    """
    options = {"name": agent.name, "docker_host": agent.docker_host, "timeout": agent.timeout, "edition": agent.edition}
    gpus = {"fabric": agent.fabric, "gpu_sharing": sharing, "mps_directory": agent.mps}
    return {"report": examination({**options, **gpus, "addresses": addresses, "several": several})}


def listen(agent: Agent, mark: str) -> Json:
    """Start a container that listens for datagrams with this mark."""
    port_probe.start_listener(agent.connect(Engine), mark, _LIFETIME)
    return {"listened": True}


def send(agent: Agent, mark: str, agents: List[Json], port: int) -> Json:
    """Send datagrams to the other agents, and connect to the Swarm ports of those that are members.

    A container sends to the ``port`` of VXLAN of all agents, this one included, which must not arrive. ``agents`` have C(name),
    C(address), C(mtu) and C(member), this agent included.
    """
    own = next(other for other in agents if other["name"] == agent.name)
    others = [other for other in agents if other is not own and other["address"]]
    port_probe.send(agent.name, {other["name"]: other["address"] for other in others}, mark, own["mtu"], port)
    connected = port_probe.connect({other["name"]: other["address"] for other in others if other["member"]})
    sent = {"sent": True, "connected": connected}
    addresses = [other["address"] for other in agents if other["address"]]
    network = _OF_OVERLAYS if own["member"] else _DEFAULT
    try:
        port_probe.send_from_container(agent.connect(Engine), addresses, port, mark, network, deadline_in(_SENDING))
    except EngineError as error:
        return {**sent, "contained": False, "reason": error.message}
    return {**sent, "contained": True}


def hear(agent: Agent, mark: str) -> Json:
    """Remove the container that listens; C(received) are the datagrams that it has received."""
    return {"received": port_probe.stop_listener(agent.connect(Engine), mark)}


def create_network(agent: Agent, mark: str, plan: Json) -> Json:
    """Create the overlay network. The agent is a manager."""
    overlay_probe.create_network(agent.connect(Engine), mark, plan)
    return {}


def join_network(agent: Agent, mark: str, plan: Json) -> Json:
    """Start a container in the network, and wait until it answers."""
    overlay_probe.start(agent.connect(Engine), mark, plan)
    return {}


def test_network(agent: Agent, mark: str) -> Json:
    """Let the container test the network; C(overlay) is what it has found."""
    return {"overlay": overlay_probe.test(agent.connect(Engine), mark)}


def measure(agent: Agent, mark: str, peer: str, seconds: float) -> Json:
    """Let the container measure the throughput to the container of another agent."""
    return {"overlay": overlay_probe.measure(agent.connect(Engine), mark, peer, seconds)}


def leave_network(agent: Agent, mark: str) -> Json:
    """Remove the container; C(overlay) is all that it has found."""
    return {"overlay": overlay_probe.stop(agent.connect(Engine), mark)}


def remove_network(agent: Agent, mark: str) -> Json:
    """Remove the overlay network. The agent is the manager that created it."""
    overlay_probe.remove_network(agent.connect(Engine), mark)
    return {}
