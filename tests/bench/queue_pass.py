#!/usr/bin/env python3
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long a pass takes to decide about 500 waiting sessions over 100 agents: a table, and exit code 1 if a round takes
longer than the budget."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "collections"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

from samples import GIB, agent, carried_out, context, request

from ansible_collections.cluster.compute.plugins.module_utils._head.queue_pass import decide
from ansible_collections.cluster.compute.plugins.module_utils._head.session_record import SessionRecord
from ansible_collections.cluster.compute.plugins.module_utils._head.snapshot import Context
from ansible_collections.cluster.compute.plugins.module_utils._head.store import Store
from ansible_collections.cluster.compute.plugins.module_utils._shared import states
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.report import AgentReport
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.addresses import choose_subnet
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.placement import Placement, free_of
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.plan import PlanInputs, build_plan
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.request import Request

# The sessions that run must not have outlived their lifetime: a whole pass would end them.
AGENTS, RUNNING, WAITING, NOW = 100, 400, 500, time.time()
NAMES = ["agent%03d" % number for number in range(AGENTS)]
BUDGET = 5.0
# What the waiting sessions ask for: alike, as those of a sweep, or each with an amount of its own.
QUEUES = {
    "alike, none fits": (9, False),
    "alike, 100 fit": (1, False),
    "all different, none fits": (9, True),
    "all different, most fit": (1, True),
}


def waiting(number: int, cpus: int, different: bool) -> Request:
    cores = round(cpus + number / 1000, 3) if different else cpus
    return request(name="waits-%d" % number, owner="user%d" % (number % 10), cpus=cores, memory="64m", lifetime=3600)


def fill(
    store: Store,
    cpus: int,
    different: bool,
    *,
    running: int = RUNNING,
    waits: int = WAITING,
    names: Sequence[str] = NAMES,
) -> tuple[AgentReport, ...]:
    """The agents, each with sessions that hold six of its eight CPUs, and a queue."""
    agents = {name: agent(name, cpus=8, memory=64 * GIB) for name in names}
    subnets: list[str] = []
    with store.transaction():
        for number in range(running):
            cores, until = 6 * len(names) / running, 7200 + number
            asked = request(name="runs-%d" % number, owner="user%d" % (number % 10), cpus=cores, lifetime=until)
            name = names[number % len(names)]
            found = agents[name]
            each = free_of(found, [one.resources for one in found.containers]).take(asked.demand().per_container)
            row = added(store, asked, "00000000-0000-4000-8000-%012d" % number, NOW - 100)
            subnet = choose_subnet(1, asked.network_pool, subnets)
            subnets.append(subnet.subnet)
            placed = Placement((name,), (each,), "single-node")
            row = replace(row, plan=build_plan(asked, PlanInputs(row.id, row.id, placed, subnet, (), began=NOW - 100)))
            for state in (states.SCHEDULED, states.PREPARING, states.RUNNING):
                row = store.change(row, state, NOW - 100, "runs")
            [agents[name]] = carried_out([found], row.plan)
        for number in range(waits):
            identity = "10000000-0000-4000-8000-%012d" % number
            added(store, waiting(number, cpus, different), identity, NOW + number / 1000)
    return tuple(agents.values())


def added(store: Store, asked: Request, identity: str, now: float) -> SessionRecord:
    row = SessionRecord(identity, asked.name, asked.owner, "default", states.PENDING, request=asked)
    return store.add(row, now, "requested")


def measure(store: Store, owner: str, asking: Context) -> tuple[float, int]:
    """Seconds of CPU of a round, reading the store included, and the number of sessions that fit."""
    begun = time.process_time()
    with store.transaction(keep=False):
        found = decide(store, owner, (), asking)
    return time.process_time() - begun, len(found.fitting)


def main() -> int:
    print("a pass: %d sessions of 10 owners wait, %d run, %d agents; budget %g s" % (WAITING, RUNNING, AGENTS, BUDGET))
    worst = 0.0
    for name, (cpus, different) in QUEUES.items():
        with tempfile.TemporaryDirectory() as folder:
            store = Store(str(Path(folder) / "state"))
            agents = fill(store, cpus, different)
            asking = replace(context(*agents), now=NOW + 60)
            seconds, fits = measure(store, "user1", asking)
            store.close()
        worst = max(worst, seconds)
        print("  %-40s %6.3f s  %5.2f of the budget  (%d fit)" % (name, seconds, seconds / BUDGET, fits))
    return int(worst > BUDGET)


if __name__ == "__main__":
    sys.exit(main())
