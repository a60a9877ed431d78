# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hosts that are lost under a session, for tests over three agents."""

from __future__ import annotations

import time
from typing import Any

from agents_fixtures import terminate_all
from agents_lab import NAMES, Agents, Lab
from controller import Done

# The shortest time without an answer.
PATIENCE = 10
# The rules of an agent, which last until its host starts again.
RULES = "iptables --table mangle --list-rules CLUSTER-COMPUTE"
THREE: dict[str, Any] = {
    "session_cluster_size": 3,
    "session_cluster_mode": "multi-node",
    "session_cpus": 1,
    "session_per_agent": 1,
    "session_lost_after": PATIENCE,
}


def bring_back(agents: Agents, lab: Lab) -> None:
    """Power all hosts on, let those join their Swarm again that a pass has removed, and provision where a boot would restore rules."""
    for agent in NAMES:
        if lab.shell(agent, "docker info").code != 0:
            lab.power_on(agent)
    terminate_all(agents)
    agents.play("schedule").check()
    for agent in NAMES:
        lab.start_engine(agent)
    if booted := [agent for agent in NAMES if lab.shell(agent, RULES).code != 0]:
        agents.play("provision_agents", "--tags", "swarm", "--limit", ",".join(booted)).check()


def noticed(agents: Agents) -> str:
    """The text, on one line, of the pass that finds that an agent has not answered for long enough. The pass before it was the first without an answer."""
    agents.play("schedule").check()
    time.sleep(PATIENCE)
    return one_line(agents.play("schedule").check())


def one_line(done: Done) -> str:
    """The output, whose long lines Ansible breaks."""
    return " ".join(done.text.split())


def places(agents: Agents, name: str) -> dict[str, str]:
    [row] = [one for one in agents.sessions() if one["name"] == name and one["state"] == "RUNNING"]
    return {one["hostname"]: one["agent"] for one in row["containers"] if one["state"] == "running"}
