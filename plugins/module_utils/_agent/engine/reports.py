# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Convert an engine's answers to the documents of docs/contracts.md."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Dict, Iterable, List, Mapping, Sequence, Set, Tuple

from ..._shared import label
from ..._shared.codec import Json, digest
from ..._shared.constants import HOST, MULTI_NODE, RELAY_ROLE
from ..._shared.documents.label_rules import invalid_labels, small_number
from ..._shared.documents.plan import Resources
from ..._shared.documents.report import (
    EngineNetwork,
    IgnoredContainer,
    ImageState,
    ObservedContainer,
    Relay,
    SwarmPlace,
)
from ..._shared.documents.schema import MADE, MAKER, UUID
from ..._shared.exits import APART
from ..._shared.names import container_names, network_name

# The states of a container that programs may run in.
ACTIVE = frozenset({"running", "restarting", "paused"})
_ARCHITECTURES = {"amd64": "x86_64", "arm64": "aarch64", "386": "i386", "arm": "armv7l"}


def is_ours(listed: Json) -> bool:
    """Return whether a container belongs to a session: it claims to, and its labels can be read."""
    return claims(listed) and not invalid_labels(listed["Labels"])


def is_member(listed: Json) -> bool:
    """Return whether a container is a member of its session. A relay belongs to the session, too, and ends with it.

    The role decides: every member has the label of its own role, whatever labels its image has.
    """
    return is_ours(listed) and not is_relay(listed)


def active(listed: Sequence[Json]) -> List[Json]:
    """The containers that programs may run in."""
    return [container for container in listed if container["State"] in ACTIVE]


def is_relay(listed: Json) -> bool:
    return bool(listed["Labels"].get(label.ROLE) == RELAY_ROLE)


def relays_by_session(everyone: Iterable[Json]) -> Dict[str, List[Relay]]:
    """The relays that run, by the ID of their session."""
    found: Dict[str, List[Relay]] = {}
    for relay in everyone:
        bound = [port for port in relay.get("Ports") or () if port.get("PublicPort")]
        if is_ours(relay) and is_relay(relay) and relay.get("State") == "running" and bound:
            name, port = relay["Labels"].get(label.RELAY, ""), int(bound[0]["PublicPort"])
            entry = Relay(name, str(bound[0].get("IP", "")), port)
            found.setdefault(relay["Labels"][label.SESSION], []).append(entry)
    return found


def claims(listed: Json) -> bool:
    """Return whether a container has the labels of a session, and a name that these labels imply.

    An image committed from a session's container carries that container's labels, and so does every container of that
    image. A container that the engine is removing may have no name.
    """
    labels = listed.get("Labels") or {}
    if not labels.get(label.SESSION):
        return False
    owner, session = labels.get(label.OWNER, ""), labels.get(label.NAME, "")
    names = container_names(owner, session, hostname_of(labels), labels[label.SESSION])
    return engine_name(listed) in ("", *names)


def may_be_renamed(listed: Json) -> bool:
    """Return whether a container can be a renamed one of a session: it was created on the network of its session or of its agent."""
    labels = listed.get("Labels") or {}
    if not labels.get(label.SESSION) or claims(listed) or invalid_labels(labels):
        return False
    own = network_name(labels.get(label.OWNER, ""), labels.get(label.NAME, ""), labels[label.SESSION])
    return (listed.get("HostConfig") or {}).get("NetworkMode") in (own, HOST)


def has_own_hostname(listed: Json, inspected: Json | None) -> bool:
    """Return whether a container has the hostname that the collection gives it: the engine's own in a relay.

    A container that someone has made of an image of a session has the labels of that image, and another hostname.
    """
    found = ((inspected or {}).get("Config") or {}).get("Hostname")
    return bool(found == (listed["Id"][:12] if is_relay(listed) else hostname_of(listed["Labels"])))


def ignored_entries(everyone: Iterable[Json]) -> List[IgnoredContainer]:
    """The containers that claim to belong to a session and whose labels cannot be read, with the first such label."""
    claimed = [listed for listed in everyone if claims(listed) and invalid_labels(listed["Labels"])]
    return [
        IgnoredContainer(engine_name(listed) or listed["Id"][:12], invalid_labels(listed["Labels"]))
        for listed in claimed
    ]


