# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Properties of a host from /proc and /sys: limits, ports, routes, MTU, GPUs. Unreadable values are left out."""

from __future__ import annotations

import fcntl
import glob
import os
import re
import socket
import struct
from array import array
from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network
from typing import Dict, Iterable, Iterator, List, Sequence, Set, Tuple

from .._shared import subprocess_call
from .._shared.codec import Json
from .._shared.constants import ALL_ADDRESSES, ALL_FAMILIES
from .._shared.documents.report import EngineLimits, Fabric, HostNetwork, SwarmPlace
from .._shared.paths import read
from .._worker.worker import client_pid
from .engine.reports import EngineInfo, session_of

NOFILE = 1048576
LISTENING = "0A"
CAP_SYS_RESOURCE = 24
# The kernel's list of addresses: an entry is a label, as eth0 or eth0:1, and its address. More entries are not read.
SIOCGIFCONF, ENTRY, MOST = 0x8912, "16s4x4s%dx" % (2 * struct.calcsize("P")), 4096
_ANCESTORS = 16  # processes between a module and sshd
PID_FILE = "/var/run/docker.pid"
ORGANIZATION = b"\x06\x03\x55\x04\x0a"  # the object identifier 2.5.4.10, as DER writes it


def engine_limits(docker_host: str, proc: str = "/proc") -> EngineLimits:
    """The limits that this host's engine can give a container: all that is useful, or its own hard limits."""
    pid = engine_pid(docker_host, proc)
    if not pid:
        return EngineLimits()
    status = read("%s/%d/status" % (proc, pid))
    capabilities = re.search(r"^CapEff:\s*([0-9a-f]+)", status, re.MULTILINE)
    if capabilities and int(capabilities.group(1), 16) >> CAP_SYS_RESOURCE & 1:
        return EngineLimits(NOFILE, -1)
    text = read("%s/%d/limits" % (proc, pid))
    nofile = _hard_limit(text, "Max open files")
    return EngineLimits(min(nofile, NOFILE) if nofile > 0 else 0, _hard_limit(text, "Max locked memory"))


def engine_pid(docker_host: str, proc: str = "/proc") -> int:
    """The process that owns the engine's socket, or the process in its pid file; 0 if neither is dockerd."""
    for pid in (_peer(docker_host), _number(read(PID_FILE))):
        if pid and read("%s/%d/comm" % (proc, pid)).strip() == "dockerd":
            return pid
    return 0


def listening_ports(proc: str = "/proc") -> Set[int]:
    """The TCP ports that something on this host listens on, on any address."""
    rows = (row for name in ("tcp", "tcp6") for row in _rows(f"{proc}/net/{name}"))
    return {int(row[1].rpartition(":")[2], 16) for row in rows if row[3] == LISTENING}


def routes(proc: str = "/proc") -> List[str]:
    """The networks that this host has a route to, except the default one."""
    found = {_route(row) for row in _rows(f"{proc}/net/route")}
    return [str(network) for network in sorted(found) if network.prefixlen > 0]


def kernel_limits(docker_host: str = "", proc: str = "/proc") -> Dict[str, int]:
    """Limits of the kernel and of the engine that many containers reach; a limit that cannot be read is left out."""
    paths = {
        "neighbours": "net/ipv4/neigh/default/gc_thresh3",
        "processes": "kernel/pid_max",
        "inotify": "fs/inotify/max_user_instances",
    }
    found = {name: _number(read(f"{proc}/sys/{path}")) for name, path in paths.items()}
    pid = engine_pid(docker_host, proc)
    files = _hard_limit(read("%s/%d/limits" % (proc, pid)), "Max open files") if pid else 0
    return {name: amount for name, amount in {**found, "files": files}.items() if amount > 0}


def has_bridge_filter(proc: str = "/proc") -> bool:
    """Return whether packets between the ports of a bridge pass iptables; without the module br_netfilter they do not."""
    return read(f"{proc}/sys/net/bridge/bridge-nf-call-iptables").strip() == "1"


