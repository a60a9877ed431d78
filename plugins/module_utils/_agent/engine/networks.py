# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Create and remove a session's private network; refuse a network of the same name that is not the session's."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Collection, List, Sequence, Tuple

from ..._shared.codec import Json
from ..._shared.documents.plan import Network, Plan
from ..._shared.documents.step_documents import Difference, NetworkChanges
from ..._shared.errors import ComputeError, ConflictError, EngineError, StateError, TakenError
from ..._shared.waiting import deadline_in, retry_until
from .client import Engine
from .connection import is_refusal
from .payloads import MTU_OPTION, network_body, network_options
from .reports import active, session_of

HELD = "in use by task"
ENDPOINTS = "active endpoints"
# Seconds for the removal of a network together with its containers, whose last endpoints are leaving.
LEAVING = 10
# Seconds for which an engine may refuse the removal of a network on which it lists nothing: it counts a container after that has left.
COUNTING = 5


def create_network(engine: Engine, plan: Plan, check: bool) -> NetworkChanges:
    """Create the session's network as in the plan, unless it exists. The network of the agents exists."""
    wanted, is_of_host = shape(plan.network), plan.network.is_of_host
    if plan.network.driver == "overlay" and not engine.info().swarm.manager:
        # A worker can list an overlay that no longer exists, and cannot create an overlay.
        message = "An overlay network can only be created on a Swarm manager; run provision_agents.yml, or run this on a manager."
        raise StateError(message, engine.agent)
    listed = [] if is_of_host else engine.networks(everyone=True)
    found = [network for network in listed if network["Name"] == plan.network.name]
    for network in found:
        _check(network, plan)
    exists = is_of_host or bool(found)
    identity = found[0]["Id"] if found else ""
    if not exists and not check:
        identity = engine.create_network(plan.network.name, network_body(plan.network))
    diff = Difference(wanted if exists else {}, wanted)
    return NetworkChanges(not exists, (diff,), {**wanted, "id": identity, "session": plan.session.id})


def check_host_ports(engine: Engine, plan: Plan, listening: Collection[int]) -> None:
    """Refuse a port at which something else listens for a container on the network of its agent, while the container does not run."""
    if active(engine.containers(plan.session.id)):
        return
    published = [port.host_port for one in plan.on(engine.agent) for port in one.ports]
    used = sorted({plan.network.ssh_port, plan.network.master_port, *published}.intersection(listening))
    if used:
        raise TakenError(
            f"On {engine.agent} something else listens at port {used[0]}, which session {plan.session.name} needs.",
            engine.agent,
        )


def remove_network(
    engine: Engine, sessions: Sequence[str], deadline: float, check: bool, among: Sequence[Json] | None = None
) -> NetworkChanges:
    """Remove the networks of these sessions, or those of them that are ``among`` the engine's networks."""
    if among is None:
        among = engine.networks(sessions[0] if len(sessions) == 1 else "") if sessions else []
    ours = [network for network in among if session_of(network) in sessions]
    removable = _removable(engine, ours)
    staying = [(one["Name"], "" if check else _NetworkRemoval(engine, one, deadline).carry_out()) for one in removable]
    left = tuple(name for name, reason in staying if reason)
    names = tuple(name for name, _reason in staying if name not in left)
    diff = Difference({"networks": names}, {"networks": []})
    warnings = tuple(reason for _name, reason in staying if reason)
    return NetworkChanges(bool(names), (diff,), removed=names, left=left, warnings=warnings)


def without_networks(
    engine: Engine, sessions: Sequence[str], seconds: float, check: bool
) -> Tuple[NetworkChanges, List[str]]:
    """Remove the networks of these sessions that are on this engine alone; the result, and the names of those that are left.

    An overlay is left to a manager, after the other agents; a worker does not name it, because it cannot remove it. A network that
    the engine does not let go of is left, too: the logs that the same call has read must not be lost with it.
    """
    listed = [network for network in (engine.networks() if sessions else []) if session_of(network) in sessions]
    own = [network for network in listed if not is_shared_network(network)]
    left = [network["Name"] for network in _removable(engine, listed) if is_shared_network(network)]
    try:
        return remove_network(engine, sessions, deadline_in(min(seconds, LEAVING)), check, own), left
    except ComputeError:
        return NetworkChanges(warnings=()), left + [network["Name"] for network in own]


