# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan: request, placement and addresses in the one document that all later steps read.

Every ID is derived from the session's, so that a request and the labels of a container give the same plan again.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import groupby, islice
from typing import Collection, Dict, List, Mapping, Sequence, Tuple

from .. import label
from ..codec import digest, non_default_fields
from ..constants import ELASTIC, GRACE, HOST, MASTER_PORT, MULTI_NODE, SCHEMA, SSH_PORT, STATIC, VXLAN_OVERHEAD
from ..documents.plan import App, Container, Mount, Network, Plan, Port, Session
from ..documents.report import AgentReport
from ..documents.topology import Member, local_ranks
from ..names import container_id, container_names, merged_environment, network_name
from .addresses import Subnet, host_subnet, slot_of
from .environment import common_environment, computing_ranks, own_environment
from .placement import Placement, rdma_environment, rdma_ports_in
from .request import Request


@dataclass(frozen=True)
class PlanInputs:
    """The inputs of a plan besides the request: the IDs, the placement and the addresses.

    ``hosts`` are the address and the interface of agents for a session in their network, which has no ``subnet``, and ``master_port``
    is a port that is free there. ``fabric`` is the subnet on the fabric, and ``own_volumes`` what the policy of the site says. By
    agent: ``taken_names`` are the names that containers without a session have, ``rdma_ports`` those that the session can use.
    ``first`` are the digest of the first request and its sizes, if a size is another one now.
    """

    session_id: str
    launch: str
    placement: Placement
    subnet: Subnet
    ports: Tuple[Port, ...]
    master_port: int = MASTER_PORT
    hosts: Mapping[str, Tuple[str, str]] = field(default_factory=dict)
    mtu: int | None = None
    fabric: str = ""
    began: float = 0.0
    own_volumes: bool = False
    taken_names: Mapping[str, Collection[str]] = field(default_factory=dict)
    rdma_ports: Mapping[str, Sequence[str]] = field(default_factory=dict)
    permitted_folders: Tuple[str, ...] = ()
    first: Tuple[str, str] = ("", "")
    # Of a session whose containers have moved: each keeps its local rank, so that its environment stays the same.
    local_ranks: Tuple[int, ...] = ()


def inputs_of(plan: Plan) -> PlanInputs:
    """Return what a plan was made from, so that the same request gives the same plan again. Names of agents are not in it."""
    session, network, containers = plan.session, plan.network, plan.containers
    return PlanInputs(
        session_id=session.id,
        launch=session.launch,
        placement=Placement(
            tuple(one.agent for one in containers), tuple(one.resources for one in containers), session.mode
        ),
        subnet=Subnet(network.subnet, network.gateway, network.ip_range, tuple(one.address for one in containers)),
        ports=plan.main.ports,
        master_port=network.master_port,
        hosts={one.agent: (one.address, one.interface) for one in containers},
        mtu=network.mtu,
        fabric=network.fabric,
        began=session.began,
        own_volumes=session.own_volumes,
        rdma_ports={one.agent: rdma_ports_in(one.environment) for one in containers},
        permitted_folders=session.permitted_folders,
        first=(session.request, plan.main.labels.get(label.FIRST, "")),
        local_ranks=tuple(one.local_rank for one in containers),
    )


def build_plan(request: Request, inputs: PlanInputs) -> Plan:
    """The whole plan with the session's own environment; ``with_user_environment`` adds the user's variables.

    Whatever a session has by the same name as its request is the request's.
    """
    if request.network == HOST:
        addresses = [inputs.hosts[agent][0] for agent in inputs.placement.agents]
        inputs = replace(inputs, subnet=host_subnet(addresses), mtu=None)
    known = {field.name for field in fields(request)}
    shared = {field.name: getattr(request, field.name) for field in fields(Session) if field.name in known}
    own = {"id": inputs.session_id, "launch": inputs.launch, "mode": inputs.placement.mode}
    own["request"] = inputs.first[0] or request.digest
    chosen = {"own_volumes": inputs.own_volumes, "permitted_folders": inputs.permitted_folders}
    session = Session(**{**shared, **own, **chosen}, began=inputs.began)
    session = replace(
        session,
        mounts=tuple(_engine_mount(mount, session) for mount in request.mounts),
        apps=tuple(_listening(app, inputs.ports) if request.network == HOST else app for app in request.apps),
    )
    labels = _session_labels(session, inputs)
    network = _network(session, inputs, labels, request.network_encrypted)
    # Containers that compute are counted apart from the others.
    idle = {role.name for role in request.roles if not role.compute}
    places = [(agent, one.role in idle) for agent, one in zip(inputs.placement.agents, request.members)]
    ranks = inputs.local_ranks or local_ranks(places)
    containers = [_container(session, network, inputs, member, ranks[member.rank]) for member in request.members]
    common = common_environment(session, network, containers)
    environments = [
        {
            **common,
            **own_environment(session, network, container),
            **(_rdma(network, inputs, container) if request.rdma else {}),
            **_torchrun(request, session, container, network.master_port),
        }
        for container in containers
    ]
    return _with_environments(Plan(session, network, tuple(containers)), environments)


