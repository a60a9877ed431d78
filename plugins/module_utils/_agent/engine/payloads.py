# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The bodies of the engine's create requests for containers and networks, from the plan alone.

No capability is added: programs run as the session's user, who would not receive it; the memlock limit is raised instead.
Some of the engine's default capabilities are dropped.
``no-new-privileges`` is an option: it breaks ``sudo`` and ``su`` in images that have them. The restart policy is
``no``: a container that ends stays stopped, so that its exit code and an out-of-memory kill are reported, and another
launch starts it again.
"""

from __future__ import annotations

import hashlib
import posixpath
from dataclasses import dataclass, field
from typing import Any, Collection, Dict, Iterable, List, Mapping, Sequence, Tuple

from ..._shared import label
from ..._shared.constants import (
    ALL_ADDRESSES,
    ALL_FAMILIES,
    DEFAULT_PATH,
    HOST,
    RUNTIME_PATH,
    SEARCH_PATH,
    SECRETS_FOLDER,
    VXLAN_OVERHEAD,
)
from ..._shared.documents.plan import Container, Mount, Network, Plan, Resources, Session
from ..._shared.documents.report import EngineLimits
from ..._shared.names import expanded
from ..._shared.paths import covers
from .device_nodes import device_requests, nvidia_only

MTU_OPTION = "com.docker.network.driver.mtu"
# The rules of roles/agent/files/overlay_guard.sh have it, too.
BRIDGE_PREFIX = "cc-"
# Seconds that PID 1 and the engine may need beyond the session's grace.
STOP_MARGIN = 2
GPUS_SEEN, NO_GPU = "NVIDIA_VISIBLE_DEVICES", "void"
# The container of a share sees one GPU, which is its device 0. A client can lower a limit of the daemon, and never raise it:
# https://docs.nvidia.com/deploy/mps/latest/appendix-environment-variables.html
MPS_PIPES = "CUDA_MPS_PIPE_DIRECTORY"
MPS_MEMORY, MPS_THREADS = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"
# What the agent says, whatever image and user say.
OF_AGENT = ("PATH", GPUS_SEEN, MPS_PIPES, MPS_MEMORY, MPS_THREADS)
# The logging drivers that keep files on the agent, and rotate them.
ROTATING = ("json-file", "local")
# The size of the tmpfs of the secrets is a part of the container's memory.
_SECRETS_TMPFS = "rw,noexec,nosuid,nodev,size=8m,mode=0755"
# What neither training nor the SSH runtime needs: device nodes, and capabilities of files. AUDIT_WRITE stays: Debian's sshd ends a
# login with a terminal if it cannot write a record. Without NET_RAW, root sends no Ethernet frames of its own, such as ARP replies
# for an address of another container. The file of many an image's ping has this capability, and such a file does not start
# without it: the ping of the runtime comes first in PATH. It uses ICMP sockets, which the engine permits to all groups
# (https://github.com/moby/moby/pull/41030).
DROPPED = ("MKNOD", "SETFCAP", "NET_RAW")


# The engine's default.
NO_LIMITS = EngineLimits()


@dataclass(frozen=True)
class AgentSettings:
    """The agent's additions to the plan: environment and name of its image, its limits, its runtime volume, its logging driver,
    the nodes of its AMD GPUs, and the directory of its MPS daemon.
    """

    image_environment: Mapping[str, str] = field(default_factory=dict)
    limits: EngineLimits = NO_LIMITS
    runtime: str = ""
    image: str = ""
    log_driver: str = ""
    nodes: Mapping[str, str] = field(default_factory=dict)
    mps: str = ""


def container_body(plan: Plan, container: Container, settings: AgentSettings) -> Mapping[str, Any]:
    # On the network of the agent, nothing is published, and the container has no address of its own.
    is_on_host = plan.network.is_of_host
    ports = set() if is_on_host else {"%d/tcp" % port.container_port for port in container.ports}
    places = {} if is_on_host else {plan.network.name: endpoint(container)}
    return {
        "Image": settings.image or plan.session.image_of(container),
        "Hostname": container.hostname,
        "User": "0:0",
        "Entrypoint": [RUNTIME_PATH + "/bin/init"],
        # PID 1 checks these folders at each start, whatever root in the container has changed.
        "Cmd": ["check-folders"] if plan.session.permitted_folders else [],
        "Env": _environment(container, settings),
        "Labels": dict(container.labels),
        # PID 1 reads the files of the session from its standard input, which ends with the first connection to it.
        "OpenStdin": True,
        "StdinOnce": True,
        "WorkingDir": plan.session.user.home,
        "StopSignal": "SIGTERM",
        # PID 1 ends the programs itself; the engine kills only a PID 1 that does not.
        "StopTimeout": plan.session.grace + STOP_MARGIN,
        # The image's health check would test the program of the image's entrypoint, which does not run.
        "Healthcheck": {"Test": ["NONE"]},
        "ExposedPorts": {port: {} for port in sorted(ports)},
        "HostConfig": _host_config(plan, container, settings),
        # By name, without a lookup: a Swarm worker sees an overlay only when it has a container on it.
        "NetworkingConfig": {"EndpointsConfig": places},
    }


def endpoint(container: Container) -> Mapping[str, Any]:
    """A container's place on the session's network."""
    return {"IPAMConfig": {"IPv4Address": container.address}, "Aliases": [container.hostname]}


def network_body(network: Network) -> Mapping[str, Any]:
    """The create request of a session's network, without its name: a bridge, or an attachable overlay."""
    pool = {"Subnet": network.subnet, "Gateway": network.gateway, "IPRange": network.ip_range}
    return {
        "driver": network.driver,
        "attachable": network.driver == "overlay",
        "internal": False,
        "options": network_options(network),
        "labels": dict(network.labels),
        "ipam": {"Driver": "default", "Config": [{key: value for key, value in pool.items() if value}]},
    }


