# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A step of one host fails after containers run on all hosts: all of them are removed, and a pass over the queue goes on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from agents_lab import NAMES, Agents, Lab

# One container fills a host.
THREE = {
    "session_cluster_size": 3,
    "session_cluster_mode": "multi-node",
    "session_cpus": 2,
    "session_verify_timeout": 10,
}
# The two hosts that show the same as three.
PAIR = {**THREE, "session_cluster_size": 2, "session_agents": ["agent1", "agent3"], "session_agents_policy": "strict"}
# No packet of an overlay network arrives at agent3, so main1 does not reach the container there.
BLOCK = "iptables -w {} INPUT -p udp --dport {} -j DROP"
NOTHING: dict[str, list[str]] = {name: [] for name in NAMES}


@pytest.fixture
def blocked(lab: Lab) -> Iterator[Lab]:
    """The lab, in which the test may block agent3."""
    yield lab
    lab.shell("agent3", BLOCK.format("-D", lab.port) + "; true")


def reason(agents: Agents, name: str) -> str:
    """Why the newest session of this name failed."""
    state, found = next((state, reason) for row, state, _lease, reason in reversed(agents.rows()) if row == name)
    assert state == "ERROR"
    return found


def test_containers_are_removed_from_all_hosts(agents: Agents, blocked: Lab) -> None:
    blocked.shell("agent3", BLOCK.format("-I", blocked.port)).check()
    done = agents.launch("unproved", **THREE)
    assert done.code != 0, done.text
    assert "does not accept ssh connections" in done.message
    assert "does not accept ssh connections" in reason(agents, "unproved")
    assert agents.held() == NOTHING


def test_a_pass_goes_on_to_the_next_session_of_the_queue(agents: Agents, blocked: Lab) -> None:
    names = ("first", "second")
    for name in names:
        agents.launch(name, agent_schedulable=False, **PAIR).check()
    blocked.shell("agent3", BLOCK.format("-I", blocked.port)).check()
    done = agents.play("schedule")
    assert done.code != 0, done.text
    for name in names:
        # Each has its own reason: all of its containers ran before the proof.
        assert reason(agents, name).count("does not accept ssh connections") == 1
    assert agents.held() == NOTHING