def _rdma(network: Network, inputs: PlanInputs, container: Container) -> Dict[str, str]:
    address = network.on_fabric(container.address) if network.fabric else ""
    return rdma_environment(inputs.rdma_ports.get(container.agent, ()), address)


def _torchrun(request: Request, session: Session, container: Container, port: int) -> Dict[str, str]:
    """The variables of one container: as many processes as it has GPUs, else one; none if it does not compute."""
    ranks = computing_ranks(session)
    if container.hostname not in ranks:
        return {}
    main = next(iter(ranks))
    processes = str(len(container.resources.devices) or 1)
    if request.torchrun_mode == STATIC:
        return {
            # The static rendezvous waits for the largest number; with --standalone, torchrun begins with the smallest.
            "PET_NNODES": "1:%d" % len(ranks),
            "PET_NODE_RANK": str(ranks[container.hostname]),
            "PET_NPROC_PER_NODE": processes,
            "PET_MASTER_ADDR": main,
            "PET_MASTER_PORT": str(port),
        }
    if request.torchrun_mode == ELASTIC:
        return {
            "PET_NNODES": request.torchrun_nodes or "1:%d" % len(ranks),
            "PET_NPROC_PER_NODE": processes,
            "PET_RDZV_BACKEND": "c10d",
            "PET_RDZV_ENDPOINT": "%s:%d" % (main, port),
            "PET_RDZV_ID": session.id,
            "PET_MAX_RESTARTS": str(request.torchrun_restarts),
            # The processes need a store of their own: a shared one keeps keys of the processes before a restart, and the
            # container that rejoins ends the whole training with DistStoreError.
            "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
        }
    return {}


def with_user_environment(plan: Plan, rendered: Sequence[Mapping[str, str]]) -> Plan:
    """The plan with the user's variables, already rendered for each rank, which override or extend those of the session."""
    pairs = zip(plan.containers, rendered)
    return _with_environments(
        plan, [merged_environment(container.environment, variables) for container, variables in pairs]
    )


def _with_environments(plan: Plan, environments: Sequence[Mapping[str, str]]) -> Plan:
    """The same plan with each container's environment replaced, in rank order."""
    pairs = zip(plan.containers, environments)
    return replace(plan, containers=tuple(replace(container, environment=dict(env)) for container, env in pairs))


def relaunched(plan: Plan, taken_names: Mapping[str, Collection[str]]) -> Plan:
    """The same plan under a new launch ID, which keeps apart what a repair makes and what was there.

    A container whose name something else has taken gets its other name.
    """
    launch_id = str(uuid.uuid4())

    def relabelled(labels: Mapping[str, str]) -> Dict[str, str]:
        return {**labels, label.LAUNCH: launch_id}

    return Plan(
        session=replace(plan.session, launch=launch_id),
        network=replace(plan.network, labels=relabelled(plan.network.labels)),
        containers=tuple(
            replace(
                container,
                name=free_name(plan.session, container.hostname, taken_names.get(container.agent, ())),
                labels=relabelled(container.labels),
            )
            for container in plan.containers
        ),
    )


def free_name(session: Session, hostname: str, taken: Collection[str]) -> str:
    """The engine's name of a container, where other containers have the names that are taken."""
    name, other_name = container_names(session.owner, session.name, hostname, session.id)
    return other_name if name in taken else name


def show_placement(agents: Sequence[str]) -> str:
    """The label with the agent of every rank; equal neighbours are counted."""
    return json.dumps([[agent, len(list(run))] for agent, run in groupby(agents)], separators=(",", ":"))


def mtu_for(mode: str, agents: Sequence[AgentReport], used: Sequence[str]) -> int | None:
    """The MTU of an overlay: the smallest of its agents' underlays without the VXLAN overhead. A bridge has the engine's own."""
    if mode != MULTI_NODE:
        return None
    # The inventory may have other agents than the labels of a session.
    return min((agent.mtu for agent in agents if agent.name in set(used)), default=AgentReport.mtu) - VXLAN_OVERHEAD


def _session_labels(session: Session, inputs: PlanInputs) -> Dict[str, str]:
    return {
        label.SCHEMA: str(SCHEMA),
        label.SESSION: session.id,
        label.NAME: session.name,
        label.OWNER: session.owner,
        label.GROUP: session.group,
        label.MODE: session.mode,
        label.SIZE: str(session.size),
        label.PLACEMENT: show_placement(inputs.placement.agents),
        label.SUBNET: inputs.subnet.subnet,
        label.REQUEST: session.request,
        **({label.FABRIC: inputs.fabric} if inputs.fabric else {}),
        **({label.HOST_PORTS: "%d,%d" % (_ssh_port(inputs), inputs.master_port)} if session.network == HOST else {}),
        **({label.SLOTS: _slots(session, inputs.subnet)} if session.roles else {}),
        label.LAUNCH: session.launch,
        **({label.GRACE: str(session.grace)} if session.grace != GRACE else {}),
        **({label.BEGAN: repr(session.began)} if session.began else {}),
        **({label.FIRST: inputs.first[1]} if inputs.first[1] else {}),
        **({label.FOLDERS: json.dumps(session.permitted_folders)} if session.permitted_folders else {}),
    }


