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
import signal
from concurrent.futures import ThreadPoolExecutor

from agents_lab import NAMES, Agents
from controller import ENDED, PATIENCE, ROOT
from playbook_runs import Ended, Interruption, run_watched

ROUNDS = int(os.environ.get("ROUNDS", "4"))
SEED = int(os.environ.get("SEED", "1"))
PARALLEL = 3
SIGNALS = ("KILL", "TERM", "INT")
# Two containers that only two agents can hold: three such sessions fill the three agents.
SHAPE = {"session_cluster_size": 2, "session_cluster_mode": "multi-node", "session_cpus": 1, "session_memory": "64m"}
# Lines of output, each the beginning of a task or the result of a host on it: a random one of them is the moment.
MOMENTS = {"cluster_session": 90, "terminate": 45}


class Countdown:
    """Matches the line with a given number."""

    def __init__(self, number: int) -> None:
        self.left = number

    def __call__(self, line: str) -> bool:
        self.left -= bool(line.strip())
        return self.left == 0


def broken_off(agents: Agents, rng: random.Random, playbook: str, name: str) -> tuple[str, Ended]:
    """A playbook that gets a random signal at a random line, as its user sees it."""
    what = rng.choice(SIGNALS)
    alone = rng.random() < 0.5
    moment = Countdown(rng.randint(1, MOMENTS[playbook]))
    interruption = Interruption(moment, getattr(signal, "SIG" + what), alone)
    size = SHAPE if playbook == "cluster_session" else {}
    command = agents.command(playbook, "-v", session_name=name, **size)
    environment = {**agents.environment, "ANSIBLE_STDOUT_CALLBACK": "default"}
    return what, run_watched(command, PATIENCE, interruption, cwd=ROOT, env=environment)


def killed(agents: Agents, number: int) -> int:
    """One session: its launch is killed, then its end, or the launch that goes on. The end follows.

    Returns the number of signals that were sent: a command may have ended before its moment.
    """
    rng = random.Random(f"{SEED}-{number}")
    name = f"random-{number}"
    first, launch = broken_off(agents, rng, "cluster_session", name)
    goes_on = rng.random() < 0.5
    if not goes_on and rng.random() < 0.7:
        agents.launched(name, **SHAPE)
    second, ended = broken_off(agents, rng, "cluster_session" if goes_on else "terminate", name)
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
