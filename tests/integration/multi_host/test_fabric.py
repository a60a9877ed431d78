# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sessions on a fabric: the interface of two hosts on another network of the outer engine."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from agents_lab import Agents, Lab
from controller import Session

WITH_FABRIC = ("agent1", "agent2")
WIDE = {
    "session_cluster_mode": "multi-node",
    "session_per_agent": 2,
    "session_cpus": 0.5,
    "session_memory": "256m",
    "session_fabric": True,
}
# Each other container answers by its name on the fabric, through the interface that the variables name; a hostname has one address.
REACHED = """
for other in %s; do
    address=$(getent ahostsv4 $other-fabric | head -n 1 | cut -d' ' -f1)
    ping -c 1 -w 5 $address >/dev/null && ssh $other-fabric echo '$BACKENDAI_CLUSTER_HOST' || echo no $other
    grep -q "^$address .* $GLOO_SOCKET_IFNAME$" /proc/net/arp || echo $other is elsewhere
done
ssh %s echo '$NCCL_SOCKET_IFNAME' "$NCCL_SOCKET_IFNAME"
getent ahostsv4 $(hostname) | cut -d' ' -f1 | sort -u | wc -l
"""


@pytest.fixture(scope="module")
def fabric(lab: Lab) -> Iterator[None]:
    """Two hosts with an interface on a network of their own, which the inventory names."""
    with lab.fabric(WITH_FABRIC):
        yield


def placement(session: Session) -> list[str]:
    return [container["agent"] for container in session.document["containers"]]


def check_members(session: Session, interface: str) -> None:
    """Every container reaches every other over the fabric."""
    hosts = [container["hostname"] for container in session.document["containers"]]
    for host in hosts:
        others = [other for other in hosts if other != host]
        found = session.say(host, REACHED % (" ".join(others), others[0])).splitlines()
        assert found == [*others, f"={interface} ={interface}", "1"], host


@pytest.mark.usefixtures("fabric")
def test_a_session_over_hosts_with_a_fabric(agents: Agents, lab: Lab) -> None:
    session = agents.launched("fast", session_cluster_size=3, **WIDE)
    assert set(placement(session)) == set(WITH_FABRIC)
    check_members(session, "eth2")

    waiting = agents.launch("second", "--check", session_cluster_size=3, **WIDE).check()
    reason = "agent1: its fabric is used by another session; agent2: its fabric is used by another session"
    shown = " ".join(waiting.text.split())
    assert f"Session second would wait: {reason}" in shown, shown
    assert "agent3 has no agent_fabric for session_fabric" in shown, shown

    last = session.document["containers"][-1]
    lab.shell(last["agent"], f"docker kill {agents.owner}.fast.{last['hostname']}").check()
    agents.launch("fast", session_cluster_size=3, **WIDE).check()
    check_members(session, "eth2")
    agents.launch("fast", session_cluster_size=4, **WIDE).check()
    assert sorted(placement(session)) == ["agent1", "agent1", "agent2", "agent2"]
    check_members(session, "eth2")

    agents.terminate("fast").check()
    assert not any(agents.held().values())
    networks = [lab.shell(agent, "docker network ls -q --filter driver=macvlan").check().text for agent in WITH_FABRIC]
    assert networks == ["", ""]


@pytest.mark.usefixtures("fabric")
def test_a_session_on_one_host_with_a_fabric(agents: Agents) -> None:
    session = agents.launched("near", session_cluster_size=2, **WIDE)
    assert len(set(placement(session))) == 1
    check_members(session, "eth1")
    agents.terminate("near").check()
    assert not any(agents.held().values())


@pytest.mark.usefixtures("fabric")
def test_a_session_waits_for_a_fabric_that_no_host_has(agents: Agents) -> None:
    strict = {"session_agents": ["agent3"], "session_agents_policy": "strict", "session_fabric": True}
    shown = " ".join(agents.launch("nowhere", "--check", **strict).check().text.split())
    assert "no host can hold this as they are: " in shown
    assert "agent3 has no agent_fabric for session_fabric" in shown


@pytest.mark.usefixtures("fabric")
def test_the_doctor_shows_which_pairs_have_the_fabric(agents: Agents) -> None:
    file = agents.folder / "findings.json"
    agents.play("check_agents", check_file=str(file), agent_check_seconds=0.5)
    found = {(one["check"], one["where"]): one["found"] for one in json.loads(file.read_text())["findings"]}
    link = ", 10 Gbit/s, MTU 1500"
    assert found["transport", "agent1 -> agent2"] == "TCP over the private network; TCP over session_fabric" + link
    assert found["fabric", "agent1"].endswith(link)
    assert found["transport", "agent1 -> agent3"] == "TCP over the private network; so do 1 more pairs"
    assert found["fabric", "agent3"] == "no agent_fabric"
