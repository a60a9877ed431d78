# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Agents whose modules run in the oldest Python that agents may have, as far as this machine has it."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from agents_lab import NAMES, Agents, Lab
from host_files import copy_oldest_python

FOLDER = "/opt/oldest-python"
PYTHON = {"ansible_python_interpreter": f"{FOLDER}/venv/bin/python"}
SDK = "/usr/lib/python3/dist-packages/docker"
SIX = {"session_cluster_size": 6, "session_cluster_mode": "multi-node", "session_cpus": 1, "session_memory": "128m"}


@pytest.fixture
def version(lab: Lab) -> Iterator[str]:
    """The version of that Python on all hosts. The Python of the system does not find the SDK meanwhile."""
    try:
        with ThreadPoolExecutor(len(NAMES)) as threads:
            (found,) = set(threads.map(lambda agent: copy_oldest_python(lab, agent, FOLDER), NAMES))
        for agent in NAMES:
            lab.shell(agent, f"mv {SDK} {SDK}.hidden && ! /usr/bin/python3 -c 'import docker'").check()
        yield found
    finally:
        for agent in NAMES:
            lab.shell(agent, f"mv {SDK}.hidden {SDK}; rm -r {FOLDER}")


def test_modules_run_in_the_oldest_python_of_agents(agents: Agents, version: str) -> None:
    examined = agents.play("check_agents", agent_check_seconds=0.2, **PYTHON).check().text
    assert examined.count(f", Python {version}.") == len(NAMES)
    provision = agents.play("provision_agents", **PYTHON).check()
    assert provision.changed == 0
    agents.launch("aged", **SIX, **PYTHON).check()
    assert agents.launch("aged", **SIX, **PYTHON).check().changed == 0
    assert "RUNNING" in agents.play("sessions", **PYTHON).check().text
    agents.lab.shell(NAMES[1], "docker kill $(docker ps --quiet --filter name=aged)").check()
    assert "brought back" in agents.launch("aged", **SIX, **PYTHON).check().text
    agents.play("terminate", session_name="aged", **PYTHON).check()
    assert agents.held() == {name: [] for name in NAMES}
