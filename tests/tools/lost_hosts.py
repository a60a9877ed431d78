# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hosts that are lost under a session, for tests over three agents."""

from __future__ import annotations

import time
from typing import Any

from agents_fixtures import terminate_all
from agents_lab import NAMES, OTHER_PORT, Agents, Lab
from controller import LABEL, Done, Session

# The shortest time without an answer.
PATIENCE = 10
# The rules of an agent last until its host starts again; then a unit of systemd installs them, which these hosts do not have.
GUARD = "/usr/local/sbin/cluster-compute-overlay-guard"
SILENT = "SELECT name FROM agent WHERE silent IS NOT NULL"
THREE: dict[str, Any] = {
    "session_cluster_size": 3,
    "session_cpus": 1,
    "session_per_agent": 1,
    "session_lost_after": PATIENCE,
}


def bring_back(agents: Agents, lab: Lab) -> None:
    """Power all hosts on, let those join their Swarm again that a pass has removed, and restore the rules that a boot would restore."""
    off = [agent for agent in NAMES if lab.shell(agent, "docker info").code != 0]
    for agent in off:
        lab.power_on(agent)
    terminate_all(agents)
    nodes = lab.shell(NAMES[0], "docker node ls --format '{{.Hostname}} {{.Status}}'").text.splitlines()
    # A test that fails may leave the silence of an agent in the store.
    if off or not {f"{agent} Ready" for agent in NAMES} <= set(nodes) or agents.stored(SILENT):
        agents.play("schedule").check()
    for agent in NAMES:
        lab.start_engine(agent)
        # As the role: in a Swarm that was there before, it leaves the bridge of other services alone.
        lab.shell(agent, f"{GUARD} start {lab.port} {'gateway' if lab.port != OTHER_PORT else ''}").check()


def noticed(agents: Agents) -> str:
    """The text, on one line, of the pass that finds that an agent has not answered for long enough. The pass before it was the first without an answer."""
    agents.play("schedule").check()
    time.sleep(PATIENCE)
    return one_line(agents.play("schedule").check())


def one_line(done: Done) -> str:
    """The output, whose long lines Ansible breaks."""
    return " ".join(done.text.split())


def running(agents: Agents, name: str) -> dict[str, str]:
    """The agent of each container of a session that runs, by hostname, as the engines say: for a hundredth of what a list costs."""
    return agents.lab.placed(f"{LABEL}={Session(agents, name).id}")


def places(agents: Agents, name: str) -> dict[str, str]:
    """The agent of each running container of a session, by hostname, as the list of sessions shows it."""
    [row] = [one for one in agents.sessions() if one["name"] == name and one["state"] == "RUNNING"]
    return {one["hostname"]: one["agent"] for one in row["containers"] if one["state"] == "running"}
