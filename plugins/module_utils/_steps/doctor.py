# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps that check an agent. Also in check mode, they start what they remove again: a check changes nothing."""

from __future__ import annotations

import inspect
import json
import time
from typing import List, Sequence

from .._agent import overlay_endpoint, port_probe
from .._agent.devices import NO_LIMIT
from .._agent.engine.client import Engine
from .._agent.engine.connection import persist
from .._agent.engine.payloads import network_body
from .._agent.examination import (
    OLD,
    ExaminedAgent,
    examine_agent,
    lasting_body,
    read_overlay,
    start_lasting,
    stop_lasting,
)
from .._shared import label
from .._shared.codec import Json
from .._shared.documents.examination import OverlayPlan, Peer, Probe, Unreached
from .._shared.documents.plan import Network
from .._shared.documents.schema import is_number
from .._shared.errors import ComputeError, EngineError
from .._shared.waiting import deadline_in, wait_until
from .step import AgentHandle

# Read at the import: what Ansible has packed is gone when a process that stayed on the host takes the step.
_PROGRAM = inspect.getsource(overlay_endpoint)
# Seconds after which a container that nothing removes ends by itself, and for a container that sends.
_LIFETIME, _SENDING = 300, 30
# The throw-away overlay network, and the container of each agent in it.
_NETWORK = "cluster-compute-check-overlay-%s"
# Seconds until the engine lets the network go, for the test of all peers, and for a measurement beside its own.
_REMOVE, _TEST, _SLACK = 30, 60, 20
# The rounds of measurements, whose time is added to the lifetime of the containers in that network.
_ROUNDS = 3
# The networks through which containers reach other hosts: those of overlays, and all others.
_OF_OVERLAYS, _DEFAULT = "docker_gwbridge", "bridge"


def examine(agent: AgentHandle, addresses: List[str], several: bool, sharing: str = NO_LIMIT) -> Json:
    """C(report) describes the agent; ``several`` others may reach it at ``addresses``, and ``sharing`` limits parts of its GPUs.

    C(unreached) says why there is no report.
    """
    found = examine_agent(
        ExaminedAgent(
            name=agent.name,
            docker_host=agent.docker_host,
            timeout=agent.timeout,
            edition=agent.edition,
            fabric=agent.fabric,
            gpu_sharing=sharing,
            mps_directory=agent.mps,
            addresses=addresses,
            several=several,
        )
    )
    return {"unreached" if isinstance(found, Unreached) else "report": found.to_json()}


def listen(agent: AgentHandle, mark: str) -> Probe:
    """Start a container that listens for datagrams with this mark."""
    port_probe.start_listener(agent.connect(Engine), mark, _LIFETIME)
    return Probe(listened=True)


def send(agent: AgentHandle, mark: str, agents: Sequence[Peer], port: int) -> Probe:
    """Send datagrams to the other agents, and connect to the Swarm ports of those that are members.

    A container sends to the ``port`` of VXLAN of all agents, this one included, which must not arrive.
    """
    own = next(peer for peer in agents if peer.name == agent.name)
    others = [peer for peer in agents if peer is not own and peer.address]
    port_probe.send_probe(agent.name, {peer.name: peer.address for peer in others}, mark, own.mtu, port)
    connected = port_probe.probe_connection({peer.name: peer.address for peer in others if peer.member})
    addresses = [peer.address for peer in agents if peer.address]
    network = _OF_OVERLAYS if own.member else _DEFAULT
    try:
        port_probe.send_from_container(agent.connect(Engine), addresses, port, mark, network, deadline_in(_SENDING))
    except EngineError as error:
        return Probe(sent=True, connected=connected, reason=error.message)
    return Probe(sent=True, connected=connected, contained=True)


def hear(agent: AgentHandle, mark: str) -> Probe:
    """Remove the container that listens, and return what it has received."""
    received = port_probe.stop_listener(agent.connect(Engine), mark)
    return Probe(received=tuple(map(tuple, received)))


