#!/usr/bin/env python3
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measure how long engines of several releases take to start N containers, as they are and with settings of the kernel.

The engines are those of Debian 12, Debian 13 and sid, on virtual hosts of the tests, one after the other; the Docker SDK alone creates and
starts the containers, eight at a time, on a new network each. The settings are those of this machine: rcu_expedited, and with cgroups
of version 2 favordynmods. Each is set for the seconds of a launch and put back, also when this program is killed. Needs root.

Usage: starts.py [--sizes 1,16,64] [--runs 5] [--suites bookworm,trixie,sid]

Prints a table of medians, in seconds. A ratio is the median of the ratios to the launch as it is in the same round.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import product
from pathlib import Path

from overlay import LABEL, NAMES, REMOVED, SCRIPT, Lab

IMAGE = "cluster-compute/reference:1"
EXPEDITED = Path("/sys/kernel/rcu_expedited")
CGROUPS = Path("/sys/fs/cgroup")
NETWORKS = {"bridge": "-d bridge", "overlay": "-d overlay --attachable"}
AS_IS = "as is"

Manners = dict[str, Callable[[], AbstractContextManager[None]]]
Case = tuple[str, str, int]  # agent, network, number of containers
Times = dict[Case, dict[str, list[float]]]  # seconds of each round, by manner


def main() -> int:
    """Measure everything and print the table."""
    options = _options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    manners = _manners()
    lab = Lab("starts", options.suites)
    lab.names = NAMES[: len(options.suites)]
    try:
        lab.make_hosts()
        engines = {agent: _prepared(lab, agent) for agent in lab.names}
        times = _measured(lab, options, manners)
    finally:
        lab.destroy()
    print(f"\nmedian of {options.runs} rounds, seconds; load {os.getloadavg()[0]:.1f}, {os.cpu_count()} processors")
    print(table(engines, times))
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=lambda text: [int(word) for word in text.split(",")], default=[1, 16, 64])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--suites", type=lambda text: text.split(","), default=["bookworm", "trixie", "sid"])
    options = parser.parse_args()
    if len(options.suites) > len(NAMES):
        parser.error(f"--suites: at most {len(NAMES)}")
    return options


def _manners() -> Manners:
    """The settings that this kernel has. A setting that is there already is no manner of its own."""
    found: Manners = {AS_IS: nullcontext}
    if EXPEDITED.read_text().strip() == "0":
        found["rcu_expedited"] = lambda: guarded(f"echo 1 >{EXPEDITED}", f"echo 0 >{EXPEDITED}")
    if not (CGROUPS / "cgroup.controllers").exists():
        print("This machine has no cgroups of version 2: favordynmods is not measured.")
    elif "favordynmods" not in Path("/proc/mounts").read_text():
        mount = f"mount -o remount,%s {CGROUPS}"
        found["favordynmods"] = lambda: guarded(mount % "favordynmods", mount % "nofavordynmods")
    return found


@contextmanager
def guarded(change: str, back: str) -> Iterator[None]:
    """Run a command, and at the end the command that puts everything back: a shell, which sees the end of this process, too."""
    script = f"set -e; {change}; echo done; cat >/dev/null; {back}"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(["sh", "-c", script], start_new_session=True, **pipes) as shell:
        assert shell.stdout
        if not shell.stdout.readline():
            raise OSError(f"{change} failed")
        yield


def _prepared(lab: Lab, agent: str) -> str:
    """Make an agent the only node of a Swarm, for overlay networks, and return its engine's version. The first launches are slower."""
    lab.shell(agent, f"docker swarm init --advertise-addr {lab.address(agent)}").check()
    for network in NETWORKS.values():
        _start(lab, agent, network, 4, nullcontext)
    return lab.shell(agent, "docker version --format '{{.Server.Version}}'").check().text.partition("+")[0].strip()


def _measured(lab: Lab, options: argparse.Namespace, manners: Manners) -> Times:
    times: Times = {}
    for number in range(options.runs):
        for network, size, agent in product(NETWORKS, options.sizes, lab.names):
            seconds = times.setdefault((agent, network, size), {})
            for manner in sorted(manners, reverse=bool(number % 2)):
                seconds.setdefault(manner, []).append(_start(lab, agent, NETWORKS[network], size, manners[manner]))
        print(f"round {number + 1} of {options.runs} has ended", flush=True)
    return times


def _start(lab: Lab, agent: str, network: str, size: int, manner: Callable[[], AbstractContextManager[None]]) -> float:
    """Seconds of the launch of so many containers on a new network."""
    name = f"bench-{uuid.uuid4().hex[:6]}-starts"
    script = SCRIPT % {"network": name, "image": IMAGE, "label": LABEL}

    def run(state: str) -> str:
        return lab.shell(agent, f"python3 - {size} {state} <<'END'\n{script}\nEND", timeout=600).check().text

    lab.shell(agent, f"docker network create {network} {name}").check()
    try:
        with manner():
            said = run("present")
    finally:
        run("absent")
        lab.shell(agent, f"docker network rm {name}; {REMOVED % {'network': name}}")
    return float(said.strip().splitlines()[-1])


def table(engines: dict[str, str], times: Times) -> str:
    """The medians as a table in Markdown. Each further manner has the ratio to the launch as it is."""
    manners = [manner for manner in next(iter(times.values())) if manner != AS_IS]
    lines = [f"| engine | network | N | {' | '.join([AS_IS, *manners])} |", "| --- " * (4 + len(manners)) + "|"]
    for (agent, network, size), seconds in times.items():
        cells = [engines[agent], network, str(size), f"{statistics.median(seconds[AS_IS]):.2f}"]
        for manner in manners:
            ratios = [one / other for one, other in zip(seconds[manner], seconds[AS_IS], strict=True)]
            cells.append(f"{statistics.median(seconds[manner]):.2f}, **{statistics.median(ratios):.2f}**")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
