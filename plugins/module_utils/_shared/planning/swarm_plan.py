# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plan the steps until all agents are in the same Swarm."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Collection, Dict, Iterable, List, Mapping, Sequence, Tuple

from ..codec import Document, Json
from ..constants import VXLAN_PORT
from ..documents.findings import names_of_one_engine, one_engine
from ..documents.report import AgentReport, SwarmPlace
from ..documents.schema import a_flag, ruled, rules_of, texts

INIT = "init"
JOIN = "join"
PROMOTE = "promote"
REJOIN = "rejoin"
_REMEDY = "run `docker swarm leave` on that host, or set agent_swarm to false for it"
_MANAGER_MOVED = (
    "Give it that address again, or make it a worker (on %s: `docker node demote %s`), and run provision_agents.yml."
)
_LAST_MOVED = (
    "Give it that address again; if it is gone for good, make a new Swarm: end the sessions over several hosts with terminate.yml, "
    "run `docker swarm leave --force` and restart the engine on each host, then run provision_agents.yml."
)


@dataclass(frozen=True)
class Membership(SwarmPlace):
    """The place of an engine in its Swarm, and whether this collection created the Swarm."""

    ours: bool = False


@dataclass(frozen=True)
class Node(Membership):
    """An agent's engine as a member of a Swarm; ``wanted`` is whether the agent is configured as a manager.

    ``address`` is the one for other hosts, and ``own`` the one that a host without a Swarm has. Where the host lacks the address that
    its Swarm knows, ``held`` are all that it has, and ``busy`` its containers of sessions. On a manager, ``seen`` are the addresses
    from which the nodes that are ready ask the managers.
    """

    name: str = ""
    wanted: bool = False
    identity: str = ""
    own: str = ""
    held: Tuple[str, ...] = ()
    busy: Tuple[str, ...] = ()
    seen: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ChangedNode(Document):
    """An agent's engine in its Swarm, with the tokens by which others join and the difference, each only if there is one."""

    changed: bool = ruled(a_flag, False)
    swarm: Node = ruled(rules_of(Node), Node)
    tokens: Mapping[str, str] = ruled(texts, dict)
    diff: Mapping[str, Any] = field(default_factory=dict)

    @property
    def written(self) -> Mapping[str, Any]:
        return {name: value for name, value in vars(self).items() if value or name not in ("tokens", "diff")}


def read_agents(reports: Iterable[Json]) -> Tuple[AgentReport, ...]:
    """Agents from their reports. A worker whose certificate this user cannot read is assigned to the Swarm of its managers."""
    agents = [AgentReport.from_json(report) for report in reports]
    by_manager = {agent.place.node_id: agent.swarm for agent in agents if agent.swarm and agent.place.node_id}
    return tuple(_known(agent, "" if agent.swarm else _first(agent.place.managers, by_manager)) for agent in agents)


def _known(agent: AgentReport, cluster: str) -> AgentReport:
    return agent.in_swarm(cluster) if cluster else agent


def data_path_port(swarms: Iterable[SwarmPlace]) -> int:
    """The port of the Swarm's overlays, from these memberships: only managers know it."""
    return next((swarm.data_path_port for swarm in swarms if swarm.data_path_port), VXLAN_PORT)


@dataclass(frozen=True)
class JoinPlan(Document):
    """The steps to one Swarm: the host that leads, its Swarm if it exists, the step of each host, the reason for each refusal, whether
    the Swarm is this collection's, and for each host the addresses of the others."""

    lead: str = ""
    cluster: str = ""
    address: str = ""
    steps: Mapping[str, str] = field(default_factory=dict)
    managers: Tuple[str, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)
    port: int = VXLAN_PORT
    ours: bool = False
    peers: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class LeavePlan(Document):
    """For each host that leaves, a manager that stays; for each host that must not leave, the reason."""

    keepers: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    port: int = VXLAN_PORT
    peers: Mapping[str, Sequence[str]] = field(default_factory=dict)
    staying: Tuple[str, ...] = ()


def plan_swarm(nodes: Sequence[Node], head: str) -> JoinPlan:
    """Plan the Swarm of the head, or one that this collection created and that the head joins again."""
    nodes = sorted(resolved(nodes), key=lambda node: node.name != head)
    lead = _lead(nodes, head)
    cluster = lead.cluster_id if lead.state == "active" else ""
    managed = {node.cluster_id for node in nodes if node.manager and node.cluster_id}
    refused = {node.name: why for node in nodes for why in [_refusal(node, lead, cluster, managed)] if why}
    refused.update(_under_two_names(nodes))
    moved = _moved(nodes, lead)
    keeper = next(
        (node.name for node in nodes if node.manager and node.cluster_id == cluster and node not in moved), ""
    )
    refused = {**{node.name: why for node in moved for why in [_stays(node, keeper)] if why}, **refused}
    # Who joins a manager at an address that it lacks would wait for nothing.
    able = [node for node in nodes if node.name not in refused and lead.name not in refused]
    managers = [node.name for node in able if node.wanted or node.name == head or node.manager]
    steps = {node.name: REJOIN if node in moved else _step(node, lead, managers) for node in able}
    taken = {name: step for name, step in steps.items() if step}
    return JoinPlan(
        lead=lead.name,
        cluster=cluster,
        address=lead.address,
        steps=taken,
        managers=tuple(managers),
        refused=refused,
        port=lead.data_path_port or VXLAN_PORT,
        ours=lead.ours or not cluster,
        peers=peers(nodes, taken),
    )


def resolved(nodes: Sequence[Node]) -> List[Node]:
    """The nodes with their Swarm. A worker whose certificate this user cannot read is assigned to the Swarm of its managers."""
    by_manager = {node.node_id: node.cluster_id for node in nodes if node.manager and node.node_id}
    return [node if node.cluster_id else replace(node, cluster_id=_first(node.managers, by_manager)) for node in nodes]