def network_options(network: Network) -> Dict[str, str]:
    """The driver's options. The plan's MTU is the MTU of the containers' interfaces.

    The overlay driver expects the MTU of the underlying network, and subtracts the overhead itself:
    https://github.com/moby/moby/blob/master/daemon/libnetwork/drivers/overlay/overlay.go
    """
    overhead = VXLAN_OVERHEAD if network.driver == "overlay" else 0
    options = {MTU_OPTION: str(network.mtu + overhead)} if network.mtu else {}
    if network.driver == "bridge":
        options["com.docker.network.bridge.enable_icc"] = "true"
        options["com.docker.network.bridge.name"] = _bridge(network)
    elif network.encrypted:
        options["encrypted"] = ""
    return options


def _bridge(network: Network) -> str:
    """The name of the bridge on its host: by its beginning, rules that an agent has once and for all are for the bridges of sessions.

    The kernel limits it to 15 characters. A bridge of a session that ended must not become another's.
    """
    own = network.labels.get(label.SESSION, "") + network.name
    return BRIDGE_PREFIX + hashlib.sha256(own.encode()).hexdigest()[: 15 - len(BRIDGE_PREFIX)]


def _environment(container: Container, settings: AgentSettings) -> List[str]:
    below = {**settings.image_environment, "PATH": settings.image_environment.get("PATH") or DEFAULT_PATH}
    own = {name: expanded(name, text, below.get(name, "")) for name, text in container.environment.items()}
    merged = {
        **own,
        "PATH": SEARCH_PATH % (own.get("PATH") or below["PATH"]),
        # An agent whose default runtime is nvidia gives every GPU to a container whose image or user says "all".
        # https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html
        GPUS_SEEN: ",".join(nvidia_only(container.resources.devices)) or NO_GPU,
        **_share(container.resources, settings.mps),
    }
    return ["{}={}".format(*item) for item in merged.items()]


def _share(resources: Resources, pipes: str) -> Dict[str, str]:
    """The limits of a part of a GPU that MPS enforces, for each program of the container."""
    share = resources.mps
    if not share:
        return {}
    return {
        MPS_PIPES: pipes,
        MPS_MEMORY: "0=%dM" % (share.memory >> 20),
        MPS_THREADS: str(max(1, round(share.shares * 100))),
    }


