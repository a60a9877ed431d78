# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program of the overlay guard, with the kernel's own tables in a network of its own."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from controller import ROOT

GUARD = ROOT / "roles/agent/files/overlay_guard.sh"
RULES = "iptables --table mangle --list-rules"
FLUSH = "iptables --table mangle --flush; iptables --table mangle --delete-chain"
JUMP = re.compile(r"^-A (INPUT|FORWARD) .*--dport (\d+) -j CLUSTER-COMPUTE$", re.MULTILINE)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """The program, with its record in another place: that of this host belongs to the host's own rules."""
    if os.geteuid() != 0:
        pytest.skip("only root has tables of its own")
    changed = tmp_path / "guard"
    changed.write_text(GUARD.read_text().replace("RECORD=/run", f"RECORD={tmp_path}"))
    return changed


def output(program: Path, *steps: str) -> str:
    """What the steps print, in one new network; a step that begins with an option of the program is the program's."""
    words = ("start", "status", "stop")
    lines = [f"sh {program} {step}" if step.startswith(words) else step for step in steps]
    command = ["unshare", "--net", "sh", "-ec", "\n".join(lines)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_the_rules_come_once_and_come_back_after_a_flush(program: Path) -> None:
    steps = ["status", "start", "start", "status", FLUSH, "status", "start", "status", "stop", "stop"]
    assert output(program, *steps).split() == ["missing", "installed", "missing", "installed", "removed"]


@pytest.mark.parametrize("chain", ["INPUT", "FORWARD", "OUTPUT", "CLUSTER-COMPUTE"])
def test_a_part_that_is_lost_is_noticed(chain: str, program: Path) -> None:
    flush = f"iptables --table mangle --flush {chain}"
    assert output(program, "start", flush, "status", "start", "status").split() == ["installed", "missing", "installed"]


def test_another_port_replaces_the_rules(program: Path) -> None:
    found = output(program, "start", "status 7789", "start 7789", "status", "status 7789", RULES)
    assert found.split("-P")[0].split() == ["installed", "missing", "installed", "missing"]
    assert sorted(JUMP.findall(found)) == [("FORWARD", "7789"), ("INPUT", "7789")]
    assert "CLUSTER-COMPUTE" not in output(program, "start 7789", "stop", RULES)


SERVER = """
import socket, sys
listener = socket.create_server(("", 80))
while True:
    listener.accept()[0].sendall(b"session")
"""
ASK = """
import os, socket, sys
os.setuid(int(sys.argv[1]))
try:
    print(socket.create_connection((sys.argv[2], 80), timeout=2).recv(9).decode())
except OSError:
    print("none")
"""
# This host, a container behind a bridge of a session, and another host with a route to the bridge.
PLACE = """
trap 'kill $inside $lan' EXIT
unshare --net sleep 300 >/dev/null 2>&1 & inside=$!
unshare --net sleep 300 >/dev/null 2>&1 & lan=$!
until [ "$(readlink /proc/$inside/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.1; done
until [ "$(readlink /proc/$lan/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.1; done
within() {{ nsenter --net=/proc/$inside/ns/net "$@"; }}
beside() {{ nsenter --net=/proc/$lan/ns/net "$@"; }}
ip link set lo up; echo 1 > /proc/sys/net/ipv4/ip_forward
ip link add {bridge} type bridge; ip addr add 10.9.0.1/24 dev {bridge}; ip link set {bridge} up
ip link add v1 type veth peer name eth0 netns $inside; ip link set v1 master {bridge} up
within ip addr add 10.9.0.2/24 dev eth0; within ip link set eth0 up; within ip route add default via 10.9.0.1
ip link add v2 type veth peer name eth0 netns $lan; ip addr add 192.0.2.1/24 dev v2; ip link set v2 up
beside ip addr add 192.0.2.2/24 dev eth0; beside ip link set eth0 up; beside ip route add 10.9.0.0/24 via 192.0.2.1
iptables -t nat -A PREROUTING -d 192.0.2.1 -p tcp --dport 80 -j DNAT --to 10.9.0.2
iptables -t nat -A OUTPUT -d 192.0.2.1 -p tcp --dport 80 -j DNAT --to 10.9.0.2
nsenter --net=/proc/$inside/ns/net python3 {server} >/dev/null 2>&1 & trap 'kill $inside $lan $!' EXIT
until python3 {ask} 0 10.9.0.2 | grep session; do sleep 0.1; done
"""
PARTIES = ("python3 {ask} 0 10.9.0.2", "python3 {ask} 65534 10.9.0.2", "beside python3 {ask} 0 10.9.0.2")
PUBLISHED = ("python3 {ask} 65534 192.0.2.1", "beside python3 {ask} 0 192.0.2.1")


@pytest.mark.parametrize(
    ("bridge", "rules", "found"),
    [
        ("cc-0123456789ab", "start 0", "session none none"),
        ("br-0123456789ab", "start 0", "session session session"),
        ("docker_gwbridge", "start 4789 fabric gateway", "session none none"),
        ("docker_gwbridge", "start 4789", "session session session"),
    ],
)
def test_only_root_and_published_ports_lead_to_a_session(
    bridge: str, rules: str, found: str, program: Path, tmp_path: Path
) -> None:
    """Before release 28, the engine lets in hosts with a route, and it never refuses the accounts of its own host."""
    server, ask = tmp_path / "server.py", tmp_path / "ask.py"
    server.write_text(SERVER)
    ask.write_text(ASK)
    tmp_path.chmod(0o755)
    steps = [one.format(bridge=bridge, server=server, ask=ask) for one in (PLACE, *PARTIES, *PUBLISHED)]
    steps = [steps[0], rules, *steps[1:]]
    assert output(program, *steps).split() == ["session", "installed", *found.split(), "session", "session"]


# A host, and in its segment another host, the container of a session on a fabric, and a host behind a router.
SEGMENT = """
trap 'kill $node $inside' EXIT
unshare --net sleep 300 >/dev/null 2>&1 & node=$!
unshare --net sleep 300 >/dev/null 2>&1 & inside=$!
until [ "$(readlink /proc/$node/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.1; done
until [ "$(readlink /proc/$inside/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.1; done
beside() {{ nsenter --net=/proc/$node/ns/net "$@"; }}
within() {{ nsenter --net=/proc/$inside/ns/net "$@"; }}
ip link set lo up; ip link add fab type veth peer name eth0 netns $node; ip addr add 192.0.2.1/24 dev fab; ip link set fab up
ip route add default via 192.0.2.2
beside ip addr add 192.0.2.2/24 dev eth0; beside ip addr add 198.51.100.2/32 dev eth0; beside ip link set eth0 up
beside ip link add mv link eth0 type macvlan mode bridge; beside ip link set mv netns $inside
within ip link set mv name eth1; within ip addr add 10.201.0.2/27 dev eth1; within ip link set eth1 up
timeout 60 python3 {listen} >{heard} & listener=$!
until grep -q ready {heard}; do sleep 0.1; done
"""
LISTEN = """
import socket
listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
listener.bind(("", 4789))
print("ready", flush=True)
while (sender := listener.recvfrom(9)[1][0]) != "127.0.0.1":
    print(sender, flush=True)
"""
# An ordinary program, which takes the destination for one on its link.
SEND = """
import os, socket, sys
os.setuid(65534)
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sender.bind((sys.argv[1], 0))
if sys.argv[2:]:
    sender.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, sys.argv[2].encode())
sender.sendto(b"frame", ("127.0.0.1" if sys.argv[1] == "127.0.0.1" else "192.0.2.1", 4789))
"""
SENDERS = (
    "beside python3 {send} 192.0.2.2",
    "beside python3 {send} 198.51.100.2",
    "within python3 {send} 10.201.0.2 eth1",
    "sleep 0.3; python3 {send} 127.0.0.1; wait $listener; cat {heard}",
)


@pytest.mark.parametrize(
    ("rules", "peers", "heard"),
    [
        ("start 4789", "", "192.0.2.2 198.51.100.2 10.201.0.2"),
        ("start 4789 fabric", "", "192.0.2.2"),
        ("start 4789 fabric", "198.51.100.2\n203.0.113.9\n", "192.0.2.2 198.51.100.2"),
    ],
)
def test_only_hosts_send_frames_over_a_fabric(
    rules: str, peers: str, heard: str, program: Path, tmp_path: Path
) -> None:
    """Containers on a fabric are in the segment of the hosts, past their bridges."""
    places = {name: tmp_path / name for name in ("listen", "send", "heard")}
    places["listen"].write_text(LISTEN)
    places["send"].write_text(SEND)
    (tmp_path / "cluster-compute-overlay-guard.peers").write_text(peers)
    tmp_path.chmod(0o755)
    program.write_text(program.read_text().replace("ENGINE=/run", f"ENGINE={tmp_path}"))
    steps = [one.format(**places) for one in (SEGMENT, *SENDERS)]
    found = output(program, steps[0], rules, rules.replace("start", "status"), *steps[1:])
    assert found.split() == ["installed", "ready", *heard.split()]


def test_the_rules_for_a_fabric_follow_it(program: Path) -> None:
    steps = ["start", "status 4789 fabric", "start 4789 fabric", "status", "status 4789 fabric", RULES, "start", RULES]
    found = output(program, *steps)
    assert found.split("-P")[0].split() == ["installed", "missing", "installed", "missing"]
    assert len(re.findall("^-A INPUT .*-j CLUSTER-COMPUTE-SENDERS$", found, re.MULTILINE)) == 1
    assert "CLUSTER" not in output(program, "start 4789 fabric", "stop", RULES)


def test_without_a_swarm_no_port_has_rules(program: Path) -> None:
    found = output(program, "start 4789", "start 0", "start 0", "status 0", "status", RULES, "stop", RULES)
    kept, left = found.split("removed")
    assert kept.split("-P")[0].split() == ["installed", "installed", "missing"]
    assert JUMP.findall(kept) == []
    assert len(re.findall("^-A (?:FORWARD|OUTPUT) .*-o cc-", kept, re.MULTILINE)) == 2
    assert "-A" not in left


def test_the_bridge_that_sessions_share_with_services_is_looked_after_where_it_is_asked_for(program: Path) -> None:
    steps = ["start 4789", "status 4789 gateway", "start 4789 gateway", "status 4789 gateway", "status", RULES]
    found = output(program, *steps)
    assert found.split("-P")[0].split() == ["installed", "missing", "installed", "missing"]
    assert len(re.findall("^-A (?:FORWARD|OUTPUT) .*-o docker_gwbridge", found, re.MULTILINE)) == 2
    for last in ("start 4789", "stop"):
        assert "-o docker_gwbridge" not in output(program, "start 4789 gateway", last, RULES)


def test_every_user_can_read_the_port_of_the_rules(program: Path) -> None:
    output(program, "start 7789")
    record = program.parent / "cluster-compute-overlay-guard"
    assert (record.read_text(), record.stat().st_mode & 0o777) == ("7789\n", 0o644)
    output(program, "start", "stop")
    assert not record.exists()


def test_a_port_that_is_none_is_refused(program: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError, match="exit status 2"):
        output(program, "start 47x9")


def test_no_account_of_the_host_can_hold_the_lock(program: Path) -> None:
    """flock(2) takes a file that is open for reading: rules that are flushed would not come back."""
    lock = program.parent / "cluster-compute-overlay-guard.lock"
    lock.touch(0o644)
    output(program, "start")
    assert lock.stat().st_mode & 0o777 == 0o600
    assert (program.parent / "cluster-compute-overlay-guard").stat().st_mode & 0o777 == 0o644
