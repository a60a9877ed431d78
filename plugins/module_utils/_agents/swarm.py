# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An engine as a member of a Swarm: begins one, joins one, leaves it; and what a manager does for the others."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import time
from typing import Any, Dict, List, Mapping, Sequence

from ansible_collections.cluster.compute.plugins.module_utils._agents import host
from ansible_collections.cluster.compute.plugins.module_utils._core.constants import LABEL_SCHEMA, SCHEMA
from ansible_collections.cluster.compute.plugins.module_utils._core.errors import EngineError, StateError
from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json
from ansible_collections.cluster.compute.plugins.module_utils._docker.client import AbsentError, Engine
from ansible_collections.cluster.compute.plugins.module_utils._docker.removal import persist
from ansible_collections.cluster.compute.plugins.module_utils._docker.reports import engine_entry

PORT = 2377
PAUSE = 0.2
ON_AND_ON = "will continue in the background"


class SwarmEngine(Engine):
    """The requests that concern a Swarm."""

    def begin(self, address: str, pool: Sequence[str], labels: Mapping[str, str]) -> None:
        with self._asking("begin a Swarm") as client:
            spec = client.create_swarm_spec(labels=dict(labels))
            pools: Dict[str, Any] = {"default_addr_pool": list(pool)} if pool else {}
            client.init_swarm(advertise_addr=address, listen_addr="0.0.0.0:%d" % PORT, swarm_spec=spec, **pools)

    def join(self, remotes: Sequence[str], token: str, address: str) -> None:
        with self._asking("join the Swarm of %s" % ", ".join(remotes)) as client:
            listen = "0.0.0.0:%d" % PORT
            client.join_swarm(list(remotes), token, listen_addr=listen, advertise_addr=address)

    def leave(self) -> None:
        with self._asking("leave its Swarm") as client:
            client.leave_swarm(force=True)

    def tokens(self) -> Dict[str, str]:
        with self._asking("tell how its Swarm is joined") as client:
            found = client.inspect_swarm().get("JoinTokens") or {}
            return {"worker": str(found["Worker"]), "manager": str(found["Manager"])}

    def nodes(self) -> Dict[str, Json]:
        with self._asking("list the nodes of its Swarm") as client:
            return {one["ID"]: one for one in client.nodes()}

    def set_role(self, node: Json, role: str) -> None:
        name = (node.get("Description") or {}).get("Hostname") or node["ID"]
        with self._asking("make node %s a %s" % (name, role)) as client:
            client.update_node(node["ID"], node["Version"]["Index"], {**node["Spec"], "Role": role})

    def forget(self, node: str) -> None:
        with self._asking("remove node %s from its Swarm" % node) as client:
            self._or_none(client.remove_node, node, force=True)


def asked(engine: Engine, data_root: str = "/var/lib/docker") -> Json:
    """The engine's place in a Swarm as reports show it, and whether this collection began that Swarm."""
    info = engine.info()
    swarm = info.get("Swarm") or {}
    joined = swarm.get("LocalNodeState") == "active"
    cluster = host.swarm_cluster(info.get("DockerRootDir") or data_root) if joined else ""
    labels = ((swarm.get("Cluster") or {}).get("Spec") or {}).get("Labels") or {}
    place: Json = engine_entry(info, "", cluster)["swarm"]
    return {**place, "ours": LABEL_SCHEMA in labels}


def begin(engine: SwarmEngine, address: str, pool: Sequence[str], deadline: float) -> Json:
    engine.begin(address, pool, {LABEL_SCHEMA: str(SCHEMA)})
    return _active(engine, deadline)


def join(engine: SwarmEngine, remote: str, token: str, address: str, deadline: float) -> Json:
    try:
        engine.join(["%s:%d" % (remote, PORT)], token, address)
    except EngineError as error:
        # After 20 s an engine says so and goes on trying; to leave then could cost the managers their quorum.
        # https://github.com/moby/moby/blob/v20.10.24/daemon/cluster/errors.go
        if ON_AND_ON not in error.message:
            raise
    return _active(engine, deadline)


def settled(engine: Engine, deadline: float) -> Json:
    """The membership, once an engine that has just begun to run or to join knows what it is in."""
    place = asked(engine)
    while place["state"] == "pending" and time.monotonic() + PAUSE < deadline:
        time.sleep(PAUSE)
        place = asked(engine)
    return place


def set_roles(engine: SwarmEngine, nodes: Sequence[str], role: str, deadline: float, *, check: bool) -> List[str]:
    """Make managers of nodes, or workers again; gives back those that were not."""
    found = engine.nodes()
    wanted = [node for node in nodes if node in found and found[node]["Spec"].get("Role") != role]
    for node in [] if check else wanted:
        # The node's version changes with its heartbeats: look again at every try.
        persist(lambda node=node: engine.set_role(engine.nodes()[node], role), deadline)  # type: ignore[misc]
        _await_role(engine, node, role, deadline)
    return wanted


def forget(engine: SwarmEngine, nodes: Sequence[str], deadline: float, *, check: bool) -> List[str]:
    """Take nodes that have left off the list; gives back those that were on it."""
    wanted = [node for node in nodes if node in engine.nodes()]
    for node in [] if check else wanted:
        persist(lambda node=node: engine.forget(node), deadline)  # type: ignore[misc]
    return wanted


def _active(engine: Engine, deadline: float) -> Json:
    """The membership once the engine has it; joining goes on in the background."""
    while True:
        place = asked(engine)
        if place["state"] == "active":
            return place
        if time.monotonic() + PAUSE > deadline:
            message = "%s is still %s in its Swarm; see that TCP %d is open between the agents, and its log."
            raise StateError(message % (engine.where, place["state"], PORT), engine.agent)
        time.sleep(PAUSE)


def _await_role(engine: SwarmEngine, node: str, role: str, deadline: float) -> None:
    """A manager has its seat in the quorum, or has given it up, a moment after it was told to."""
    while True:
        found = engine.nodes().get(node)
        if found is None:
            raise AbsentError("Node %s has left the Swarm." % node, engine.agent)
        seated = (found.get("ManagerStatus") or {}).get("Reachability") == "reachable"
        if seated == (role == "manager"):
            return
        if time.monotonic() + PAUSE > deadline:
            message = "%s told node %s to be a %s, and it is not yet; look at the log of that node's engine."
            raise StateError(message % (engine.where, node, role), engine.agent)
        time.sleep(PAUSE)
