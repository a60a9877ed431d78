# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The second network of a session, a macvlan network on the interface of an agent for the fabric, and the containers on it.

An engine connects the networks of a container that starts in any order, and names its interfaces in that order. Therefore a container
starts without this network, and gets it before it gets its files.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Dict, List, Sequence

from ..._shared.codec import Json
from ..._shared.constants import RUNTIME_PATH
from ..._shared.documents.plan import Container, Plan
from ..._shared.errors import ComputeError, ConflictError, InputError, StateError
from ..._shared.waiting import deadline_in
from .client import Engine, session_containers
from .device_nodes import gid_of
from .networks import LEAVING, is_shared_network
from .networks import remove_network as networks_absent
from .reports import session_of

DRIVER = "macvlan"
# The engine takes its own connection to this network away from a container that gets another network with a gateway, and the published
# ports with it. Connected to it like to any other network, the container has both again.
_GATEWAY = "docker_gwbridge"
# The arguments are the interface, the container's address on it, its address in the private network, and its hostname, for which the
# engine has added a line with each connection.
_SETTLE = f"""
box={RUNTIME_PATH}/bin/busybox
unset LD_LIBRARY_PATH LD_PRELOAD
"$box" ip -4 -o addr show dev "$1" | "$box" grep -q -F " $2/" || exit 3
lines=$("$box" grep -v -x -E "[0-9.]+[[:space:]]+$4" /etc/hosts) && "$box" printf '%s\\n%s\\t%s\\n' "$lines" "$3" "$4" >/etc/hosts
"""
# The kernel adds an address on the fabric to the table of the RoCE port beneath it, and programs of the container need this entry, the
# GID. An InfiniBand port needs none. The argument is the entry; ten seconds are for the kernel, which adds it later than the address.
_FIND_GID = f"""
box={RUNTIME_PATH}/bin/busybox
unset LD_LIBRARY_PATH LD_PRELOAD
cd /sys/class/infiniband || exit 3
"$box" grep -l -s InfiniBand */ports/*/link_layer | while read -r layer; do
    "$box" grep -q ACTIVE "${{layer%/*}}/state" && echo active
done | "$box" grep -q active && exit 0
tries=0
while [ "$tries" -lt 100 ]; do
    for gid in $("$box" grep -l -s -x -F "$1" */ports/*/gids/*); do
        "$box" grep -q -s -x 'RoCE v2' "${{gid%/gids/*}}/gid_attrs/types/${{gid##*/}}" && exit 0
    done
    tries=$((tries + 1))
    "$box" sleep 0.1
done
echo */ports/*
exit 4
"""


def create_fabric(engine: Engine, plan: Plan, interface: str, *, check: bool) -> None:
    """Create the network on the fabric, unless it exists."""
    if not interface:
        raise InputError("agent_fabric", None, f"must be set for {engine.agent}, because session_fabric is true")
    name, options = plan.network.fabric_name, {"parent": interface}
    found = [one for one in engine.networks(everyone=True) if one["Name"] == name and not is_shared_network(one)]
    for one in found:
        if session_of(one) != plan.session.id or one.get("Options") != options:
            message = "On %s the network %s does not belong to this session and to %s; remove it."
            raise ConflictError(message % (engine.agent, name, interface), engine.agent)
    if not found and not check:
        # The engine insists on a gateway, for which it takes the first address: no container of the session has that.
        own = {"options": options, "labels": dict(plan.network.labels)}
        ipam = {"Driver": "default", "Config": [{"Subnet": plan.network.fabric}]}
        engine.create_network(name, {"driver": DRIVER, **own, "ipam": ipam})


def remove_fabric(engine: Engine, sessions: Sequence[str]) -> Sequence[str]:
    """Remove the networks on the fabric of those sessions that have no container here any more: others wait for the interface."""
    found = [one for one in engine.networks() if one.get("Driver") == DRIVER and session_of(one) in sessions]
    used = {session_of(one) for one in session_containers(engine, sessions)} if found else set()
    idle = [one for one in found if session_of(one) not in used]
    return networks_absent(engine, sessions, deadline_in(LEAVING), False, idle).removed if idle else ()


def is_connected(plan: Plan, listed: Json) -> bool:
    """Return whether a container is on the networks that it gets after its start, if its session has any."""
    return set(_later(plan)) <= set(_networks(listed))


def leave_fabric(engine: Engine, plan: Plan, container: Container, listed: Json) -> None:
    """Disconnect a container that does not run from the networks that it gets after its start."""
    for name in _later(plan):
        if name in _networks(listed):
            engine.disconnect(listed["Id"], name, container.hostname)


def join_fabric(engine: Engine, plan: Plan, container: Container, listed: Json) -> None:
    """Connect a container that has just started. One that cannot be connected is stopped: no program may run without its fabric."""
    if not plan.network.fabric:
        return
    places: Dict[str, Json] = {name: {} for name in _later(plan)}
    address = plan.network.on_fabric(container.address)
    places[plan.network.fabric_name] = {"ipv4_address": address, "aliases": [f"{container.hostname}-fabric"]}
    try:
        for name, place in places.items():
            engine.connect(listed["Id"], name, place, container.hostname)
        _settle(engine, container, listed, plan.network.fabric_interface, address)
        if plan.session.rdma:
            _find_gid(engine, container, listed, address)
    except Exception:
        with suppress(ComputeError):
            engine.stop(listed["Id"], 0, container.hostname)
        raise


def _settle(engine: Engine, container: Container, listed: Json, interface: str, address: str) -> None:
    """Make sure that the variables of the container name its interface, and that its hostname has one address in it."""
    command = [RUNTIME_PATH + "/bin/sh", "-c", _SETTLE, "sh", interface, address, container.address, container.hostname]
    code, output = engine.execute(listed["Id"], command, container.hostname)
    if code:
        message = "%s: its fabric is not at %s (exit code %d): %s; check the version of the engine of %s."
        raise StateError(message % (container.hostname, interface, code, output, engine.agent), engine.agent)


def _find_gid(engine: Engine, container: Container, listed: Json, address: str) -> None:
    """Make sure that RDMA works through the fabric. Without an entry for the address, programs would use TCP and say nothing."""
    command = [RUNTIME_PATH + "/bin/sh", "-c", _FIND_GID, "sh", gid_of(address)]
    code, output = engine.execute(listed["Id"], command, container.hostname)
    if code:
        message = "%s: no RDMA port of %s has a RoCE v2 GID for %s, its address on the fabric (%s): %s."
        remedy = "check that its driver supports RoCE v2, and that rdma system there shows netns shared"
        words = (container.hostname, engine.agent, address, " ".join(output.split()) or "no port", remedy)
        raise StateError(message % words, engine.agent)


def _later(plan: Plan) -> List[str]:
    if not plan.network.fabric:
        return []
    return [plan.network.fabric_name] + [_GATEWAY] * (plan.network.driver == "overlay")


def _networks(listed: Json) -> Json:
    found: Json = (listed.get("NetworkSettings") or {}).get("Networks") or {}
    return found
