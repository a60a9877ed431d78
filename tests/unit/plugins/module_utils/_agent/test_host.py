# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Properties of a host, from handwritten tables of the kernel."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._agent import host
from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.reports import EngineInfo
from ansible_collections.cluster.compute.plugins.module_utils._shared.codec import Json
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.report import EngineLimits, Fabric
from ansible_collections.cluster.compute.plugins.module_utils._worker import worker

ROUTES = """Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT
eth9\t00000000\t0100000A\t0003\t0\t0\t0\t00000000\t0\t0\t0
eth9\t0000000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
docker0\t000011AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0
"""
TCP = """  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1
   1: 0100007F:0016 0100007F:C000 01 00000000:00000000 00:00000000 00000000     0        0 1
"""
TCP6 = """  sl  local_address                         remote_address                        st tx_queue
   0: 00000000000000000000000000000000:0016 00000000000000000000000000000000:0000 0A 00000000:00000000
"""
LIMITS = """Limit                     Soft Limit           Hard Limit           Units
Max open files            1024                 {nofile}                files
Max locked memory         65536                {memlock}              bytes
"""


def write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_routes_without_the_default_one(tmp_path: Path) -> None:
    write(tmp_path, "net/route", ROUTES)
    assert host.routes(str(tmp_path)) == ["10.0.0.0/24", "172.17.0.0/16"]


def test_ports_that_listen(tmp_path: Path) -> None:
    write(tmp_path, "net/tcp", TCP)
    write(tmp_path, "net/tcp6", TCP6)
    assert host.listening_ports(str(tmp_path)) == {8080, 22}


@pytest.mark.parametrize(
    ("connection", "address", "found"),
    [
        ("192.0.2.9 50000 192.0.2.1 22", "192.0.2.1", "0.0.0.0"),
        ("2001:db8::9 50000 2001:db8::1 22", "node1", "::"),
        ("fe80::9%eth0 50000 fe80::1%eth0 22", "fe80::1%eth0", "::"),
        # The address is translated on the way.
        ("192.0.2.9 50000 192.0.2.1 22", "64:ff9b::c000:201", "0.0.0.0"),
        ("", "2001:db8::1", "::"),
        ("", "node1", "0.0.0.0"),
    ],
)
def test_ports_are_published_in_the_family_in_which_the_controller_comes(
    connection: str, address: str, found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "client_pid", lambda: 300)
    write(tmp_path, "300/environ", "PATH=/bin\0")
    write(tmp_path, "300/status", "PPid:\t200\n")
    write(tmp_path, "200/environ", f"A=1\0SSH_CONNECTION={connection}\0" if connection else "")
    assert host.all_addresses(address, str(tmp_path)) == found


def test_mtu_of_the_default_route(tmp_path: Path) -> None:
    write(tmp_path, "net/route", ROUTES)
    write(tmp_path, "class/net/eth9/mtu", "1450\n")
    assert host.underlay_mtu(["192.0.2.1", "127.0.0.1", ""], str(tmp_path), str(tmp_path)) == 1450


@pytest.mark.parametrize(
    ("interface", "networks", "reason"),
    [
        ("eth1", [], ""),
        ("eth1", [{"Name": "own", "Options": {"parent": "eth1"}, "Labels": {"cluster.compute.session": "x"}}], ""),
        ("eth1", [{"Name": "old", "Options": {"parent": "eth2"}}], ""),
        (
            "eth1",
            [{"Name": "old", "Options": {"parent": "eth1"}, "Labels": None}],
            "has network old on eth1, its agent_fabric,",
        ),
        ("eth2", [], "has no link on eth2, its agent_fabric,"),
        ("eth3", [], "has no interface eth3, its agent_fabric,"),
        ("../net/eth1", [], "has no interface ../net/eth1, its agent_fabric,"),
        ("", [], "has no agent_fabric"),
    ],
)
def test_the_interface_for_the_fabric(interface: str, networks: list[Json], reason: str, tmp_path: Path) -> None:
    write(tmp_path, "class/net/eth1/carrier", "1\n")
    write(tmp_path, "class/net/eth2/carrier", "0\n")
    assert host.fabric(interface, networks, str(tmp_path)) == Fabric(interface, reason)