def container_entry(listed: Json, inspected: Json | None = None) -> ObservedContainer:
    """A session's container as reports show it, from the engine's list; ``inspected`` adds how it has ended."""
    labels = {name: text for name, text in (listed.get("Labels") or {}).items() if name.startswith(label.PREFIX)}
    network, address = _place(listed)
    state = (inspected or {}).get("State") or {}
    return ObservedContainer(
        id=labels.get(label.CONTAINER, ""),
        session=labels.get(label.SESSION, ""),
        name=labels.get(label.NAME, ""),
        owner=labels.get(label.OWNER, ""),
        group=labels.get(label.GROUP, ""),
        mode=labels.get(label.MODE, ""),
        hostname=hostname_of(labels),
        role=labels.get(label.ROLE, ""),
        index=small_number(labels.get(label.INDEX)),
        rank=small_number(labels.get(label.RANK)),
        launch=labels.get(label.LAUNCH, ""),
        spec=labels.get(label.SPEC, ""),
        engine_id=listed["Id"],
        engine_name=engine_name(listed),
        image=listed.get("Image", ""),
        state=APART if _is_apart(listed, labels) else state.get("Status") or listed.get("State", ""),
        exit_code=int(state.get("ExitCode") or 0),
        oom_killed=bool(state.get("OOMKilled")),
        created=float(listed.get("Created") or 0),
        address=address,
        network=network,
        resources=Resources.from_json(_document(labels.get(label.RESOURCES), {})),
        ports=tuple(sorted(published(listed) | booked_ports(labels))),
        # Only an entry that shows the container's networks says what it publishes.
        published=tuple(sorted(published(listed))) if "NetworkSettings" in listed else None,
        labels=labels,
    )


def session_of(item: Json) -> str:
    """The session whose label a container, network or volume in the engine's lists has; empty without one."""
    return str((item.get("Labels") or {}).get(label.SESSION, ""))


def network_entry(network: Json) -> EngineNetwork:
    pools = (network.get("IPAM") or {}).get("Config") or []
    return EngineNetwork(
        name=network.get("Name", ""),
        driver=network.get("Driver", ""),
        subnets=tuple(pool["Subnet"] for pool in pools if pool.get("Subnet")),
        session=session_of(network) if UUID(session_of(network)) else "",
    )


def engine_identity(networks: Iterable[Json]) -> str:
    """Return the ID of the network that each engine makes at its start, which no two engines share; empty without one.

    Clones of a machine share the ID of its engine, and engines in containers share a kernel.
    """
    return next(
        (str(one["Id"]) for one in networks if (one.get("Name"), one.get("Driver")) == ("bridge", "bridge")), ""
    )


@dataclass(frozen=True)
class EngineInfo:
    """An engine as it describes itself. ``containerd`` is the address of the one that it uses, which older engines do not name.

    ``flags`` are what it says is so, in its own words, such as ``MemoryLimit``.
    """

    architecture: str = ""
    version: str = ""
    cpus: int = 0
    memory: int = 0
    data_root: str = "/var/lib/docker"
    containerd: str = ""
    storage: str = ""
    storage_status: Tuple[Tuple[Any, ...], ...] = ()
    log_driver: str = ""
    flags: Tuple[str, ...] = ()
    cgroup_version: str = "1"
    cgroup_driver: str = ""
    security: Tuple[str, ...] = ()
    runtimes: Tuple[str, ...] = ()
    warnings: Tuple[str, ...] = ()
    restores_live: bool = False
    swarm: SwarmPlace = field(default_factory=SwarmPlace)
    swarm_error: str = ""
    swarm_labels: Tuple[str, ...] = ()

    @classmethod
    def of(cls, info: Json) -> EngineInfo:
        """The description as the engine returns it."""
        swarm = info.get("Swarm") or {}
        cluster = swarm.get("Cluster") or {}
        return cls(
            architecture=str(info.get("Architecture") or ""),
            version=str(info.get("ServerVersion") or ""),
            cpus=int(info.get("NCPU") or 0),
            memory=int(info.get("MemTotal") or 0),
            data_root=str(info.get("DockerRootDir") or cls.data_root),
            containerd=str((info.get("Containerd") or {}).get("Address") or ""),
            storage=str(info.get("Driver") or ""),
            storage_status=tuple(map(tuple, info.get("DriverStatus") or ())),
            log_driver=str(info.get("LoggingDriver") or ""),
            flags=tuple(name for name, value in info.items() if value is True),
            cgroup_version=str(info.get("CgroupVersion") or cls.cgroup_version),
            cgroup_driver=str(info.get("CgroupDriver") or ""),
            security=tuple(map(str, info.get("SecurityOptions") or ())),
            runtimes=tuple(info.get("Runtimes") or ()),
            warnings=tuple(map(str, info.get("Warnings") or ())),
            restores_live=bool(info.get("LiveRestoreEnabled")),
            swarm=_swarm_place(swarm, cluster),
            swarm_error=str(swarm.get("Error") or ""),
            swarm_labels=tuple((cluster.get("Spec") or {}).get("Labels") or ()),
        )

    @property
    def is_rootless(self) -> bool:
        return "name=rootless" in self.security

    @property
    def has_snapshotter(self) -> bool:
        """Return whether the engine keeps its images in containerd's store."""
        return any("snapshotter" in str(pair) for pair in self.storage_status)


