# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The program that an agent's container runs in the throw-away overlay network of a check.

``_steps/doctor.py`` passes its source to ``python3 -c`` in the reference image, so it imports the standard library only. It answers
the other containers until it ends. After the file ``GO`` exists, it asks for the names of the others and sends them packets; after
``LINK`` exists, which has the name of a peer, it measures the throughput to that peer. Each line that it prints is a JSON list:
``["name", peer, address]``, ``["heard", peer, size]``, ``["latency", peer, ms]``, ``["done"]``, ``["mbits", peer, mbits]``.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
import time
from typing import Any, Dict, List, Set, Tuple

FOLDER, GO, LINK = "/tmp", "go", "link"
UDP_PORT, TCP_PORT = 5791, 5792
SMALL, FULL = "small", "full"
HEADERS = 28  # bytes of the IP and UDP headers
BLOCK = b"\0" * (1 << 16)
BUFFER = 1 << 18
RESOLVERS = 16
PINGS = 10
# Seconds: for names and packets, between two sendings, and for an answer of the other end.
PACKET_TIME, RESEND, ANSWER = 6.0, 0.2, 2.0
# Numbers of Linux that Python has no names for: https://man7.org/linux/man-pages/man7/ip.7.html
IP_MTU_DISCOVER, IP_PMTUDISC_DO = 10, 2

printing = threading.Lock()


def show(*words: Any) -> None:
    with printing:
        sys.stdout.write(json.dumps(words) + "\n")
        sys.stdout.flush()


def udp_socket(address: str = "", port: int = 0) -> socket.socket:
    """A socket whose packets are never fragmented."""
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO)
    made.bind((address, port))
    return made


class Endpoint:
    """``options``: name, address and mtu of this container, its ``peers`` (name, host, address), and the ``seconds`` of a
    measurement of throughput."""

    def __init__(self, options: Dict[str, Any]) -> None:
        self.name = str(options["name"])
        self.address = str(options["address"])
        self.payload = int(options["mtu"]) - HEADERS
        self.peers: Dict[str, Dict[str, str]] = {str(peer["name"]): peer for peer in options["peers"]}
        self.seconds = float(options["seconds"])

    def serve(self) -> None:
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((self.address, TCP_PORT))
        listener.listen(64)
        for target in (lambda: self.echo(udp_socket(self.address, UDP_PORT)), lambda: self.accept(listener)):
            threading.Thread(target=target, daemon=True).start()

    def echo(self, receiver: socket.socket) -> None:
        """Return every packet, and show the first of each sender and size."""
        heard: Set[Tuple[str, str]] = set()
        while True:
            try:
                packet, sender = receiver.recvfrom(65535)
                receiver.sendto(packet, sender)
            except OSError:
                continue  # the path back is too narrow or closed: the sender misses the answer
            words = packet.split(b"\n", 3)
            found = (
                (words[0].decode("utf-8", "replace"), words[1].decode("utf-8", "replace")) if len(words) > 2 else None
            )
            if found and found not in heard and found[0] in self.peers and found[1] in (SMALL, FULL):
                heard.add(found)
                show("heard", *found)

    def accept(self, listener: socket.socket) -> None:
        while True:
            connection, _sender = listener.accept()
            threading.Thread(target=self.receive, args=(connection,), daemon=True).start()

    def receive(self, connection: socket.socket) -> None:
        """Count what arrives. The answer is the count and the seconds until the last byte."""
        with connection:
            connection.settimeout(ANSWER)
            try:
                answer = json.dumps(count(connection, self.seconds + ANSWER))
                connection.sendall(answer.encode())
            except OSError:
                return

    def test(self) -> None:
        """Names, packets and latency of all peers."""
        resolvers = [threading.Thread(target=self.resolve, args=(turn,), daemon=True) for turn in range(RESOLVERS)]
        for resolver in resolvers:
            resolver.start()
        deadline = time.monotonic() + PACKET_TIME
        answered = self.exchange(deadline)
        for resolver in resolvers:
            resolver.join(max(0.0, deadline - time.monotonic()))
        for name in self.peers:
            if {(name, SMALL), (name, FULL)} <= answered:
                self.ping(name)
        show("done")

    def resolve(self, turn: int) -> None:
        """Ask Docker's DNS for every sixteenth peer."""
        for name, peer in list(self.peers.items())[turn::RESOLVERS]:
            try:
                show("name", name, socket.gethostbyname(peer["host"]))
            except OSError as error:
                show("name", name, str(error))

    def exchange(self, deadline: float) -> Set[Tuple[str, str]]:
        """Send a small and a full packet to every peer until it answers both; returns what was answered."""
        wanted = {(name, size) for name in self.peers for size in (SMALL, FULL)}
        answered: Set[Tuple[str, str]] = set()
        with udp_socket() as sender:
            while wanted - answered and time.monotonic() < deadline:
                for name, size in sorted(wanted - answered):
                    self.send(sender, name, size)
                answered |= answers(sender, wanted - answered, min(deadline, time.monotonic() + RESEND))
        return answered

    def send(self, sender: socket.socket, name: str, size: str) -> None:
        packet = (f"{self.name}\n{size}\n{name}\n").encode()
        try:
            sender.sendto(
                packet.ljust(self.payload, b"\0") if size == FULL else packet, (self.peers[name]["address"], UDP_PORT)
            )
        except OSError:
            return  # too long, or no route: no answer comes

    def ping(self, name: str) -> None:
        """The least of some round trips, because other containers measure at the same time."""
        trips: List[float] = []
        for _turn in range(PINGS):
            with udp_socket() as sender:
                begun = time.monotonic()
                self.send(sender, name, SMALL)
                if answers(sender, {(name, SMALL)}, begun + ANSWER / 2):
                    trips.append(time.monotonic() - begun)
        show("latency", name, round(1000 * min(trips), 3) if trips else None)