def is_shared_network(network: Json) -> bool:
    """Return whether the engines of a Swarm share the network."""
    return network.get("Scope") == "swarm"


def shape(network: Network) -> Json:
    """A network as results and differences show it."""
    shown = ("name", "driver", "subnet", "gateway", "ip_range", "mtu", "encrypted")
    return {**{key: getattr(network, key) for key in shown}, "labels": dict(network.labels)}


def _check(found: Json, plan: Plan) -> None:
    """Refuse a network that is not the session's, and a network of the session that differs from the plan: it may be in use."""
    if session_of(found) != plan.session.id:
        message = "On %s the network %s (%s) does not belong to this session; remove or rename it."
        raise ConflictError(message % (network_place(plan), found["Name"], found["Id"][:12]), network_place(plan))
    wrong = _differences(found, plan.network)
    if wrong:
        message = "Network %s has another %s than the plan; terminate the session before launching it again."
        raise StateError(message % (found["Name"], " and ".join(wrong)), found["Name"])


def network_place(plan: Plan) -> str:
    """Where a plan's network is created: on its one agent, or in the Swarm of its agents."""
    return "the Swarm" if plan.network.driver == "overlay" else plan.main.agent


def _differences(found: Json, network: Network) -> List[str]:
    wanted, options = network_options(network), found.get("Options") or {}
    pools = (found.get("IPAM") or {}).get("Config") or [{}]
    pairs = {
        "driver": (network.driver, found.get("Driver", "")),
        "subnet": (network.subnet, pools[0].get("Subnet", "")),
        "mtu": (wanted.get(MTU_OPTION), options.get(MTU_OPTION)),
        "encrypted": ("encrypted" in wanted, "encrypted" in options),
    }
    return [name for name, (asked, seen) in pairs.items() if asked != seen]


def _removable(engine: Engine, networks: List[Json]) -> List[Json]:
    """The networks without the overlays that a worker sees while it uses them: a manager removes those for every node."""
    if any(map(is_shared_network, networks)) and not engine.info().swarm.manager:
        return [network for network in networks if not is_shared_network(network)]
    return networks


_HELD = (
    "Network %s stays: the Swarm counts a container of an agent on it, which it may not reach. The first launch or end removes it "
    "when the agents reach each other again; check_agents.yml names those that do not."
)
_MISCOUNTED = (
    "%s: the engine keeps network %s, on which it lists no container: it has miscounted them. "
    "The first launch or end after a start of that engine removes it."
)


@dataclass
class _NetworkRemoval:
    """The removal of one network, which the engine may refuse while its last endpoints leave."""

    engine: Engine
    network: Json
    deadline: float
    is_miscounted: bool = False
    empty_since: float | None = None

    def carry_out(self) -> str:
        """Why the network stays, and when it will go; empty if it is removed. A manager keeps an overlay while a lost agent is on it.

        An engine that has miscounted the endpoints of its own network keeps it until the engine is started again
        (https://github.com/moby/moby/issues/42119). Of a shared network, an engine lists only its own containers.
        """
        identity, name = self.network["Id"], str(self.network["Name"])
        try:
            retry_until(lambda: self.engine.remove_network(identity, name), self._may_pass, self.deadline)
        except (ConflictError, EngineError) as error:
            if self.is_miscounted:
                return _MISCOUNTED % (self.engine.agent or "This host", name)
            if is_shared_network(self.network) and HELD in error.message:
                return _HELD % name
            if isinstance(error, EngineError):
                raise
            raise StateError(error.message, error.where) from error
        return ""

    def _may_pass(self, error: Exception) -> bool:
        """Return whether the engine may remove the network soon."""
        if not is_refusal(error):
            return False
        is_own = ENDPOINTS in str(error) and not is_shared_network(self.network)
        found = self.engine.network(self.network["Id"]) if is_own else None
        if found is None or found.get("Containers"):
            self.empty_since = None
            return True
        now = time.monotonic()
        self.empty_since = self.empty_since or now
        self.is_miscounted = now - self.empty_since >= COUNTING
        return not self.is_miscounted
