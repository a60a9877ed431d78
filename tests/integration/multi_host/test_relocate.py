# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host is powered off under a session: its containers are made again elsewhere, and nothing old stays when the host is back."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from agents_lab import NAMES, Agents, Lab
from controller import Session
from lost_hosts import PATIENCE, THREE, bring_back, noticed, one_line, running

REJECT = "INPUT -p tcp --dport 22 -j REJECT --reject-with tcp-reset"


@pytest.fixture
def whole(agents: Agents, lab: Lab) -> Iterator[Lab]:
    """The lab, whose hosts are in one Swarm again afterwards."""
    yield lab
    bring_back(agents, lab)


def facts(session: Session, host: str) -> str:
    """Host key, environment and address of a container, seen from main1."""
    return session.say(
        "main1", f"ssh {host} 'hostname; hostname -i; env | sort | grep -v ^SSH_'; ssh-keyscan -t ed25519 {host}"
    )


def test_a_sub_whose_host_is_powered_off_is_made_again_elsewhere(agents: Agents, whole: Lab) -> None:
    two = {**THREE, "session_per_agent": 2, "session_on_lost": "relocate"}
    session = agents.launched("moves", **two)
    before = running(agents, "moves")
    [lost] = set(before.values()) - {before["main1"]}
    moving = [host for host, agent in before.items() if agent == lost]
    known = {host: facts(session, host) for host in before}
    whole.power_off(lost)
    first = agents.play("schedule").check()
    assert "made again" not in first.text
    time.sleep(PATIENCE)
    moved = one_line(agents.play("schedule").check())
    assert f"in place of {lost}" in moved, moved
    after = running(agents, "moves")
    [listed] = agents.sessions(session_name="moves")
    assert {one["hostname"]: one["agent"] for one in listed["containers"] if one["state"] == "running"} == after
    assert "what it had stored in its own files is gone" in listed["reason"]
    assert set(after) == set(before)
    assert lost not in after.values()
    assert {host: agent for host, agent in after.items() if host not in moving} == {
        host: agent for host, agent in before.items() if host not in moving
    }
    logins = "; ".join(f"ssh -o BatchMode=yes {host} hostname 2>&1" for host in before)
    assert session.say("main1", logins).split() == [*before]
    assert {host: facts(session, host) for host in before} == known
    assert {one["hostname"]: one["agent"] for one in session.document["containers"]} == after

    whole.power_on(lost)
    assert whole.held(lost) != []
    assert f"{lost} is back" in one_line(agents.play("schedule").check())
    assert whole.held(lost) == []
    assert running(agents, "moves") == after
    assert ("moves", "RUNNING") in agents.states()
    assert session.say("main1", f"ssh {moving[0]} hostname") == moving[0]
    agents.terminate("moves").check()
    other = agents.launched("joined", **THREE)
    assert set(running(agents, "joined").values()) == set(NAMES), "the host is a node of the Swarm again"
    assert other.say("main1", "ssh sub1 hostname; ssh sub2 hostname").split() == ["sub1", "sub2"]
    agents.terminate("joined").check()
    assert agents.held() == {name: [] for name in NAMES}


def test_a_host_that_the_swarm_still_reaches_keeps_its_containers(agents: Agents, whole: Lab) -> None:
    """Only the controller is cut off: the containers run, so none is made a second time."""
    session = agents.launched("cutoff", **{**THREE, "session_per_agent": 2}, session_on_lost="relocate")
    before, held = running(agents, "cutoff"), agents.held()
    [lost] = set(before.values()) - {before["main1"]}
    whole.shell(lost, f"iptables -I {REJECT}; pkill -f 'sshd: [a]dmin'; true").check()
    try:
        text = noticed(agents)
        assert f"Session cutoff was not relocated: {lost} does not answer, but for the Swarm of" in text, text
        assert "its node is ready" in text
    finally:
        whole.shell(lost, f"iptables -D {REJECT}").check()
    agents.play("schedule").check()
    assert (running(agents, "cutoff"), agents.held()) == (before, held)
    assert ("cutoff", "RUNNING") in agents.states()
    assert session.say("main1", "ssh sub2 hostname") == "sub2"