def needed_addresses(proc: str = "/proc", etc: str = "/etc", run: str = "/run") -> List[str]:
    """Addresses that this host must keep reaching: its gateways, its name servers, and the other end of its SSH connection."""
    gateways = {socket.inet_ntoa(struct.pack("=I", int(row[2], 16))) for row in _rows(f"{proc}/net/route")}
    # systemd-resolved listens at 127.0.0.53 and has the servers that it asks in a file of its own.
    texts = read(f"{etc}/resolv.conf"), read(f"{run}/systemd/resolve/resolv.conf")
    servers = re.findall(r"^nameserver\s+(\S+)", "\n".join(texts), re.MULTILINE)
    return sorted(address for address in {*gateways, *servers, *_ssh_connection(proc)[:1]} if _is_far(address))


def all_addresses(address: str, proc: str = "/proc") -> str:
    """Return ``::`` if the controller reaches this host by IPv6, else ``0.0.0.0``. Without SSH, the given address decides."""
    used = (_ssh_connection(proc)[2:3] or [address])[0]
    return ALL_FAMILIES if ":" in used else ALL_ADDRESSES


def _ssh_connection(proc: str) -> List[str]:
    """Addresses and ports of the SSH client that this step serves, and of this host, or nothing: https://man.openbsd.org/ssh#ENVIRONMENT

    sudo removes SSH_CONNECTION; a process above still has it.
    """
    pid = client_pid()
    for _generation in range(_ANCESTORS):
        found = re.search(r"(?:^|\0)SSH_CONNECTION=([^\0]+)", read("%s/%d/environ" % (proc, pid)))
        if found:
            return found.group(1).split()
        parent = re.search(r"^PPid:\s+([0-9]+)$", read("%s/%d/status" % (proc, pid)), re.MULTILINE)
        pid = int(parent.group(1)) if parent else 0
        if pid < 2:
            break
    return []


def _is_far(address: str) -> bool:
    try:
        parsed = IPv4Address(address)
    except ValueError:
        return False
    return not parsed.is_loopback and not parsed.is_unspecified


def underlay_mtu(addresses: List[str], proc: str = "/proc", sys: str = "/sys") -> int:
    """The MTU of the first interface that holds one of the addresses, else of the default route's; 0: not known."""
    held = {address: name for name, address in _interfaces()}
    names = [held[address] for address in addresses if address in held and held[address] != "lo"]
    names += [row[0] for row in _rows(f"{proc}/net/route") if _route(row).prefixlen == 0]
    return next((mtu for mtu in (_number(read(f"{sys}/class/net/{name}/mtu")) for name in names) if mtu), 0)


def own_address(wanted: List[str]) -> str:
    """The first of the addresses that an interface of this host has, else the address from which the default route starts."""
    held = own_addresses()
    for address in wanted:
        if address in held and not address.startswith("127."):
            return address
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        try:
            asking.connect(("192.0.2.1", 9))  # nothing is sent: https://www.rfc-editor.org/rfc/rfc5737
        except OSError:
            return ""
        return str(asking.getsockname()[0])


def own_addresses() -> Set[str]:
    """The IPv4 addresses of all interfaces."""
    return {address for _name, address in _interfaces()}


def is_gone(address: str) -> bool:
    """Return whether an IPv4 address is of no interface of this host: it had another one before, or others reach it by translation.

    >>> is_gone(""), is_gone("127.0.0.1"), is_gone("203.0.113.9")
    (False, False, True)
    """
    return bool(address) and ":" not in address and not address.startswith("127.") and address not in own_addresses()


def host_network(wanted: List[str], info: EngineInfo) -> HostNetwork:
    """The address for other hosts, with its interface, and why sessions cannot use the network of this host."""
    address = own_address(wanted)
    interface = next((name for name, held in _interfaces() if held == address), "")
    unable = [one for one in ("rootless", "userns") if any(f"name={one}" in text for text in info.security)]
    reason = f"has an engine with {unable[0]}, which keeps containers off its network," if unable else ""
    return HostNetwork(address, interface, reason or ("" if interface else HostNetwork.reason))


def fabric(interface: str, networks: Iterable[Json], sys: str = "/sys") -> Fabric:
    """An interface for the fabric, and why sessions cannot use it. The engine would make a missing one up, or refuse it late."""
    others = [one for one in networks if not session_of(one)]
    users = [one["Name"] for one in others if (one.get("Options") or {}).get("parent", "") == interface]
    if not interface:
        reason = Fabric.reason
    elif not re.fullmatch("[A-Za-z0-9_.-]{1,15}", interface) or not os.path.isdir(f"{sys}/class/net/{interface}"):
        reason = f"has no interface {interface}, its agent_fabric,"
    elif read(f"{sys}/class/net/{interface}/carrier").strip() != "1":
        reason = f"has no link on {interface}, its agent_fabric,"
    else:
        reason = f"has network {users[0]} on {interface}, its agent_fabric," if users else ""
    return Fabric(interface, reason)