def places_of(host_ip: str, port: int) -> List[Dict[str, str]]:
    """Return the addresses at which the engine publishes a port. In a plan, ``::`` means IPv4 and IPv6; to the engine, IPv6 alone.

    >>> [place["HostIp"] for place in places_of("::", 30000)], [place["HostIp"] for place in places_of("fd00::1", 30000)]
    (['0.0.0.0', '::'], ['fd00::1'])
    """
    addresses = [ALL_ADDRESSES, ALL_FAMILIES] if host_ip == ALL_FAMILIES else [host_ip]
    return [{"HostIp": address, "HostPort": str(port)} for address in addresses]


def _host_config(plan: Plan, container: Container, settings: AgentSettings) -> Mapping[str, Any]:
    bindings: Dict[str, List[Dict[str, str]]] = {}
    for port in () if plan.network.is_of_host else container.ports:
        places = places_of(port.host_ip, port.host_port)
        bindings.setdefault("%d/tcp" % port.container_port, []).extend(places)
    return {
        "NetworkMode": HOST if plan.network.is_of_host else plan.network.name,
        # The engine itself writes the line of a container that has an address of its own.
        "ExtraHosts": [
            "{}:{}".format(*pair) for pair in plan.names if plan.network.is_of_host or pair[0] != container.hostname
        ],
        "PortBindings": bindings,
        "Mounts": [
            runtime_mount(settings.runtime),
            *volume_mounts(plan, container),
            *(_mount(plan, mount) for mount in plan.session.mounts),
            *([_mount(plan, Mount(settings.mps, settings.mps, mode="ro"))] if container.resources.mps else []),
        ],
        "Ulimits": _ulimits(settings.limits, plan.session),
        "RestartPolicy": {"Name": "no"},
        "Init": False,
        **_root(plan.session, container.resources.memory),
        **_bounds(plan.session, settings.log_driver),
        **limit_amounts(container.resources),
        **_devices(plan, container, settings),
    }


def _root(session: Session, memory: int) -> Mapping[str, Any]:
    """Return what is in memory alone, and whether the rest of the root file system is read-only."""
    tmpfs = temporary_folders(session, memory)
    if session.secrets:
        tmpfs[SECRETS_FOLDER] = _SECRETS_TMPFS
    return {**({"Tmpfs": tmpfs} if tmpfs else {}), **({"ReadonlyRootfs": True} if session.read_only_root else {})}


def _bounds(session: Session, log_driver: str) -> Mapping[str, Any]:
    """Return what a session cannot take from others on its agent. The owner of an agent may send logs elsewhere: they stay there."""
    bounds: Dict[str, Any] = {"PidsLimit": session.pids, "CapDrop": list(DROPPED)}
    if log_driver in ROTATING:
        rotation = {"max-size": str(session.log_size), "max-file": str(session.log_files)}
        bounds["LogConfig"] = {"Type": log_driver, "Config": rotation}
    if session.disk:
        bounds["StorageOpt"] = {"size": str(session.disk)}
    if session.no_new_privileges:
        bounds["SecurityOpt"] = ["no-new-privileges"]
    return bounds


def limit_amounts(resources: Resources) -> Mapping[str, Any]:
    """The limits of a container in the engine's words."""
    wanted: Dict[str, Any] = {"Memory": resources.memory, "MemorySwap": resources.memory, "ShmSize": resources.shm}
    if resources.cpuset:
        wanted["CpusetCpus"] = resources.cpuset
    else:
        wanted["NanoCpus"] = resources.millicpus * 1000000
    return {key: value for key, value in wanted.items() if value}


def _devices(plan: Plan, container: Container, settings: AgentSettings) -> Mapping[str, Any]:
    gpus = container.resources.devices
    nvidia = nvidia_only(gpus)
    nodes = device_requests(gpus, settings.nodes, plan.session.rdma)
    return {
        **(
            {"DeviceRequests": [{"Driver": "nvidia", "DeviceIDs": nvidia, "Capabilities": [["gpu"]]}]} if nvidia else {}
        ),
        **({"Devices": nodes} if nodes else {}),
    }


def runtime_mount(volume: str) -> Mapping[str, Any]:
    return {
        "Type": "volume",
        "Source": volume,
        "Target": RUNTIME_PATH,
        "ReadOnly": True,
        "VolumeOptions": {"NoCopy": True},
    }


