# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Launches and ends that are killed at random moments: the next command leaves nothing.

ROUNDS sets the number of kills, two for each session, and SEED the moments. Three sessions at a time, each over two of the three
agents.
"""

from __future__ import annotations

import os
import random
from concurrent.futures import ThreadPoolExecutor

from agents_lab import NAMES, Agents
from broken_off import broken_off
from controller import ENDED

ROUNDS = int(os.environ.get("ROUNDS", "4"))
SEED = int(os.environ.get("SEED", "1"))
PARALLEL = 3
# Two containers that only two agents can hold: three such sessions fill the three agents.
SHAPE = {"session_cluster_size": 2, "session_cluster_mode": "multi-node", "session_cpus": 1, "session_memory": "64m"}


def killed(agents: Agents, number: int) -> int:
    """One session: its launch is killed, then its end, or the launch that goes on. The end follows.

    Returns the number of signals that were sent: a command may have ended before its moment.
    """
    rng = random.Random(f"{SEED}-{number}")
    name = f"random-{number}"
    first, launch = broken_off(agents, rng, "cluster_session", session_name=name, **SHAPE)
    goes_on = rng.random() < 0.5
    if not goes_on and rng.random() < 0.7:
        agents.launched(name, **SHAPE)
    playbook, shape = ("cluster_session", SHAPE) if goes_on else ("terminate", {})
    second, ended = broken_off(agents, rng, playbook, session_name=name, **shape)
    agents.terminate(name).check()
    where = f"SEED={SEED} number {number}, {first}, then {second} after: {ended.text[-2000:]}"
    left = {agent: [line for line in lines if name in line] for agent, lines in agents.held().items()}
    assert not any(left.values()), f"{left} {where}"
    assert not (agents.artifacts / name).exists(), where
    live = [state for found, state in agents.states() if found == name and state not in ENDED]
    assert not live, f"{live} {where}"
    return launch.interrupted + ended.interrupted


def test_what_is_killed_at_a_random_moment_leaves_nothing(agents: Agents) -> None:
    with ThreadPoolExecutor(PARALLEL) as threads:
        results = [threads.submit(killed, agents, number) for number in range(ROUNDS // 2)]
    problems = [str(result.exception()) for result in results if result.exception()]
    assert not problems, "\n\n".join(problems)
    print(sum(result.result() for result in results), "commands were killed")
    assert agents.held() == {name: [] for name in NAMES}
    assert agents.kept() == {}