def _slots(session: Session, subnet: Subnet) -> str:
    """The label with the place of each address in the subnet, role by role: they follow no order after a change of sizes."""
    slots = iter([slot_of(subnet.gateway, address) for address in subnet.addresses])
    return json.dumps([list(islice(slots, size)) for size in session.sizes], separators=(",", ":"))


def _network(session: Session, inputs: PlanInputs, labels: Mapping[str, str], encrypted: bool) -> Network:
    return Network(
        name=network_name(session.owner, session.name, session.id),
        driver=HOST if session.network == HOST else "overlay" if session.mode == MULTI_NODE else "bridge",
        subnet=inputs.subnet.subnet,
        gateway=inputs.subnet.gateway,
        ip_range=inputs.subnet.ip_range,
        mtu=inputs.mtu,
        encrypted=encrypted and session.mode == MULTI_NODE,
        labels=labels,
        fabric=inputs.fabric,
        ssh_port=_ssh_port(inputs),
        master_port=inputs.master_port,
    )


def _ssh_port(inputs: PlanInputs) -> int:
    """The port of sshd in every container."""
    return inputs.ports[0].container_port if inputs.ports else SSH_PORT


def _listening(app: App, ports: Sequence[Port]) -> App:
    """An app on the network of the agent, where it listens at the port that is free there."""
    port = next((one.host_port for one in ports if one.name == app.name), app.port)
    return replace(app, port=port, ready=str(port) if app.ready == str(app.port) else app.ready)


def _container(session: Session, network: Network, inputs: PlanInputs, member: Member, local_rank: int) -> Container:
    identity, agent = container_id(session.id, member.hostname), inputs.placement.agents[member.rank]
    resources = inputs.placement.resources[member.rank]
    own: Dict[str, str] = {
        label.CONTAINER: identity,
        label.ROLE: member.role,
        label.INDEX: str(member.index),
        label.RANK: str(member.rank),
        label.RESOURCES: json.dumps(resources.to_json(), separators=(",", ":")),
    }
    is_main = member.rank == 0
    # Empty labels hide those of the image, which may have been made from the main1 of another session.
    role = session.role(member.role)
    own[label.BATCH] = "true" if (session.command if is_main else role and role.command) else ""
    own[label.APPS] = "true" if role and member.index == 1 and role.apps else ""
    own[label.SECRETS] = "true" if session.secrets else ""
    ports = [asdict(port) for port in inputs.ports]
    own[label.PORTS] = json.dumps(ports, separators=(",", ":")) if is_main else ""
    container = Container(
        id=identity,
        name=free_name(session, member.hostname, inputs.taken_names.get(agent, ())),
        hostname=member.hostname,
        role=member.role,
        index=member.index,
        rank=member.rank,
        local_rank=local_rank,
        agent=agent,
        address=inputs.subnet.addresses[member.rank],
        resources=resources,
        ports=inputs.ports if member.rank == 0 else (),
        interface=inputs.hosts[agent][1] if session.network == HOST else Container.interface,
    )
    own[label.SPEC] = _spec(session, network, container)
    return replace(container, labels={**network.labels, **own})


def _spec(session: Session, network: Network, container: Container) -> str:
    """The digest of all that a container is made from: a container with another digest is not the right one.

    The digest of the request stands for the settings of the session, and for all variables that follow from them. A container
    with its other name is still the right one.
    """
    made_from = replace(container, name="", labels={}, environment={})
    if session.roles:
        # They change with the sizes of the roles before.
        made_from = replace(made_from, rank=0, local_rank=0)
    network = replace(network, labels={})
    if network.is_of_host:
        # The smallest subnet of the hosts changes with them.
        network = replace(network, subnet="", gateway="", ip_range="")
    return digest([session.id, session.request, non_default_fields(network), non_default_fields(made_from)])


def _engine_mount(mount: Mount, session: Session) -> Mount:
    """An NFS folder as a volume of this session, in the form of the engine's local driver; it is removed with the session.

    https://docs.docker.com/engine/storage/volumes/#create-a-service-which-creates-an-nfs-volume
    """
    if mount.type != "nfs":
        return mount
    # An IPv6 address contains colons, but no slash.
    server, _colon, path = mount.source.partition(":/")
    extra: List[str] = [text for text in (mount.options.get("o", ""),) if text]
    options = {"type": "nfs", "o": ",".join(["addr=" + server, mount.mode] + extra), "device": ":/" + path}
    name = f"{session.owner}.{session.name}.{hashlib.sha256(mount.source.encode()).hexdigest()[:8]}"
    return replace(mount, type="volume", source=name, options=options)