def test_the_address_for_other_hosts_and_the_engines_that_keep_containers_off_it() -> None:
    found = host.host_network(["198.51.100.7"], EngineInfo(security=("name=seccomp,profile=default",)))
    assert (found.address == "") == bool(found.reason)
    if found.address:
        assert host.host_network([found.address], EngineInfo()) == found
        assert found.interface not in ("", "lo")
    for option in ("rootless", "userns"):
        reason = host.host_network([], EngineInfo(security=(f"name={option}",))).reason
        assert reason == f"has an engine with {option}, which keeps containers off its network,"


def test_limits_of_the_kernel(tmp_path: Path) -> None:
    write(tmp_path, "sys/net/ipv4/neigh/default/gc_thresh3", "1024\n")
    write(tmp_path, "sys/kernel/pid_max", "4194304\n")
    assert host.kernel_limits(proc=str(tmp_path)) == {"neighbours": 1024, "processes": 4194304}


@pytest.mark.parametrize(("content", "is_on"), [("1\n", True), ("0\n", False), (None, False)])
def test_whether_iptables_sees_bridged_packets(content: str | None, is_on: bool, tmp_path: Path) -> None:
    if content is not None:
        write(tmp_path, "sys/net/bridge/bridge-nf-call-iptables", content)
    assert host.has_bridge_filter(str(tmp_path)) == is_on


def test_nothing_to_read(tmp_path: Path) -> None:
    nowhere = str(tmp_path)
    assert host.kernel_limits(proc=nowhere) == {}
    assert host.routes(nowhere) == []
    assert host.listening_ports(nowhere) == set()
    assert host.underlay_mtu([], nowhere, nowhere) == 0
    assert host.gpu_nodes(nowhere) == []
    assert host.has_systemd(nowhere) is False
    assert host.swarm_cluster(nowhere) == ""
    assert host.engine_limits("unix:///no/such.sock", nowhere) == EngineLimits()


def test_gpu_nodes_are_the_numbered_ones(tmp_path: Path) -> None:
    for name in ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm", "nvidia-caps"):
        write(tmp_path, name, "")
    assert [name.rpartition("/")[2] for name in host.gpu_nodes(str(tmp_path))] == ["nvidia0", "nvidia1"]


@pytest.mark.parametrize(
    ("capabilities", "nofile", "memlock", "expected"),
    [
        ("000001ffffffffff", "1", "1", EngineLimits(1048576, -1)),
        ("000001fffeffffff", "20000", "8388608", EngineLimits(20000, 8388608)),
        ("000001fffeffffff", "2000000", "unlimited", EngineLimits(1048576, -1)),
    ],
)
def test_limits(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capabilities: str,
    nofile: str,
    memlock: str,
    expected: EngineLimits,
) -> None:
    write(tmp_path, "pid", "77")
    write(tmp_path, "77/comm", "dockerd\n")
    write(tmp_path, "77/status", f"Name:\tdockerd\nCapEff:\t{capabilities}\n")
    write(tmp_path, "77/limits", LIMITS.format(nofile=nofile, memlock=memlock))
    monkeypatch.setattr(host, "PID_FILE", str(tmp_path / "pid"))
    assert host.engine_limits("tcp://127.0.0.1:2375", str(tmp_path)) == expected
    assert host.kernel_limits("tcp://127.0.0.1:2375", str(tmp_path)) == {"files": int(nofile)}


def test_a_process_that_is_not_an_engine_says_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "pid", "77")
    write(tmp_path, "77/comm", "systemd\n")
    monkeypatch.setattr(host, "PID_FILE", str(tmp_path / "pid"))
    assert host.engine_limits("tcp://127.0.0.1:2375", str(tmp_path)) == EngineLimits()