def create_network(agent: AgentHandle, mark: str, plan: OverlayPlan) -> Probe:
    """Create the overlay network on a manager. Networks that killed checks have left are removed first."""
    engine = agent.connect(Engine)
    _remove_old_networks(engine)
    network = Network(
        name=_NETWORK % mark,
        driver="overlay",
        subnet=plan.subnet,
        gateway=plan.gateway,
        ip_range=plan.ip_range,
        mtu=plan.mtu,
        encrypted=plan.encrypted,
        labels={label.CHECK: str(int(time.time()))},
    )
    engine.create_network(network.name, network_body(network))
    return Probe()


def join_network(agent: AgentHandle, mark: str, plan: OverlayPlan) -> Probe:
    """Start this agent's container in the network, and wait until it answers."""
    failure = "the container in the check's overlay network does not answer"
    body = _body(mark, agent.name, plan)
    start_lasting(agent.connect(Engine), _NETWORK % mark, body, failure)
    return Probe()


def test_network(agent: AgentHandle, mark: str) -> Probe:
    """Let the container test the network; return what it has found, at the latest after some time."""
    return _ordered(agent, mark, overlay_endpoint.GO, "all", '["done"]', _TEST)


def measure(agent: AgentHandle, mark: str, peer: str, seconds: float) -> Probe:
    """Let the container measure the throughput to the container of another agent."""
    return _ordered(agent, mark, overlay_endpoint.LINK, peer, '["mbits"', seconds + _SLACK)


def leave_network(agent: AgentHandle, mark: str) -> Probe:
    """Remove the container, and return all that it has found, which is nothing if there is none."""
    return Probe(overlay=read_overlay(stop_lasting(agent.connect(Engine), _NETWORK % mark)))


def remove_network(agent: AgentHandle, mark: str) -> Json:
    """Remove the overlay network. The agent is the manager that created it."""
    engine = agent.connect(Engine)
    found = next((network for network in engine.networks(everyone=True) if network["Name"] == _NETWORK % mark), None)
    if found is not None:
        persist(lambda: engine.remove_network(found["Id"], found["Name"]), deadline_in(_REMOVE))
    return {}


def _ordered(agent: AgentHandle, mark: str, file: str, order: str, last: str, seconds: float) -> Probe:
    """Return what the container has found once it has written a line that begins with ``last``, or after some seconds."""
    engine = agent.connect(Engine)
    engine.put_file(_NETWORK % mark, f"{overlay_endpoint.FOLDER}/{file}", f"{order}\n".encode())
    wait_until(lambda: "\n" + last in engine.logs(_NETWORK % mark), deadline_in(seconds), 0.2, 1.0)
    return Probe(overlay=read_overlay(engine.logs(_NETWORK % mark)))


def _body(mark: str, agent: str, plan: OverlayPlan) -> Json:
    own = next(member for member in plan.members if member.name == agent)
    peers = [member.to_json() for member in plan.members if member is not own]
    options = {**own.to_json(), "mtu": plan.mtu, "seconds": plan.seconds, "peers": peers}
    arguments = [json.dumps(options), str(_LIFETIME + int(_ROUNDS * plan.seconds))]
    body = lasting_body(_PROGRAM, arguments, _NETWORK % mark, mark)
    # An unanswered question for a name takes two seconds and not ten.
    body["Env"] = ["RES_OPTIONS=timeout:1 attempts:2"]
    endpoint = {"IPAMConfig": {"IPv4Address": own.address}, "Aliases": [own.host]}
    body["NetworkingConfig"] = {"EndpointsConfig": {_NETWORK % mark: endpoint}}
    return body


def _remove_old_networks(engine: Engine) -> None:
    for network in engine.networks(everyone=True):
        made = (network.get("Labels") or {}).get(label.CHECK, "")
        if network["Name"].startswith(_NETWORK % "") and is_number(made) and time.time() - int(made) > OLD:
            try:
                engine.remove_network(network["Id"], network["Name"])
            except ComputeError:
                continue  # another check removes it, or a lost agent still has a container in it