def answers(sender: socket.socket, expected: Set[Tuple[str, str]], deadline: float) -> Set[Tuple[str, str]]:
    """Return which of the expected answers (peer, size) arrive until the deadline."""
    found: Set[Tuple[str, str]] = set()
    while expected - found:
        left = deadline - time.monotonic()
        if left <= 0:
            break
        sender.settimeout(left)
        try:
            words = sender.recv(65535).split(b"\n", 3)
        except OSError:
            continue  # nothing came, or the kernel reports that an earlier packet was refused
        if len(words) > 3:
            found.add((words[2].decode("utf-8", "replace"), words[1].decode("utf-8", "replace")))
    return found & expected


def count(connection: socket.socket, limit: float) -> List[float]:
    """The bytes that arrive and the seconds until the last of them, at most ``limit`` seconds."""
    begun = time.monotonic()
    total, last = 0, begun
    while last - begun < limit:
        try:
            received = len(connection.recv(len(BLOCK)))
        except socket.timeout:
            break
        if not received:
            break
        total, last = total + received, time.monotonic()
    return [total, last - begun]


def throughput(address: str, seconds: float) -> float:
    """Megabits per second to a peer; 0 if the connection fails."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER)
            connection.settimeout(ANSWER)
            connection.connect((address, TCP_PORT))
            deadline = time.monotonic() + seconds
            while time.monotonic() < deadline:
                connection.sendall(BLOCK)
            connection.shutdown(socket.SHUT_WR)
            connection.settimeout(seconds + 2 * ANSWER)
            total, spent = json.loads(connection.makefile().read() or "[0, 0]")
    except (OSError, ValueError):
        return 0.0
    return round(float(total) * 8 / 1e6 / max(float(spent), 1e-3), 1)


def ordered(path: str, end: float) -> str:
    """Wait for a file, and return the line in it; empty at the end of this container."""
    while time.monotonic() < end:
        try:
            with open(path, encoding="utf-8") as file:
                line = file.read()
        except OSError:
            line = ""
        if line.endswith("\n"):
            return line.strip()
        time.sleep(0.05)
    return ""


def main(options: Dict[str, Any], lifetime: float, folder: str = FOLDER) -> None:
    """Serve for ``lifetime`` seconds, in case nothing removes the container; test and measure when the files exist."""
    end = time.monotonic() + lifetime
    endpoint = Endpoint(options)
    endpoint.serve()
    sys.stdout.write("listening\n")
    sys.stdout.flush()
    if ordered(os.path.join(folder, GO), end):
        endpoint.test()
    peer = ordered(os.path.join(folder, LINK), end)
    if peer in endpoint.peers:
        show("mbits", peer, throughput(endpoint.peers[peer]["address"], endpoint.seconds))
    time.sleep(max(0.0, end - time.monotonic()))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), float(sys.argv[2]))
