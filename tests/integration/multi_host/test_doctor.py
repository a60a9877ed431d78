# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The doctor over three agents: each fault of the network between them has its own line, and nothing is left of the check."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from agents_lab import NAMES, Agents, Lab
from controller import Session

SLOW = "tc qdisc add dev eth0 root tbf rate 20mbit burst 32k latency 50ms"
# The first byte after the headers of IP and UDP: flags, of which every packet of an overlay has the one that names a network.
# The check of the port sends none.
IN_NETWORK = "28>>24&0xff=0x08"
LEFT = "docker ps --all --quiet --filter label=cluster.compute.check; docker network ls --quiet --filter label=cluster.compute.check"


@pytest.fixture
def mended(lab: Lab) -> Iterator[Lab]:
    """The lab, whose network works again after the test."""
    yield lab
    for agent in NAMES:
        lab.shell(agent, "tc qdisc del dev eth0 root; iptables -F INPUT")


def address(lab: Lab, agent: str) -> str:
    return lab.shell(agent, "hostname -i").check().text.strip()


def check(agents: Agents, **variables: Any) -> dict[str, Any]:
    """The document of a check. Whatever it finds, nothing of it is left on any agent."""
    file = agents.folder / "findings.json"
    done = agents.play("check_agents", check_file=str(file), **{"agent_check_seconds": 0.5, **variables})
    document: dict[str, Any] = json.loads(file.read_text())
    assert done.code == (0 if document["fit"] else 2), done.text
    assert {agent: agents.lab.shell(agent, LEFT).text for agent in NAMES} == dict.fromkeys(NAMES, "")
    return document


def findings(document: dict[str, Any], *checks: str) -> list[tuple[str, str, str]]:
    return [(one["status"], one["check"], one["where"]) for one in document["findings"] if one["check"] in checks]


def test_a_slow_agent_is_named_and_every_link_of_the_ring_is_measured(mended: Lab, agents: Agents) -> None:
    mended.shell("agent3", SLOW).check()
    document = check(agents)
    assert document["fit"] is True
    assert findings(document, "overlay names", "overlay", "overlay mtu") == [
        ("ok", "overlay names", "all pairs"),
        ("ok", "overlay", "all pairs"),
        ("ok", "overlay mtu", "all pairs"),
    ]
    # On a busy machine another pair may be slow, too.
    assert [
        where for status, _check, where in findings(document, "throughput") if status == "warn" and "agent3" in where
    ]
    rates = {(one["from"], one["to"]): one["mbits"] for one in document["overlay"]}
    assert len(rates) == 6
    assert all(one["milliseconds"] for one in document["overlay"])
    assert {pair for pair, rate in rates.items() if rate} <= {*zip(NAMES, NAMES[1:] + NAMES[:1], strict=True)}
    assert 0 < rates["agent3", "agent1"] < 40


def test_a_closed_port_and_packets_lost_after_it_are_told_apart(mended: Lab, agents: Agents) -> None:
    drop = f"iptables -A INPUT -p udp --dport {mended.port} -s %s %s -j DROP"
    mended.shell("agent3", drop % (address(mended, "agent2"), "")).check()
    mended.shell("agent3", drop % (address(mended, "agent1"), f"-m u32 --u32 '{IN_NETWORK}'")).check()
    document = check(agents, agent_check_seconds=0)
    failed = [one for one in document["findings"] if one["status"] == "fail"]
    assert {(one["check"], one["where"]) for one in failed} == {
        (f"udp {mended.port}", "agent2 -> agent3"),
        ("overlay", "agent1 -> agent3"),
        ("overlay", "agent2 -> agent3"),
    }
    found = {one["where"]: one["found"] for one in failed if one["check"] == "overlay"}
    assert f"though UDP {mended.port} is open" in found["agent1 -> agent3"]
    assert f"though UDP {mended.port} is open" not in found["agent2 -> agent3"]
    assert findings(document, "throughput", "path mtu") == [("ok", "path mtu", "all pairs")]

    # A launch with a preflight uses this result: two containers of two CPUs need two of the three agents.
    wanted = {"session_cluster_size": 2, "session_cluster_mode": "multi-node", "session_cpus": 2}
    done = agents.launch("careful", session_preflight=True, **wanted).check()
    assert "agent3 is avoided" in done.text
    assert f"udp {mended.port} on agent2 -> agent3" in done.text
    assert {one["agent"] for one in Session(agents, "careful").document["containers"]} == {"agent1", "agent2"}
    agents.terminate("careful").check()
