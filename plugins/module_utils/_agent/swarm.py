# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""An engine as a member of a Swarm: creates, joins or leaves it; and requests to a manager about other nodes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Callable, Dict, List, Mapping, Sequence

from .._shared import label
from .._shared.codec import Json
from .._shared.constants import SCHEMA
from .._shared.errors import EngineError, StateError
from .._shared.planning.swarm_plan import Membership, Node
from .._shared.waiting import wait_until
from . import host
from .engine.client import AbsentError, Engine
from .engine.connection import persist
from .engine.reports import engine_identity, engine_name

PORT = 2377
PAUSE = 0.2  # seconds between two looks at a membership
JOINS_IN_BACKGROUND = "will continue in the background"


@dataclass(frozen=True)
class ListedNode:
    """A node in the list of a manager. One that is no manager has no ``reachability``."""

    id: str
    role: str = ""
    hostname: str = ""
    state: str = "unknown"
    address: str = ""
    reachability: str = ""

    @classmethod
    def of(cls, entry: Json) -> ListedNode:
        """A node as the engine lists it."""
        status = entry.get("Status") or {}
        return cls(
            id=str(entry["ID"]),
            role=str((entry.get("Spec") or {}).get("Role") or ""),
            hostname=str((entry.get("Description") or {}).get("Hostname") or ""),
            state=str(status.get("State") or "unknown"),
            address=str(status.get("Addr") or ""),
            reachability=str((entry.get("ManagerStatus") or {}).get("Reachability") or ""),
        )


class SwarmEngine(Engine):
    """The requests that concern a Swarm."""

    def create_swarm(self, address: str, pool: Sequence[str], labels: Mapping[str, str]) -> None:
        with self._asking("create a Swarm") as client:
            spec = client.create_swarm_spec(labels=dict(labels))
            pools: Dict[str, Any] = {"default_addr_pool": list(pool)} if pool else {}
            client.init_swarm(advertise_addr=address, listen_addr="0.0.0.0:%d" % PORT, swarm_spec=spec, **pools)

    def join(self, remotes: Sequence[str], token: str, address: str) -> None:
        with self._asking(f"join the Swarm of {', '.join(remotes)}") as client:
            listen = "0.0.0.0:%d" % PORT
            client.join_swarm(list(remotes), token, listen_addr=listen, advertise_addr=address)

    def leave(self) -> None:
        with self._asking("leave its Swarm") as client:
            client.leave_swarm(force=True)

    def tokens(self) -> Dict[str, str]:
        with self._asking("return the join tokens of its Swarm") as client:
            found = client.inspect_swarm().get("JoinTokens") or {}
            return {"worker": str(found["Worker"]), "manager": str(found["Manager"])}

    def nodes(self) -> Dict[str, ListedNode]:
        with self._asking("list the nodes of its Swarm") as client:
            return {node.id: node for node in map(ListedNode.of, client.nodes())}

    def set_role(self, node: ListedNode, role: str) -> None:
        with self._asking(f"make node {node.hostname or node.id} a {role}") as client:
            # A node's version changes with its heartbeats, so each try reads it again.
            found = client.inspect_node(node.id)
            client.update_node(node.id, found["Version"]["Index"], {**found["Spec"], "Role": role})

    def remove_node(self, node: str) -> None:
        with self._asking(f"remove node {node} from its Swarm") as client:
            self._or_none(client.remove_node, node, force=True)


def membership(engine: Engine) -> Membership:
    info = engine.info()
    return Membership(**vars(host.swarm_of_engine(info)), ours=label.SCHEMA in info.swarm_labels)


def node_of(engine: SwarmEngine, place: Membership, addresses: List[str], *, is_local: bool) -> Node:
    """The engine as a node, with what shows whether its host has moved, and what keeps it from joining again."""
    own = host.own_address(addresses)
    is_gone = is_local and place.state == "active" and host.is_gone(place.address)
    held = sorted(one for one in host.own_addresses() if not one.startswith("127.")) if is_gone else []
    busy = sorted(engine_name(one) for one in engine.containers()) if is_gone else []
    return Node(
        **{**vars(place), "address": place.address or own},
        name=engine.agent,
        identity=engine_identity(filter(None, [engine.network("bridge")])),
        own=own,
        held=tuple(held),
        busy=tuple(busy),
        seen=_ready(engine) if place.manager else {},
    )


