# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A running session over an overlay grows onto another host and leaves it again; one on a bridge is refused."""

from __future__ import annotations

from agents_lab import Agents
from begun import begun
from controller import Session

PAIRS = (
    "for a in {hosts}; do ssh $a 'echo $BACKENDAI_CLUSTER_SIZE; "
    "for b in {hosts}; do ssh $b echo $BACKENDAI_CLUSTER_HOST \\$BACKENDAI_CLUSTER_HOST; done'; done"
)


def placement(session: Session) -> list[str]:
    return [container["agent"] for container in session.document["containers"]]


def check_members(session: Session, size: int) -> None:
    """Every container reaches every other by its name, and each login knows the size."""
    hosts = ["main1", *(f"sub{index}" for index in range(1, size))]
    output = session.say("main1", PAIRS.format(hosts=" ".join(hosts))).splitlines()
    assert output == [line for a in hosts for line in (str(size), *(f"{a} {b}" for b in hosts))]


def test_three_five_two_over_hosts(agents: Agents) -> None:
    wanted = {"session_cluster_mode": "multi-node", "session_per_agent": 2, "session_cpus": 0.5}
    session = agents.launched("grows-wide", session_cluster_size=3, **wanted)
    assert len(set(placement(session))) == 2
    hosts = ["main1", "sub1", "sub2"]
    before, began, began_two = placement(session), begun(session, hosts), begun(session, hosts[:2])

    grown = agents.launch("grows-wide", session_cluster_size=5, **wanted).check()
    assert "Session grows-wide: RUNNING, sub3, sub4 added" in grown.text
    assert placement(session)[:3] == before
    assert len(set(placement(session))) == 3
    check_members(session, 5)
    assert begun(session, hosts) == began

    agents.launch("grows-wide", session_cluster_size=2, **wanted).check()
    assert placement(session) == before[:2]
    check_members(session, 2)
    assert begun(session, hosts[:2]) == began_two
    agents.terminate("grows-wide").check()


def test_a_session_on_one_host_does_not_leave_it(agents: Agents) -> None:
    wanted = {"session_cluster_mode": "multi-node", "session_cpus": 1}
    session = agents.launched("narrow", session_cluster_size=2, **wanted)
    [host] = set(placement(session))
    assert session.document["network"]["driver"] == "bridge"
    assert session.say("sub1", "echo $BACKENDAI_CLUSTER_MODE") == "single-node"
    refused = agents.launch("narrow", session_cluster_size=9, **wanted)
    assert refused.code
    assert "Session narrow keeps its 2 containers: no host can hold this as they are" in refused.message
    assert f" {host}: needs " in refused.message
    assert f"Its network is a bridge, which ends at {host}" in refused.message
    check_members(session, 2)
    agents.terminate("narrow").check()
