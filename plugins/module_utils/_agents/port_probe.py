# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What goes from agent to agent: real datagrams to the very ports that an overlay uses, heard behind the firewall.

The kernel's VXLAN and the engine hold those ports, and neither answers a stranger. A raw socket gets a copy of every UDP
datagram that the host's firewall has let in (https://man7.org/linux/man-pages/man7/raw.7.html), whoever holds its port. It
needs no more than what every container has by default, so the listener is one on the host's network. Datagrams to 4789 carry
no VXLAN network and are dropped by the kernel; the engine notes those to 7946 in its log as packets that it cannot read.
"""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import json
import socket
import time
from typing import Dict, List, Tuple

from ansible_collections.cluster.compute.plugins.module_utils._agents.examination import PAUSE, check_body, start_anew
from ansible_collections.cluster.compute.plugins.module_utils._core.errors import EngineError
from ansible_collections.cluster.compute.plugins.module_utils._core.parallel import map_bounded
from ansible_collections.cluster.compute.plugins.module_utils._docker.client import Engine

NAME = "cluster-compute-check-listener-%s"
UDP_PORTS = (4789, 7946)
TCP_PORTS = (7946, 2377)
FULL = "full"
ROUNDS = 3
ROUND_PAUSE = 0.15
CONNECT_TIMEOUT = 3.0
HEADERS = 28  # of IP and UDP
# Linux' numbers, which Python does not name: https://man7.org/linux/man-pages/man7/ip.7.html
IP_MTU_DISCOVER, IP_PMTUDISC_DO = 10, 2

LISTENER = r"""
import socket, sys, time
mark, end = sys.argv[1].encode(), time.monotonic() + float(sys.argv[2])
ear = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP)
ear.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
ear.settimeout(1)
heard = set()
print("listening", flush=True)
while time.monotonic() < end:
    try:
        packet = ear.recv(65535)
    except socket.timeout:
        continue
    found = packet.find(mark, 28, 200)
    line = packet[found:].split(b"\n", 2)[1] if found > 0 and packet.count(b"\n", found) > 1 else b""
    if line and line not in heard:
        heard.add(line)
        print(line.decode(), flush=True)
"""


def listen(engine: Engine, image: str, token: str, seconds: int, deadline: float) -> None:
    """Listen on this host from now on; the listener ends by itself where nobody ends it."""
    body = check_body(image, ["python3", "-c", LISTENER, _mark(token), str(seconds)], "host", token)
    body["HostConfig"]["CapAdd"] = ["NET_RAW"]
    name = NAME % token
    identity = start_anew(engine, name, body)
    while "listening" not in engine.logs(identity):
        if time.monotonic() > deadline:
            said = " ".join(engine.logs(identity).split()) or "it said nothing"
            engine.remove(identity, name)
            raise EngineError("%s: nothing can listen on its network: %s." % (engine.agent, said[-200:]), engine.agent)
        time.sleep(PAUSE)


def gather(engine: Engine, token: str) -> List[List[str]]:
    """Whom this host has heard, each with the channel; the listener is gone after it."""
    found = engine.inspect(NAME % token)
    if found is None:
        return []
    try:
        lines = engine.logs(found["Id"]).splitlines()
    finally:
        engine.remove(found["Id"], NAME % token)
    return [json.loads(line) for line in lines if line.startswith("[")]


def send(name: str, peers: Dict[str, str], token: str, mtu: int) -> None:
    """Datagrams to every peer, a few times over: one may be lost. ``peers`` are addresses by name."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO)
        for _round in range(ROUNDS):
            for address in peers.values():
                for port in UDP_PORTS:
                    _say(sender, address, port, datagram(name, "%d/udp" % port, token))
                _say(sender, address, UDP_PORTS[0], datagram(name, FULL, token).ljust(mtu - HEADERS, b"\0"))
            time.sleep(ROUND_PAUSE)


def connect(peers: Dict[str, str], limit: int = 16) -> Dict[str, Dict[str, str]]:
    """How each peer's TCP ports answer: ``open``, ``refused`` or ``silent``."""
    wanted = [(name, address, port) for name, address in peers.items() for port in TCP_PORTS]
    answers: Dict[str, Dict[str, str]] = {name: {} for name in peers}
    for outcome in map_bounded(_connect, wanted, limit, keep_going=True):
        name, _address, port = outcome.item
        answers[name][str(port)] = outcome.value or "silent"
    return answers


def datagram(sender: str, channel: str, token: str) -> bytes:
    """Eight bytes that are a VXLAN header without a network, the mark, and who speaks on which channel."""
    return b"\0" * 8 + _mark(token).encode() + b"\n" + json.dumps([sender, channel]).encode() + b"\n"


def _mark(token: str) -> str:
    return "cluster.compute.check:" + token


def _say(sender: socket.socket, address: str, port: int, content: bytes) -> None:
    try:
        sender.sendto(content, (address, port))
    except OSError:
        # Too long for the path, no route, or the port's own refusal of the one before: it will not be heard, and be told.
        return


def _connect(peer: Tuple[str, str, int]) -> str:
    _name, address, port = peer
    try:
        with socket.create_connection((address, port), timeout=CONNECT_TIMEOUT):
            return "open"
    except ConnectionRefusedError:
        return "refused"
    except OSError:
        return "silent"