def _ready(engine: SwarmEngine) -> Dict[str, str]:
    try:
        return {node.id: node.address for node in engine.nodes().values() if node.state == "ready"}
    except EngineError:  # a Swarm without a leader has no list
        return {}


def create_swarm(engine: SwarmEngine, address: str, pool: Sequence[str], deadline: float) -> Membership:
    engine.create_swarm(address, pool, {label.SCHEMA: str(SCHEMA)})
    return _active(engine, deadline)


def join_swarm(engine: SwarmEngine, remote: str, token: str, address: str, deadline: float) -> Membership:
    try:
        engine.join(["%s:%d" % (remote, PORT)], token, address)
    except EngineError as error:
        # After 20 s an engine reports this and continues to join. To leave at that point could cost the managers their quorum.
        # https://github.com/moby/moby/blob/v20.10.24/daemon/cluster/errors.go
        if JOINS_IN_BACKGROUND not in error.message:
            raise
    return _active(engine, deadline)


def settled_membership(engine: Engine, deadline: float) -> Membership:
    """The membership, once an engine that has just started or joined knows it, or as it is at the deadline."""
    return _membership_once(lambda state: state != "pending", engine, deadline)


def _membership_once(is_wanted: Callable[[str], bool], engine: Engine, deadline: float) -> Membership:
    """The membership in a wanted state, or as it is at the deadline."""
    found: List[Membership] = []

    def is_reached() -> bool:
        found[:] = [membership(engine)]
        return is_wanted(found[0].state)

    wait_until(is_reached, deadline, PAUSE, PAUSE)
    return found[0]


def set_node_roles(engine: SwarmEngine, nodes: Sequence[str], role: str, deadline: float, *, check: bool) -> List[str]:
    """Make nodes managers or workers; returns the nodes that had the other role."""
    listed = engine.nodes()
    wanted = [node for node in nodes if node in listed and listed[node].role != role]
    for node in [] if check else wanted:
        persist(partial(engine.set_role, listed[node], role), deadline)
        _await_role(engine, node, role, deadline)
    return wanted


def remove_swarm_nodes(engine: SwarmEngine, nodes: Sequence[str], deadline: float, *, check: bool) -> List[str]:
    """Remove nodes that have left from the list of nodes; returns the nodes that were on it."""
    listed = engine.nodes()
    wanted = [node for node in nodes if node in listed]
    for node in [] if check else wanted:
        persist(partial(engine.remove_node, node), deadline)
    return wanted


def former_nodes(listed: Mapping[str, ListedNode], node: str) -> List[str]:
    """Return the former nodes of a host that left its Swarm and joined again as C(node): they are down, with its hostname and address.

    A Swarm keeps such a node, and with it the addresses of the containers there, which the new node can then not get.
    """
    new = listed.get(node)
    if new is None or not new.hostname or not new.address:
        return []
    others = [one for one in listed.values() if one.id != node and one.state == "down"]
    return [one.id for one in others if (one.hostname, one.address) == (new.hostname, new.address)]


def _active(engine: Engine, deadline: float) -> Membership:
    """The membership once it is active; joining continues in the background."""
    found = _membership_once(lambda state: state == "active", engine, deadline)
    if found.state != "active":
        message = (
            "%s is still %s in its Swarm; check that TCP %d is open between the agents, and read the engine's log."
        )
        raise StateError(message % (engine.where, found.state, PORT), engine.agent)
    return found


def _await_role(engine: SwarmEngine, node: str, role: str, deadline: float) -> None:
    """Wait until the node has joined the quorum of the managers, or has left it."""

    def has_role() -> bool:
        listed = engine.nodes().get(node)
        if listed is None:
            raise AbsentError(f"Node {node} has left the Swarm.", engine.agent)
        return (listed.reachability == "reachable") == (role == "manager")

    if not wait_until(has_role, deadline, PAUSE, PAUSE):
        message = "%s made node %s a %s, and the node has not followed in time; read the log of that node's engine."
        raise StateError(message % (engine.where, node, role), engine.agent)