def test_cpus() -> None:
    assert host.cpu_ids(10_000) == list(range(10_000))


def test_the_swarm_of_a_worker(tmp_path: Path) -> None:
    identity = b"sq2z3yq5mpydfvkvc3eh2wcjx"
    der = b"\x30\x40" + b"\x06\x03\x55\x04\x0a\x13" + bytes([len(identity)]) + identity + b"\x06\x03\x55\x04\x0b"
    pem = "-----BEGIN CERTIFICATE-----\n%s\n-----END CERTIFICATE-----\n" % base64.b64encode(der).decode()
    write(tmp_path, "swarm/certificates/swarm-node.crt", "noise\n" + pem)
    assert host.swarm_cluster(str(tmp_path)) == identity.decode()


@pytest.mark.parametrize("client", [[], [72]])
def test_the_addresses_that_a_host_needs(client: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection is above the module, or above the client of a process that stays after a module."""
    monkeypatch.setattr(worker, "_asking", client)
    # As sudo leaves it: a process further up has the variable.
    for pid, parent, variables in (
        (os.getpid(), 1 if client else 71, "A=1\0"),
        (72, 71, "A=1\0"),
        (71, 70, ""),
        (70, 1, "B=2\0SSH_CONNECTION=192.0.2.9 5 192.0.2.2 22\0"),
    ):
        write(tmp_path, "%d/status" % pid, "Name:\tsh\nPPid:\t%d\n" % parent)
        write(tmp_path, "%d/environ" % pid, variables)
    write(tmp_path, "systemd/resolve/resolv.conf", "nameserver 10.9.0.53\n")
    (tmp_path / "net").mkdir()
    rows = ["Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT"]
    rows += ["eth0 00000000 010012AC 0003 0 0 0 00000000 0 0 0", "eth0 000012AC 00000000 0001 0 0 0 0000FFFF 0 0 0"]
    (tmp_path / "net/route").write_text("\n".join(rows) + "\n")
    (tmp_path / "resolv.conf").write_text(
        "search a\nnameserver 10.201.0.53\nnameserver 127.0.0.53\nnameserver fe80::1\n"
    )
    found = host.needed_addresses(str(tmp_path), str(tmp_path), str(tmp_path))
    assert found == ["10.201.0.53", "10.9.0.53", "172.18.0.1", "192.0.2.9"]


def test_a_path_that_does_not_answer_does_not_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that reads a stale mount blocks until the file server answers again."""
    exists = os.path.exists

    def exists_late(path: str) -> bool:
        if path == "/stale":
            time.sleep(5)
            return True
        return exists(path)

    monkeypatch.setattr(os.path, "exists", exists_late)
    found = host.existing_paths([str(tmp_path), "/stale", str(tmp_path / "none")], seconds=1.0)
    assert found == {str(tmp_path): True, "/stale": False, str(tmp_path / "none"): False}


# In network namespaces of its own, a process gives its loopback interface a second address.
TWO_ADDRESSES = """
import fcntl, json, socket, struct, sys
from ansible_collections.cluster.compute.plugins.module_utils._agent import host
SIOCSIFADDR = 0x8916
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
    for name, address in (("lo", "192.0.2.1"), ("lo:vip", "192.0.2.2")):
        family = struct.pack("=HH", socket.AF_INET, 0) + socket.inet_aton(address)
        fcntl.ioctl(asking.fileno(), SIOCSIFADDR, struct.pack("16s24s", name.encode(), family))
print(json.dumps([sorted(host.own_addresses()), host.host_network(["192.0.2.2"], host.EngineInfo()).to_json()]))
"""


def test_a_further_address_of_an_interface_is_one_of_the_host() -> None:
    apart = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--net"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [*apart, sys.executable, "-c", TWO_ADDRESSES], capture_output=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr.decode()
    addresses, network = json.loads(done.stdout)
    assert addresses == ["192.0.2.1", "192.0.2.2"]
    assert network == {"address": "192.0.2.2", "interface": "lo", "reason": ""}
