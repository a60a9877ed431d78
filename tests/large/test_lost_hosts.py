# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host is powered off under a session: no room for its containers, the end of the session, and main1 on it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from agents_lab import NAMES, Agents, Lab
from lost_hosts import THREE, bring_back, noticed, places


@pytest.fixture
def whole(agents: Agents, lab: Lab) -> Iterator[Lab]:
    """The lab, whose hosts are in one Swarm again afterwards."""
    yield lab
    bring_back(agents, lab)


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


def test_main1_moves_and_the_files_on_the_controller_follow(agents: Agents, whole: Lab) -> None:
    designated = {"session_agents": [NAMES[1], NAMES[2]], "session_cluster_size": 2}
    session = agents.launched("heads", **{**THREE, **designated}, session_on_lost="relocate")
    before, document = places(agents, "heads"), session.document
    whole.power_off(before["main1"])
    assert f"main1 made again on {NAMES[0]} in place of {before['main1']}" in noticed(agents)
    assert session.document["containers"][0] == {**document["containers"][0], "agent": NAMES[0]}
    assert session.say("main1", "hostname; ssh sub1 hostname").split() == ["main1", "sub1"]
    assert session.say("sub1", "ssh main1 hostname") == "main1"
