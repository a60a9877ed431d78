# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All agents form a single Swarm, leave it cleanly, and never join or leave a Swarm of others."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from agents_lab import NAMES, Agents, Lab
from controller import Done

PLACE = "docker info --format '{{.Swarm.LocalNodeState}} {{.Swarm.ControlAvailable}}'"
GUARDED = "ls /usr/local/sbin/cluster-compute-overlay-guard || iptables -t mangle -S CLUSTER-COMPUTE"
# A busy engine ends such a request after 20 s, and the node leaves later.
LEAVE = "for attempt in 1 2 3; do docker swarm leave --force && break; sleep 5; done; docker info --format '{{.Swarm.LocalNodeState}}' | grep -qx inactive"
# The tasks of the role that a test is about.
SWARM = ("--tags", "swarm")
NODES = "docker node ls --format '{{.Hostname}} {{.Status}} {{.ManagerStatus}}'"


@pytest.fixture(scope="module")
def joined(lab: Lab, agents: Agents) -> Iterator[Lab]:
    """The lab; after the tests, all three hosts are in the same Swarm as before."""
    yield lab
    agents.play("provision_agents", *SWARM).check()
    assert nodes(lab) == ["agent1 Ready Leader", "agent2 Ready", "agent3 Ready"]


def nodes(lab: Lab) -> list[str]:
    return sorted(line.strip() for line in lab.shell("agent1", NODES).check().text.splitlines())


def recap(done: Done, agent: str) -> str:
    return next(line for line in done.text.splitlines() if line.startswith(agent) and "ok=" in line)


def test_the_last_manager_of_a_swarm_is_not_removed(joined: Lab, agents: Agents) -> None:
    done = agents.play("provision_agents", "--limit", "agent1", "-e", "agent_state=absent")
    assert done.code != 0
    assert "agent1 is the last manager of the Swarm of agent2, agent3" in done.text
    assert nodes(joined) == ["agent1 Ready Leader", "agent2 Ready", "agent3 Ready"]
    assert joined.shell(NAMES[0], PLACE).text.strip() == "active true"


def test_a_foreign_swarm_is_refused_by_name(joined: Lab, agents: Agents) -> None:
    joined.shell("agent3", f"{LEAVE} && docker swarm init").check()
    joined.shell("agent1", "docker node rm --force agent3").check()
    done = agents.play("provision_agents", *SWARM)
    assert done.code != 0
    assert "agent3 is in another Swarm" in done.text
    assert "failed=0" in recap(done, "agent1")
    assert "failed=0" in recap(done, "agent2")
    assert "failed=1" in recap(done, "agent3")
    assert joined.shell("agent3", PLACE).text.strip() == "active true"
    check = agents.play("check_agents", agent_check_seconds=0)
    assert check.code == 2
    assert "swarm on agent3: in another Swarm" in check.message
    assert "overlay        all pairs  2 of 2 arrive" in check.text
    joined.shell("agent3", LEAVE).check()


def test_a_manager_joins_and_leaves_and_its_token_is_never_shown(joined: Lab, agents: Agents) -> None:
    """Promoted first, then removed, then joined again, as a manager from the start."""
    wanted = {"agent_swarm_manager": True}
    hosts = ("--limit", "agent2")
    assert agents.play("provision_agents", *hosts, *SWARM, "-e", json.dumps(wanted)).check().changed == 1
    assert "agent2 Ready Reachable" in nodes(joined)
    assert agents.play("provision_agents", *hosts, *SWARM, "-e", json.dumps(wanted)).check().changed == 0

    agents.play("provision_agents", *hosts, "-e", "agent_state=absent").check()
    assert joined.shell("agent2", PLACE).text.strip() == "inactive false"
    assert joined.shell("agent2", GUARDED).code != 0
    assert nodes(joined)[0] == "agent1 Ready Leader"
    assert not any(line.startswith("agent2") for line in nodes(joined))

    done = agents.play("provision_agents", *hosts, "-vvv", "-e", json.dumps(wanted)).check()
    token = joined.shell("agent1", "docker swarm join-token -q manager").text.strip()
    assert token.startswith("SWMTKN")
    assert "SWMTKN" not in done.text
    assert "agent2 Ready Reachable" in nodes(joined)
    joined.shell("agent1", "docker node demote agent2").check()