def _mount(plan: Plan, mount: Mount) -> Mapping[str, Any]:
    body: Dict[str, Any] = {
        "Type": mount.type,
        "Source": mount.source,
        "Target": mount.target,
        "ReadOnly": mount.mode == "ro",
    }
    if mount.type == "volume" and mount.options:
        # A volume that the session defines is removed with the session; the data that it points to stays.
        driver = {"Name": "local", "Options": dict(mount.options)}
        body["VolumeOptions"] = {"DriverConfig": driver, "Labels": dict(plan.network.labels)}
    elif mount.type == "volume" and plan.session.own_volumes:
        # Without the label of a session it outlives the session, as any named volume does.
        body["VolumeOptions"] = {"Labels": {label.OWNER: plan.session.owner}}
    return body


def _ulimits(limits: EngineLimits, session: Session) -> Sequence[Mapping[str, Any]]:
    """RDMA registers the memory that it sends: without a known limit of the engine all of it can be locked.

    The file of a crash has the memory of its program, and secrets in it.
    """
    amounts = {"nofile": limits.nofile, "memlock": limits.memlock or (-1 if session.rdma else 0)}
    wanted = {name: amount for name, amount in amounts.items() if amount}
    if session.secrets:
        wanted["core"] = 0
    return [{"Name": name, "Soft": amount, "Hard": amount} for name, amount in wanted.items()]


# A read-only root. Files of a session can be unpacked in such a container only inside of a volume, by PID 1 and by the engine
# (https://github.com/moby/moby/blob/master/daemon/archive.go). So each folder that gets files is a volume without a name: the
# engine fills it from the image and removes it with the container. Folders for temporary files are in memory.

# The options of each tmpfs, and the part of the container's memory that it may use: a divisor.
_TEMPORARY: Mapping[str, Tuple[str, int]] = {
    "/run": ("rw,noexec,nosuid,nodev,size=%d,mode=0755", 8),
    "/tmp": ("rw,exec,nosuid,nodev,size=%d,mode=1777", 2),
    "/var/tmp": ("rw,exec,nosuid,nodev,size=%d,mode=1777", 8),
}


def writable_folders(session: Session) -> Tuple[str, ...]:
    """The folders that are volumes of each container. A data folder takes the place of what it covers."""
    if not session.read_only_root:
        return ()
    homes = posixpath.dirname(session.user.home)
    # Each with the path that the session needs in it. /job has the hostfile of DeepSpeed, /var/log the logs of apps.
    # /etc is the first: its files are the last to be installed.
    needed = {"/etc": "/etc", homes: session.user.home, "/job": "/job", "/var/log": "/var/log"}
    return tuple(folder for folder, path in needed.items() if not _is_mounted(session, path))


def volume_mounts(plan: Plan, container: Container) -> List[Mapping[str, Any]]:
    """The volumes of a container. Their labels say whose they are if the container is lost without them."""
    labels = {**plan.network.labels, label.CONTAINER: container.id}
    return [
        {"Type": "volume", "Target": folder, "VolumeOptions": {"Labels": labels}}
        for folder in writable_folders(plan.session)
    ]


def temporary_folders(session: Session, memory: int) -> Dict[str, str]:
    """The options of each tmpfs of a container with this memory."""
    if not session.read_only_root:
        return {}
    return {
        folder: options % (memory // divisor)
        for folder, (options, divisor) in _TEMPORARY.items()
        if not _is_mounted(session, folder)
    }


def goes_with_container(volume: Mapping[str, Any], mounted: Collection[str]) -> bool:
    """Return whether the engine removes a volume with its container; ``mounted`` are the volumes of those containers."""
    return bool(_container_of(volume)) and volume["Name"] in mounted


def orphans(volumes: Iterable[Mapping[str, Any]], containers: Collection[str], used: Collection[str]) -> List[str]:
    """The volumes that these containers had, and that nothing mounts: they were removed without them, as ``docker rm`` does."""
    return [volume["Name"] for volume in volumes if _container_of(volume) in containers and volume["Name"] not in used]


def _container_of(volume: Mapping[str, Any]) -> str:
    return str((volume.get("Labels") or {}).get(label.CONTAINER, ""))


def _is_mounted(session: Session, path: str) -> bool:
    return any(covers(mount.target, path) for mount in session.mounts)
