# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Playbooks that get a random signal at a random line of their output, for tests over three agents."""

from __future__ import annotations

import random
import signal
from typing import Any

from agents_lab import Agents
from controller import PATIENCE, ROOT
from playbook_runs import Ended, Interruption, run_watched

SIGNALS = ("KILL", "TERM", "INT")
# Lines of output, each the beginning of a task or the result of a host on it: a random one of them is the moment.
MOMENTS = {"cluster_session": 90, "terminate": 45}


class Countdown:
    """Matches the line with a given number."""

    def __init__(self, number: int) -> None:
        self.left = number

    def __call__(self, line: str) -> bool:
        self.left -= bool(line.strip())
        return self.left == 0


def broken_off(agents: Agents, rng: random.Random, playbook: str, **variables: Any) -> tuple[str, Ended]:
    """The signal, and the playbook as its user sees it."""
    what = rng.choice(SIGNALS)
    alone = rng.random() < 0.5
    moment = Countdown(rng.randint(1, MOMENTS[playbook]))
    interruption = Interruption(moment, getattr(signal, "SIG" + what), alone)
    command = agents.command(playbook, "-v", **variables)
    environment = {**agents.environment, "ANSIBLE_STDOUT_CALLBACK": "default"}
    return what, run_watched(command, PATIENCE, interruption, cwd=ROOT, env=environment)
