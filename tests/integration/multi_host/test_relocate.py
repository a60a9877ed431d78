# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host is powered off under a session: its containers are made again elsewhere, and nothing old stays when the host is back."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from agents_fixtures import terminate_all
from agents_lab import NAMES, Agents, Lab
from controller import Done, Session

REJECT = "INPUT -p tcp --dport 22 -j REJECT --reject-with tcp-reset"
# The shortest time without an answer.
PATIENCE = 10
THREE: dict[str, Any] = {
    "session_cluster_size": 3,
    "session_cluster_mode": "multi-node",
    "session_cpus": 1,
    "session_per_agent": 1,
    "session_lost_after": PATIENCE,
}


@pytest.fixture
def whole(agents: Agents, lab: Lab) -> Iterator[Lab]:
    """The lab. Afterwards, its hosts are on, and a pass lets those join their Swarm again that it has removed."""
    yield lab
    off = [agent for agent in NAMES if lab.shell(agent, "docker info").code != 0]
    for agent in off:
        lab.power_on(agent)
    terminate_all(agents)
    agents.play("schedule").check()
    for agent in NAMES:
        lab.start_engine(agent)


def noticed(agents: Agents) -> str:
    """The text, on one line, of the pass that finds that an agent has not answered for long enough. The pass before it was the first without an answer."""
    agents.play("schedule").check()
    time.sleep(PATIENCE)
    return one_line(agents.play("schedule").check())


def one_line(done: Done) -> str:
    """The output, whose long lines Ansible breaks."""
    return " ".join(done.text.split())


def facts(session: Session, host: str) -> str:
    """Host key, environment and address of a container, seen from main1."""
    return session.say(
        "main1", f"ssh {host} 'hostname; hostname -i; env | sort | grep -v ^SSH_'; ssh-keyscan -t ed25519 {host}"
    )


def places(agents: Agents, name: str) -> dict[str, str]:
    [row] = [one for one in agents.sessions() if one["name"] == name and one["state"] == "RUNNING"]
    return {one["hostname"]: one["agent"] for one in row["containers"] if one["state"] == "running"}


def test_a_sub_whose_host_is_powered_off_is_made_again_elsewhere(agents: Agents, whole: Lab) -> None:
    two = {**THREE, "session_per_agent": 2, "session_on_lost": "relocate"}
    session = agents.launched("moves", **two)
    before = places(agents, "moves")
    [lost] = set(before.values()) - {before["main1"]}
    moving = [host for host, agent in before.items() if agent == lost]
    known = {host: facts(session, host) for host in before}
    whole.power_off(lost)
    first = agents.play("schedule").check()
    assert "made again" not in first.text
    time.sleep(PATIENCE)
    moved = one_line(agents.play("schedule").check())
    assert f"in place of {lost}" in moved, moved
    after = places(agents, "moves")
    assert set(after) == set(before)
    assert lost not in after.values()
    assert {host: agent for host, agent in after.items() if host not in moving} == {
        host: agent for host, agent in before.items() if host not in moving
    }
    for host in before:
        assert session.say("main1", f"ssh -o BatchMode=yes {host} hostname 2>&1") == host
    assert {host: facts(session, host) for host in before} == known
    assert {one["hostname"]: one["agent"] for one in session.document["containers"]} == after
    assert "what it had stored in its own files is gone" in one_line(agents.play("sessions").check())

    whole.power_on(lost)
    assert whole.held(lost) != []
    assert f"{lost} is back" in one_line(agents.play("schedule").check())
    assert whole.held(lost) == []
    assert places(agents, "moves") == after
    assert session.say("main1", f"ssh {moving[0]} hostname") == moving[0]
    agents.terminate("moves").check()
    other = agents.launched("joined", **THREE)
    assert set(places(agents, "joined").values()) == set(NAMES), "the host is a node of the Swarm again"
    assert other.say("main1", "ssh sub1 hostname; ssh sub2 hostname").split() == ["sub1", "sub2"]
    agents.terminate("joined").check()
    assert agents.held() == {name: [] for name in NAMES}


def test_without_room_it_stays_and_says_why_and_continues_when_the_host_is_back(agents: Agents, whole: Lab) -> None:
    session = agents.launched("stays", **THREE, session_on_lost="relocate", session_on_failure="restart")
    before = places(agents, "stays")
    lost = next(agent for agent in before.values() if agent not in (NAMES[0], before["main1"]))
    whole.power_off(lost)
    noticed(agents)
    [row] = [one for one in agents.sessions() if one["name"] == "stays"]
    assert (row["state"], row["fenced"]) == ("RUNNING", [])
    assert f"not relocated: {lost} has not answered for 10 s" in row["reason"]
    whole.power_on(lost)
    agents.play("schedule").check()
    assert set(places(agents, "stays").values()) == set(NAMES)
    assert session.say("main1", "ssh sub1 hostname; ssh sub2 hostname").split() == ["sub1", "sub2"]


def test_a_session_ends_with_its_reason(agents: Agents, whole: Lab) -> None:
    agents.launched("ends", **THREE, session_on_lost="end")
    lost = NAMES[2]
    whole.power_off(lost)
    assert f"Session ends: TERMINATED (ended: agent lost: {lost} has not answered for 10 s" in noticed(agents)
    whole.power_on(lost)
    agents.play("schedule").check()
    assert agents.held() == {name: [] for name in NAMES}


def test_a_host_that_the_swarm_still_reaches_keeps_its_containers(agents: Agents, whole: Lab) -> None:
    """Only the controller is cut off: the containers run, so none is made a second time."""
    session = agents.launched("cutoff", **{**THREE, "session_per_agent": 2}, session_on_lost="relocate")
    before = places(agents, "cutoff")
    [lost] = set(before.values()) - {before["main1"]}
    whole.shell(lost, f"iptables -I {REJECT}; pkill -f 'sshd: [a]dmin'; true").check()
    try:
        text = noticed(agents)
        assert f"Session cutoff was not relocated: {lost} does not answer, but for the Swarm of" in text, text
        assert "its node is ready" in text
    finally:
        whole.shell(lost, f"iptables -D {REJECT}").check()
    agents.play("schedule").check()
    assert places(agents, "cutoff") == before
    assert session.say("main1", "ssh sub2 hostname") == "sub2"


def test_main1_moves_and_the_files_on_the_controller_follow(agents: Agents, whole: Lab) -> None:
    designated = {"session_agents": [NAMES[1], NAMES[2]], "session_cluster_size": 2}
    session = agents.launched("heads", **{**THREE, **designated}, session_on_lost="relocate")
    before, document = places(agents, "heads"), session.document
    whole.power_off(before["main1"])
    assert f"main1 made again on {NAMES[0]} in place of {before['main1']}" in noticed(agents)
    assert session.document["containers"][0] == {**document["containers"][0], "agent": NAMES[0]}
    assert session.say("main1", "hostname; ssh sub1 hostname").split() == ["main1", "sub1"]
    assert session.say("sub1", "ssh main1 hostname") == "main1"
