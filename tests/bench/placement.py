#!/usr/bin/env python3
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long placing 1,000 containers over 10,000 agents takes, with 5,000 sessions running: a table, and exit code 1 if
any row takes longer than the budget."""

from __future__ import annotations

import random
import sys
import time
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "collections"))

from ansible_collections.cluster.compute.plugins.module_utils._shared.constants import MULTI_NODE
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import Gpu, Resources
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.report import AgentReport, Capacity
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.capacity import Demand, PerContainer
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.placement import (
    Placement,
    free_of,
    place,
)

AGENTS, SESSIONS, SIZE = 10_000, 5_000, 1_000
BUDGET = 1.0
GIB = 1 << 30
EACH = PerContainer(4000, 16 * GIB, GIB, gpus=1, pinned=True)
DEMANDS = {
    "1,000 containers, packed": Demand(SIZE, EACH, MULTI_NODE),
    "1,000 containers, spread": Demand(SIZE, EACH, MULTI_NODE, strategy="spread"),
    "1,000 containers with parts of GPUs": Demand(SIZE, replace(EACH, gpus=0.25, pinned=False), MULTI_NODE),
    "1,000,000 containers, which do not fit": Demand(1_000_000, EACH, MULTI_NODE),
}


def cluster() -> tuple[list[AgentReport], dict[str, list[Resources]]]:
    """Agents of 64 CPUs and 8 GPUs each, and what 5,000 sessions of one to eight containers hold of them."""
    chance = random.Random(1)
    agents = [
        AgentReport(
            "agent%05d" % number,
            capacity=Capacity(
                64_000,
                512 * GIB,
                tuple(Gpu("GPU-%05d-%d" % (number, device), 4.0) for device in range(8)),
                tuple(range(64)),
            ),
        ).in_swarm("swarm")
        for number in range(AGENTS)
    ]
    booked: dict[str, list[Resources]] = {agent.name: [] for agent in agents}
    for _session in range(SESSIONS):
        agent = chance.choice(agents)
        free = free_of(agent, booked[agent.name])
        for _container in range(min(chance.randint(1, 8), free.room(EACH))):
            booked[agent.name].append(free.take(EACH))
    return agents, booked


def measure(demand: Demand, agents: list[AgentReport], booked: dict[str, list[Resources]]) -> tuple[float, str]:
    """Seconds of CPU (it waits for nothing) from reports and bookings to the answer, and the answer in short."""
    begun = time.process_time()
    free = {agent.name: free_of(agent, booked[agent.name]) for agent in agents}
    answer = place(demand, agents, free)
    seconds = time.process_time() - begun
    outcome = "on %d agents" % len(set(answer.agents)) if isinstance(answer, Placement) else "does not fit"
    return seconds, outcome


def main() -> int:
    agents, booked = cluster()
    held = sum(map(len, booked.values()))
    print("%d agents, %d sessions of %d containers running; budget %g s" % (AGENTS, SESSIONS, held, BUDGET))
    worst = 0.0
    for name, demand in DEMANDS.items():
        seconds, outcome = min(measure(demand, agents, booked) for _round in range(3))
        worst = max(worst, seconds)
        print("  %-40s %6.3f s  %5.2f of the budget  (%s)" % (name, seconds, seconds / BUDGET, outcome))
    return int(worst > BUDGET)


if __name__ == "__main__":
    sys.exit(main())