def link(interface: str, sys: str = "/sys") -> Tuple[int, int]:
    """The MTU and the speed of an interface, in Mbit/s; 0: not known."""
    if not interface:
        return 0, 0
    folder = f"{sys}/class/net/{os.path.basename(interface)}"
    return _number(read(f"{folder}/mtu")), _number(read(f"{folder}/speed"))


def existing_paths(paths: Sequence[str], seconds: float = subprocess_call.PATIENCE) -> Dict[str, bool]:
    """Return whether each path exists. A path that does not answer does not."""
    return {path: bool(found) for path, found in subprocess_call.existing(paths, seconds).items()}


def gpu_nodes(dev: str = "/dev") -> List[str]:
    """The device nodes of NVIDIA GPUs, whether or not containers can use them."""
    return sorted(name for name in glob.glob(f"{dev}/nvidia*") if re.search(r"/nvidia[0-9]+$", name))


def has_systemd(run: str = "/run") -> bool:
    """Return whether systemd manages this host: https://www.freedesktop.org/software/systemd/man/latest/sd_booted.html"""
    return os.path.isdir(f"{run}/systemd/system")


def cpu_ids(count: int) -> List[int]:
    """The CPUs to which a container may be pinned; numbered from 0 if this process sees other CPUs than the engine."""
    mine = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    return mine if len(mine) == count else list(range(count))


def swarm_of_engine(info: EngineInfo) -> SwarmPlace:
    """The place of an engine in its Swarm. Only managers report its ID, which a worker has in its certificate."""
    place = info.swarm
    if place.state != "active" or place.cluster_id:
        return place
    return replace(place, cluster_id=swarm_cluster(info.data_root))


def swarm_cluster(data_root: str) -> str:
    """The Swarm that this host belongs to: the organization in its node certificate, the only record of it on a worker."""
    import ssl

    pem = read(os.path.join(data_root, "swarm/certificates/swarm-node.crt"))
    first = re.search(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", pem, re.DOTALL)
    der = ssl.PEM_cert_to_DER_cert(first.group(0)) if first else b""
    _before, found, after = der.partition(ORGANIZATION)
    return after[2 : 2 + after[1]].decode("ascii", "replace") if found else ""


def _peer(docker_host: str) -> int:
    """The process that listens on a unix socket: https://man7.org/linux/man-pages/man7/unix.7.html (SO_PEERCRED)."""
    if not docker_host.startswith("unix://"):
        return 0
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.settimeout(5)
            client.connect(docker_host[len("unix://") :])
            raw = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    except OSError:
        return 0
    return int(struct.unpack("3i", raw)[0])


def _hard_limit(text: str, name: str) -> int:
    match = re.search(rf"^{name}\s+\S+\s+(\S+)", text, re.MULTILINE)
    if not match:
        return 0
    return -1 if match.group(1) == "unlimited" else int(match.group(1))


def _route(row: List[str]) -> IPv4Network:
    address, mask = (IPv4Address(struct.pack("<L", int(row[place], 16))) for place in (1, 7))
    return IPv4Network(f"{address}/{mask}", strict=False)


def _rows(path: str) -> Iterator[List[str]]:
    """The rows of one of the kernel's tables, without its heading."""
    for line in read(path).splitlines()[1:]:
        yield line.split()


def _interfaces() -> Iterator[Tuple[str, str]]:
    """Each IPv4 address with its interface, which may have several."""
    listed = array("B", bytes(MOST * struct.calcsize(ENTRY)))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        where = struct.pack("iP", len(listed), listed.buffer_info()[0])
        length, _place = struct.unpack("iP", fcntl.ioctl(asking.fileno(), SIOCGIFCONF, where))
    for label, address in struct.iter_unpack(ENTRY, listed[:length]):
        yield os.fsdecode(label.rstrip(b"\0")).partition(":")[0], socket.inet_ntoa(address)


def _number(text: str) -> int:
    return int(text) if text.strip().isdigit() else 0