def _swarm_place(swarm: Json, cluster: Json) -> SwarmPlace:
    return SwarmPlace(
        state=swarm.get("LocalNodeState") or "inactive",
        node_id=swarm.get("NodeID", ""),
        cluster_id=cluster.get("ID") or "",
        manager=bool(swarm.get("ControlAvailable")),
        managers=tuple(manager["NodeID"] for manager in swarm.get("RemoteManagers") or [] if manager.get("NodeID")),
        address=swarm.get("NodeAddr", ""),
        data_path_port=int(cluster.get("DataPathPort") or 0),
    )


def image_entry(reference: str, image: Json | None) -> ImageState:
    image = image or {}
    made, owner = committed(image), image_labels(image).get(label.ORIGIN + ".owner", "")
    # Users write labels, too.
    is_known = bool(made and MADE(made) and MAKER(owner))
    return ImageState(
        reference=reference,
        present=bool(image),
        id=image.get("Id", ""),
        architecture=architecture(image.get("Architecture", "")),
        made=made if is_known else "",
        owner=owner if is_known else "",
    )


def committed(image: Json) -> str:
    """When an image was made of a container of a session; empty for others: what is built from it has its labels, and a later date."""
    labels, date = image_labels(image), str(image.get("Created"))
    made = str(labels.get("org.opencontainers.image.created"))
    return made if label.ORIGIN + ".owner" in labels and made[:19] == date[:19] else ""


def image_labels(image: Json) -> Dict[str, str]:
    return dict((image.get("Config") or {}).get("Labels") or {})


def architecture(name: str) -> str:
    """The kernel's name of an architecture, for what images call it.

    >>> architecture("amd64")
    'x86_64'
    """
    return _ARCHITECTURES.get(name, name)


def engine_name(listed: Json) -> str:
    """A container's name. The engine also lists names that links add, which contain a second slash."""
    names = [name[1:] for name in listed.get("Names") or [] if "/" not in name[1:]]
    return str(names[0]) if names else ""


def published(listed: Json) -> Set[int]:
    """The host ports that a running container publishes, also without the engine's userland proxy."""
    return {int(port["PublicPort"]) for port in listed.get("Ports") or [] if port.get("PublicPort")}


def hostname_of(labels: Json) -> str:
    role, index = labels.get(label.ROLE, ""), small_number(labels.get(label.INDEX))
    return "%s%d" % (role, index)


def _place(listed: Json) -> List[str]:
    """The session's network and the address requested on it, which also stopped containers have."""
    networks = (listed.get("NetworkSettings") or {}).get("Networks") or {}
    own = (listed.get("HostConfig") or {}).get("NetworkMode", "")
    for name, place in sorted(networks.items(), key=lambda pair: pair[0] != own):
        wanted = ((place or {}).get("IPAMConfig") or {}).get("IPv4Address")
        if wanted:
            return [name, wanted]
    return next(([name, (place or {}).get("IPAddress", "")] for name, place in networks.items()), ["", ""])


def _is_apart(listed: Json, labels: Json) -> bool:
    """Return whether a container runs without the fabric of its session: its start was interrupted, or someone has disconnected it."""
    networks = (listed.get("NetworkSettings") or {}).get("Networks") or {}
    # With an overlay, docker_gwbridge is the third.
    needed = 3 if labels.get(label.MODE) == MULTI_NODE else 2
    return bool(labels.get(label.FABRIC)) and listed.get("State") == "running" and len(networks) < needed


def has_apps(labels: Mapping[str, str]) -> bool:
    """Return whether a container was launched with apps: main1 publishes their ports, and another container's label names them."""
    ports = _document(labels.get(label.PORTS), [])
    return bool(labels.get(label.APPS)) or any(port.get("name") != "ssh" for port in ports)


def booked_ports(labels: Json) -> Set[int]:
    """The host ports of main1, and of each container on the network of its agent, which stay reserved while it is stopped."""
    ports = _document(labels.get(label.PORTS), [])
    listened = set(map(int, filter(None, labels.get(label.HOST_PORTS, "").split(","))))
    return listened.union(int(port["host_port"]) for port in ports if port.get("host_port"))


def _document(text: str | None, otherwise: Any) -> Any:
    try:
        return json.loads(text or "")
    except ValueError:
        return otherwise


def content_of(image: Json) -> str:
    """A digest of an image's layers and configuration: equal on engines that compute different IDs for the same image."""
    layers = (image.get("RootFS") or {}).get("Layers") or []
    config = image.get("Config") or {}
    # Some engines leave out what is empty.
    kept = {key: config.get(key) or None for key in ("Env", "Cmd", "Entrypoint", "User", "WorkingDir", "Labels")}
    return digest([layers, kept]) if layers else ""
