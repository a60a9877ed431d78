# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Agents whose modules run in the oldest Python that agents may have, as far as this machine has it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from agents_lab import NAMES, Agents, Lab
from host_files import share_oldest_python

NAME = "oldest-python"
PYTHON = {"ansible_python_interpreter": f"/srv/shared/{NAME}/venv/bin/python"}
SDK = "/usr/lib/python3/dist-packages/docker"
# One container fills a host.
THREE = {"session_cluster_size": 3, "session_cluster_mode": "multi-node", "session_cpus": 2, "session_memory": "128m"}


@pytest.fixture
def version(lab: Lab) -> Iterator[str]:
    """The version of that Python on all hosts. The Python of the system does not find the SDK meanwhile."""
    try:
        found = share_oldest_python(lab, NAME)
        for agent in NAMES:
            lab.shell(agent, f"mv {SDK} {SDK}.hidden && ! /usr/bin/python3 -c 'import docker'").check()
        yield found
    finally:
        for agent in NAMES:
            lab.shell(agent, f"mv {SDK}.hidden {SDK}; rm -f /etc/ld.so.conf.d/{NAME}.conf; ldconfig")
        shutil.rmtree(lab.folder / "shared" / NAME, ignore_errors=True)


@pytest.mark.large
def test_modules_run_in_the_oldest_python_of_agents(agents: Agents, version: str) -> None:
    examined = agents.play("check_agents", agent_check_seconds=0.2, **PYTHON).check().text
    assert examined.count(f", Python {version}.") == len(NAMES)
    # Its output with all details shows no token either.
    look = "docker swarm join-token -q worker; docker swarm join-token -q manager"
    tokens = agents.lab.shell(NAMES[0], look).check().text.split()
    provision = agents.play("provision_agents", "-vvv", **PYTHON).check()
    assert provision.changed == 0
    assert len(tokens) == 2
    assert not any(token in provision.text for token in tokens)
    agents.launch("aged", **THREE, **PYTHON).check()
    assert agents.launch("aged", **THREE, **PYTHON).check().changed == 0
    assert "RUNNING" in agents.play("sessions", **PYTHON).check().text
    agents.lab.shell(NAMES[1], "docker kill $(docker ps --quiet --filter name=aged)").check()
    assert "brought back" in agents.launch("aged", **THREE, **PYTHON).check().text
    agents.play("terminate", session_name="aged", **PYTHON).check()
    assert agents.held() == {name: [] for name in NAMES}