def swarm_of(places: Mapping[str, SwarmPlace], head: str) -> Tuple[List[Node], str, List[str]]:
    """The agents of these places as nodes, the Swarm of the head or of most, and its managers."""
    nodes = resolved([Node(name=name, **vars(place)) for name, place in places.items()])
    joined = [node for node in nodes if node.state == "active"]
    ids = [node.cluster_id for node in joined if node.cluster_id]
    first = next((node.cluster_id for node in joined if node.name == head), "")
    cluster = first or max(ids, key=ids.count, default="")
    return nodes, cluster, [node.name for node in joined if node.manager and node.cluster_id == cluster]


def _first(managers: Sequence[str], clusters: Mapping[str, str]) -> str:
    return next((clusters[manager] for manager in managers if manager in clusters), "")


def _lead(nodes: Sequence[Node], head: str) -> Node:
    """The manager that others join: of the head's Swarm, else of a Swarm that this collection created, else the head itself."""
    first = nodes[0]
    own = first.cluster_id if first.name == head and first.state == "active" else ""
    for node in nodes:
        if node.manager and node.state == "active" and (node.cluster_id == own if own else node.ours):
            return node
    return first


def _refusal(node: Node, lead: Node, cluster: str, managed: Collection[str]) -> str:
    if node.state not in ("active", "inactive"):
        why = "%s: the Swarm membership of its engine is in state %s; read that engine's log, or %s."
        return why % (node.name, node.state, _REMEDY)
    if node.state == "active" and not node.manager and node.cluster_id not in managed:
        why = (
            "%s is a worker of a Swarm (%s) that no agent of the inventory manages: bring one of its managers back; "
            "if they are lost for good, or if it is not wanted, %s, and run provision_agents.yml again."
        )
        return why % (node.name, node.cluster_id or "unknown", _REMEDY)
    if node.state == "active" and node.cluster_id != cluster:
        why = "%s is in another Swarm (%s) than %s (%s); %s."
        return why % (node.name, node.cluster_id or "unknown", lead.name, cluster or "none yet", _REMEDY)
    return ""


def _under_two_names(nodes: Sequence[Node]) -> Dict[str, str]:
    """Each further name of an engine, with the reason why it is refused."""
    groups = names_of_one_engine((node.name, node.identity) for node in nodes)
    return {name: "%s: %s: %s." % (name, *one_engine(names)) for names in groups for name in names[1:]}


def _moved(nodes: Sequence[Node], lead: Node) -> List[Node]:
    """The nodes of a Swarm that have another address than it knows.

    An address that a host lacks may be translated on the way to it. So a node has moved only if the managers see it at an address that
    it has, and a manager that leads only if no other node is ready.
    """
    inside = [node for node in nodes if node.state == "active" and node.cluster_id == lead.cluster_id]
    is_alone = len(inside) > 1 and not lead.seen.keys() - {lead.node_id}
    return [
        node for node in inside if lead.seen.get(node.node_id) in node.held or (node is lead and node.held and is_alone)
    ]


def _stays(node: Node, keeper: str) -> str:
    """Why a host that has another address than its Swarm knows does not join again; ``keeper`` is a manager that has not moved."""
    if node.manager:
        why = "%s is a manager of its Swarm, which has it at %s; this host does not have that address any more (but %s). %s"
        remedy = _MANAGER_MOVED % (keeper, node.node_id) if keeper else _LAST_MOVED
        return why % (node.name, node.address, ", ".join(node.held), remedy)
    if node.busy:
        why = (
            "%s has another address than its Swarm knows (%s): it must leave and join again, which would cut off the containers of "
            "sessions there (%s). End these sessions with terminate.yml, then run provision_agents.yml again."
        )
        return why % (node.name, node.address, ", ".join(node.busy))
    return ""


def _step(node: Node, lead: Node, managers: Sequence[str]) -> str:
    if node.state == "inactive":
        return INIT if node.name == lead.name else JOIN
    return PROMOTE if node.name in managers and not node.manager else ""


def plan_leave(leaving: Sequence[Node], staying: Sequence[Node], agents: Sequence[str]) -> LeavePlan:
    """Choose who removes each host that leaves, of all ``agents`` of the inventory."""
    gone = {node.name for node in leaving}
    nodes = [node for node in resolved([*leaving, *staying]) if node.state == "active"]
    stay = [node for node in nodes if node.name not in gone]
    keepers: Dict[str, str] = {}
    refused: Dict[str, str] = {}
    for node in nodes:
        mine = [other for other in stay if other.cluster_id == node.cluster_id and node.cluster_id]
        keeper = next((other.name for other in mine if other.manager), "")
        if node.name in gone and keeper:
            keepers[node.name] = keeper
        elif node.name in gone and node.manager and mine:
            why = "%s is the last manager of the Swarm of %s; set agent_swarm_manager for one of those agents first."
            refused[node.name] = why % (node.name, ", ".join(sorted(other.name for other in mine)))
    return LeavePlan(
        keepers=keepers,
        refused=refused,
        port=data_path_port([*leaving, *staying]),
        peers=peers([*leaving, *staying]),
        staying=tuple(agent for agent in agents if agent not in gone),
    )


def peers(nodes: Sequence[Node], steps: Mapping[str, str] | None = None) -> Dict[str, List[str]]:
    """For each host, the addresses of the others after these steps of a plan: who joins again does so with the address that it has."""
    rejoining = {name for name, step in (steps or {}).items() if step == REJOIN}
    now = {node.name: node.own if node.name in rejoining else node.address for node in nodes}
    return {node.name: [address for name, address in now.items() if name != node.name] for node in nodes}
