# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps that form the Swarm of the agents, one engine at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import List, Mapping, Optional, Sequence

from .._agent import swarm
from .._agent.host import own_address
from .._shared.documents.step_documents import ChangedNodes
from .._shared.errors import ConflictError, StateError
from .._shared.planning.swarm_plan import ChangedNode, Membership, Node
from .._shared.waiting import deadline_in
from .step import AgentHandle


def describe(
    agent: AgentHandle, addresses: Optional[List[str]] = None, tokens: bool = False, deadline: int = 60
) -> ChangedNode:
    """C(swarm) describes the engine's place in its Swarm; C(tokens) are those that others join with."""
    engine = agent.connect(swarm.SwarmEngine)
    place = swarm.settled_membership(engine, deadline_in(deadline))
    is_local = agent.docker_host.startswith("unix://")
    node = swarm.node_of(engine, place, addresses or [], is_local=is_local)
    return ChangedNode(swarm=node, tokens=engine.tokens() if tokens else {})


def join(
    agent: AgentHandle,
    addresses: List[str],
    cluster: str = "",
    remote: str = "",
    token: str = "",
    address_pool: Sequence[str] = (),
    deadline: int = 60,
) -> ChangedNode:
    """Join the Swarm of a manager at C(remote), or create one. Raises ConflictError for an engine in another Swarm."""
    engine, end = agent.connect(swarm.SwarmEngine), deadline_in(deadline)
    before = swarm.settled_membership(engine, end)
    if before.state == "active":
        if cluster and before.cluster_id and before.cluster_id != cluster:
            message = "%s is in the Swarm %s and not in %s; run `docker swarm leave` on that host."
            raise ConflictError(message % (agent.name, before.cluster_id, cluster), agent.name)
        after = before
    elif agent.check:
        after = replace(before, state="active", cluster_id=cluster)
    elif remote:
        after = swarm.join_swarm(engine, remote, token, own_address(addresses), end)
    else:
        after = swarm.create_swarm(engine, own_address(addresses), list(address_pool), end)
    return _change(agent, before, after, addresses)


def leave(agent: AgentHandle, addresses: Optional[List[str]] = None) -> ChangedNode:
    """Leave the Swarm."""
    engine = agent.connect(swarm.SwarmEngine)
    before = swarm.membership(engine)
    if before.state == "inactive":
        return _change(agent, before, before, addresses)
    if not agent.check:
        engine.leave()
    return _change(agent, before, Membership(), addresses)


def set_roles(agent: AgentHandle, nodes: Sequence[str], role: str, deadline: int = 60) -> ChangedNodes:
    """Make nodes managers or workers; C(nodes) are those that changed. The agent is a manager."""
    changed = swarm.set_node_roles(
        agent.connect(swarm.SwarmEngine), nodes, role, deadline_in(deadline), check=agent.check
    )
    return ChangedNodes(bool(changed), tuple(changed))


def remove_nodes(agent: AgentHandle, nodes: Sequence[str], deadline: int = 60) -> ChangedNodes:
    """Remove nodes that have left the Swarm; C(nodes) are those that were removed. The agent is a manager."""
    changed = swarm.remove_swarm_nodes(
        agent.connect(swarm.SwarmEngine), nodes, deadline_in(deadline), check=agent.check
    )
    return ChangedNodes(bool(changed), tuple(changed))


def remove_former(agent: AgentHandle, node: str, deadline: int = 60) -> ChangedNodes:
    """Remove what a host was in the Swarm before it joined as C(node). The agent is a manager."""
    listed = agent.connect(swarm.SwarmEngine).nodes()
    return remove_nodes(agent, swarm.former_nodes(listed, node), deadline)


def fence(
    agent: AgentHandle, nodes: Mapping[str, str], removes: bool, swarm_id: str = "", deadline: int = 60
) -> ChangedNodes:
    """Make sure that the Swarm has lost these nodes, by the name of their agent. The agent is a manager.

    A node that is not in its list has been removed, if it was of this Swarm: a manager of another one knows nothing about it.
    With C(removes), the Swarm removes them: only then it gives the addresses of their containers to others, and a node that comes back
    connects no container to an overlay network before it has joined again.
    """
    engine = agent.connect(swarm.SwarmEngine)
    listed = engine.nodes()
    is_own = all(node in listed for node in nodes.values()) or swarm.membership(engine).cluster_id == swarm_id
    absent = "down" if is_own else "not in the list, which may be that of another Swarm"
    for name, node in sorted(nodes.items()):
        state = listed[node].state if node in listed else absent
        if not node or state != "down":
            found = f"its node is {state}" if node else "its node is unknown"
            message = "%s does not answer, but for the Swarm of %s %s: its containers may still run, so they are not made elsewhere."
            raise StateError(message % (name, agent.name, found), name)
    if not removes:
        return ChangedNodes()
    swarm.set_node_roles(engine, list(nodes.values()), "worker", deadline_in(deadline), check=agent.check)
    return remove_nodes(agent, list(nodes.values()), deadline)


def _change(agent: AgentHandle, before: Membership, after: Membership, addresses: List[str] | None) -> ChangedNode:
    node = Node(**{**vars(after), "address": after.address or own_address(addresses or [])}, name=agent.name)
    difference = {"before": before.to_json(), "after": after.to_json()}
    return ChangedNode(after is not before, node, diff=difference)
