#!/usr/bin/env python3
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measure TCP throughput between two hosts, and between two containers of a session on them over each network that it can have.

The hosts are two virtual hosts of the tests: all their networks are bridges of this machine, so what is measured is the work of the
processors, not that of network cards. iperf3 is Debian's, which the hosts install and the containers get from them.

Usage: networks.py [--runs 3] [--seconds 3]

Prints a table of medians, in Gbit/s. A ratio is the median of the ratios to the hosts in the same round.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from overlay import NAMES, Agents, Lab

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

from controller import Done, Session, run
from with_engine import engine_host

HOSTS = "host to host"
PORT = 5201  # on which the servers in containers listen
PORT_OF_HOST = 5202  # a container on the network of its host listens at the other port
INSTALL = "apt-get update -qq && apt-get install -y -qq --no-install-recommends iperf3"
FILES = "/usr/bin/iperf3 /usr/lib/*/libiperf.so.0 /usr/lib/*/libsctp.so.1"
WIDE = {
    "session_cluster_size": 2,
    "session_per_agent": 1,
    "session_cpus": 2,
    "agent_cpus": 4,
    "session_memory": "256m",
}

Ways = dict[str, Callable[[int], Done]]  # by network: a client that sends for so many seconds
Rates = dict[str, list[float]]  # by network: Gbit/s of each round


def main() -> int:
    """Measure everything and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=3, help="of each run")
    options = parser.parse_args()
    with _ways() as ways:
        for client in ways.values():  # the first connection also resolves names and addresses
            client(1).check()
        rates: Rates = {network: [] for network in ways}
        for _ in range(options.runs):
            for network, client in ways.items():
                rates[network].append(received(client(options.seconds).check().text))
        load = f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} processors"
    print(f"\nmedian of {options.runs} rounds of {options.seconds} s, Gbit/s; {load}\n{table(rates)}", flush=True)
    return 0


@contextmanager
def _ways() -> Iterator[Ways]:
    """A client for each network, whose server listens. The hosts and two sessions exist as long as the block."""
    lab = Lab("networks")
    lab.names = NAMES[:2]
    try:
        lab.make()
        for agent in lab.names:
            lab.shell(agent, INSTALL).check()
        with (
            tempfile.TemporaryDirectory() as folder,
            lab.fabric(lab.names),
            Agents(Path(folder) / "own", engine_host(), lab) as agents,
        ):
            own = _served(agents.launched("bench-own", session_fabric=True, **WIDE), lab)
            shared = _served(agents.launched("bench-host", session_network="host", **WIDE), lab)
            client, server = (one["agent"] for one in own.document["containers"])
            _exec(lab, server, f"iperf3 -s -D -p {PORT_OF_HOST}").check()
            yield {
                HOSTS: lambda length: _exec(lab, client, _iperf(lab.address(server), PORT_OF_HOST, length)),
                "session_fabric": lambda length: own.ssh("main1", _iperf("sub1-fabric", PORT, length)),
                "private": lambda length: own.ssh("main1", _iperf("sub1", PORT, length)),
                "session_network: host": lambda length: shared.ssh("main1", _iperf("sub1", PORT, length)),
            }
    finally:
        lab.destroy()


def _served(session: Session, lab: Lab) -> Session:
    """The session, whose containers have iperf3 and whose second one serves."""
    for one in session.document["containers"]:
        name = f"{session.controller.owner}.{session.name}.{one['hostname']}"
        copy = f"for file in {FILES}; do docker cp --follow-link $file {name}:$file || exit; done"
        lab.shell(one["agent"], copy).check()
    session.say("sub1", f"iperf3 -s -D -p {PORT}")
    return session


def _exec(lab: Lab, agent: str, command: str) -> Done:
    """Run a command on a host, in the host's cgroup: in that of this program, others would take its time of the processors."""
    return run(["docker", "exec", lab.container(agent), *command.split()])


def _iperf(server: str, port: int, seconds: int) -> str:
    return f"iperf3 --client {server} --port {port} --time {seconds} --json"


def received(said: str) -> float:
    """What the server received, in Gbit/s."""
    return float(json.loads(said)["end"]["sum_received"]["bits_per_second"]) / 1e9


def table(rates: Rates) -> str:
    """The medians as a table in Markdown."""
    lines = ["| network | Gbit/s | of host to host |", "| --- | --- | --- |"]
    for network, found in rates.items():
        ratios = [one / other for one, other in zip(found, rates[HOSTS], strict=True)]
        lines.append(f"| {network} | {statistics.median(found):.2f} | **{statistics.median(ratios):.2f}** |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
