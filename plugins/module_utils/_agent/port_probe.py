# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests which ports are open from agent to agent, with real datagrams to the ports that an overlay network uses.

The kernel's VXLAN and the engine use those ports, and do not answer unknown senders. A raw socket receives a copy of every UDP
datagram that the host's firewall accepts (https://man7.org/linux/man-pages/man7/raw.7.html), whichever process has the port.
It needs only capabilities that every container has by default, so the listener is a container on the host's network. Datagrams
to the port of VXLAN carry no network and the kernel drops them; the engine logs the datagrams to 7946 as unreadable packets.
"""

from __future__ import annotations

import json
import socket
import time
from typing import Dict, List, Tuple

from .._shared.documents.findings import CONTAINER, FULL, GOSSIP, VXLAN
from .._shared.errors import EngineError
from .._shared.parallel import run_all
from .engine.client import Engine
from .examination import check_body, json_lines, lasting_body, run_to_end, start_lasting, stop_lasting

NAME = "cluster-compute-check-listener-%s"
GOSSIP_PORT = 7946
TCP_PORTS = (7946, 2377)
# Datagrams may be lost: each is sent this often, with a pause in seconds.
ROUNDS = 3
ROUND_PAUSE = 0.15
CONNECT_TIMEOUT = 3.0
HEADERS = 28  # bytes of the IP and UDP headers
# Numbers of Linux that Python has no names for: https://man7.org/linux/man-pages/man7/ip.7.html
IP_MTU_DISCOVER, IP_PMTUDISC_DO = 10, 2

LISTENER = r"""
import socket, sys, time
mark, end = sys.argv[1].encode(), time.monotonic() + float(sys.argv[2])
listener = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP)
listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
listener.settimeout(1)
received = set()
print("listening", flush=True)
while time.monotonic() < end:
    try:
        packet = listener.recv(65535)
    except socket.timeout:
        continue
    found = packet.find(mark, 28, 200)
    line = packet[found:].split(b"\n", 2)[1] if found > 0 and packet.count(b"\n", found) > 1 else b""
    if line and line not in received:
        received.add(line)
        print(line.decode(), flush=True)
"""

SENDER = r"""
import socket, sys, time
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _round in range(int(sys.argv[2])):
    for address in sys.argv[4:]:
        try:
            sender.sendto(bytes.fromhex(sys.argv[1]), (address, int(sys.argv[3])))
        except OSError:
            pass  # no route, or a refusal of the previous datagram
    time.sleep(0.1)
print("sent", flush=True)
"""


def start_listener(engine: Engine, mark: str, seconds: int) -> None:
    """Start a container that listens on this host. It ends by itself after some seconds, in case it is not stopped."""
    body = lasting_body(LISTENER, [_words(mark), str(seconds)], "host", mark)
    body["HostConfig"]["CapAdd"] = ["NET_RAW"]
    start_lasting(engine, NAME % mark, body, "the container that tests the ports does not listen")


def stop_listener(engine: Engine, mark: str) -> List[List[str]]:
    """Remove the listener; returns what it received, each as the name of the sender and the channel."""
    return [words for words in json_lines(stop_lasting(engine, NAME % mark)) if len(words) == 2]


def send_probe(name: str, peers: Dict[str, str], mark: str, mtu: int, port: int) -> None:
    """Send datagrams to each peer's address, several times because some may be lost; ``mtu`` is in bytes, ``port`` is VXLAN's."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO)
        for _round in range(ROUNDS):
            for address in peers.values():
                # One to each port, and one that fills a packet.
                _send(sender, address, port, datagram(name, VXLAN, mark))
                _send(sender, address, GOSSIP_PORT, datagram(name, GOSSIP, mark))
                _send(sender, address, port, datagram(name, FULL, mark).ljust(mtu - HEADERS, b"\0"))
            time.sleep(ROUND_PAUSE)


def send_from_container(
    engine: Engine, addresses: List[str], port: int, mark: str, network: str, deadline: float
) -> None:
    """Send datagrams to these addresses, at the port of VXLAN, from a container on a network of the engine."""
    content = datagram(engine.agent, CONTAINER, mark).hex()
    body = check_body(["python3", "-c", SENDER, content, str(ROUNDS), str(port), *addresses], network, mark)
    output = run_to_end(engine, "cluster-compute-check-sender-" + mark, body, deadline)
    if "sent" not in output:
        message = "%s: the container that tests UDP %d did not send: %s; check that the reference image works there."
        found = " ".join(output.split())[-200:].rstrip(".") or "it wrote nothing"
        raise EngineError(message % (engine.agent, port, found))


def probe_connection(peers: Dict[str, str], limit: int = 16) -> Dict[str, Dict[str, str]]:
    """Return how each peer's TCP ports answer: ``open``, ``refused`` or ``silent``. ``limit`` connections are tried at a time."""
    wanted = [(name, address, port) for name, address in peers.items() for port in TCP_PORTS]
    answers: Dict[str, Dict[str, str]] = {name: {} for name in peers}
    for (name, _address, port), answer in zip(wanted, run_all(_connect, wanted, limit)):
        answers[name][str(port)] = answer
    return answers


def datagram(sender: str, channel: str, mark: str) -> bytes:
    """A VXLAN header of eight bytes without a network, the mark, the name of the sender and the channel."""
    return b"\0" * 8 + _words(mark).encode() + b"\n" + json.dumps([sender, channel]).encode() + b"\n"


def _words(mark: str) -> str:
    return "cluster.compute.check:" + mark


def _send(sender: socket.socket, address: str, port: int, content: bytes) -> None:
    try:
        sender.sendto(content, (address, port))
    except OSError:
        # Too long for the path, no route, or a refusal of the previous datagram: the listener will miss it and the check fails.
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
