# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A session on the network of three hosts: one container on each, names, ports, growth, repair, and its end."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from agents_fixtures import terminate_all
from agents_lab import NAMES, Agents, Lab
from controller import Session

WIDE = {"session_network": "host", "session_cluster_mode": "multi-node", "session_cpus": 0.5, "session_memory": "128m"}
LISTEN = "python3 -c 'import socket, time; s = socket.create_server((\"0.0.0.0\", %d)); time.sleep(600)'"
# A server of the user, which answers one connection with the name of its container.
SERVE = """nohup python3 -c '
import os, socket
with socket.create_server(("0.0.0.0", int(os.environ["MASTER_PORT"]))) as server:
    server.accept()[0].sendall(socket.gethostname().encode())
' >/dev/null 2>&1 </dev/null &"""
ASK = (
    "import os, socket; print(socket.create_connection(('sub1', int(os.environ['MASTER_PORT'])), 20).recv(9).decode())"
)
# Every other container, and the address and the variables of this one.
REACHED = """
for other in %s; do ssh $other hostname; done
ip -o -4 addr show "$GLOO_SOCKET_IFNAME" | grep -o ' %s/' | tr -d ' /'
getent hosts $(hostname) | cut -d' ' -f1
"""


@pytest.fixture(scope="module")
def taken(agents: Agents, lab: Lab) -> Iterator[int]:
    """The first port of the range, at which another program listens on the last host alone."""
    assert (
        lab.shell(
            NAMES[2], f"setsid nohup {LISTEN % agents.ports} >/dev/null 2>&1 </dev/null & echo $! >/run/taken"
        ).code
        == 0
    )
    yield agents.ports
    lab.shell(NAMES[2], "kill $(cat /run/taken)")


@pytest.fixture(scope="module")
def wide(agents: Agents, taken: int) -> Iterator[Session]:
    """A session of two, which has become one of three."""
    agents.launched("wide", session_cluster_size=2, session_agents=[*NAMES[1:]], **WIDE)
    agents.launch("wide", session_cluster_size=3, session_agents=[*NAMES[1:]], **WIDE).check()
    yield Session(agents, "wide")
    terminate_all(agents)


def check_members(session: Session) -> None:
    """Every container reaches every other by its name, and has the address of its host."""
    members = {one["hostname"]: one["address"] for one in session.document["containers"]}
    for host, address in members.items():
        others = [other for other in members if other != host]
        found = session.say(host, REACHED % (" ".join(others), address.replace(".", "\\."))).split()
        assert found == [*others, address, address], host


def test_each_container_is_on_a_host_of_its_own(wide: Session, agents: Agents, lab: Lab, taken: int) -> None:
    containers = wide.document["containers"]
    assert sorted(one["agent"] for one in containers) == sorted(NAMES)
    assert [one["address"] for one in containers] == [lab.address(one["agent"]) for one in containers]
    check_members(wide)
    port, master = wide.document["apps"][0]["port"], int(wide.say("sub1", "echo $MASTER_PORT"))
    assert taken not in (port, master)
    again = agents.launch("wide", session_cluster_size=3, session_agents=[*NAMES[1:]], **WIDE).check()
    assert again.changed == 0
    for agent in NAMES:
        assert lab.shell(agent, "docker network ls -q --filter label=cluster.compute.session").text == ""


def test_programs_reach_each_other_at_the_planned_port(wide: Session) -> None:
    cluster = json.loads(wide.say("sub2", "echo $TF_CONFIG"))["cluster"]["worker"]
    master = wide.say("main1", "echo $MASTER_PORT")
    assert cluster == [f"{name}:{master}" for name in ("main1", "sub1", "sub2")]
    wide.say("sub1", SERVE)
    assert wide.say("main1", f'python3 -c "{ASK}"') == "sub1"


def test_a_container_that_was_killed_is_repaired(wide: Session, agents: Agents, lab: Lab) -> None:
    last = wide.document["containers"][-1]
    port = wide.document["apps"][0]["port"]
    lab.shell(last["agent"], f"docker kill {agents.owner}.wide.{last['hostname']}").check()
    agents.launch("wide", session_cluster_size=3, session_agents=[*NAMES[1:]], **WIDE).check()
    assert wide.document["apps"][0]["port"] == port
    check_members(wide)


def test_the_planned_port_must_be_free_where_a_session_grows(wide: Session, agents: Agents, lab: Lab) -> None:
    agents.launch("wide", session_cluster_size=2, session_agents=[*NAMES[1:]], **WIDE).check()
    agent = next(name for name in NAMES if name not in [one["agent"] for one in wide.document["containers"]])
    port = wide.document["apps"][0]["port"]
    lab.shell(agent, f"setsid nohup {LISTEN % port} >/dev/null 2>&1 </dev/null & echo $! >/run/grown").check()
    try:
        refused = agents.launch("wide", session_cluster_size=3, session_agents=[*NAMES[1:]], **WIDE)
    finally:
        lab.shell(agent, "kill $(cat /run/grown)")
    assert refused.code
    assert f"{agent} uses port {port}, at which the containers of the session listen" in refused.message
    assert len(wide.document["containers"]) == 2


def test_the_end_leaves_nothing(wide: Session, agents: Agents, lab: Lab) -> None:
    port = "%04X" % wide.document["apps"][0]["port"]
    agents.terminate("wide").check()
    assert not any(agents.held().values())
    for agent in NAMES:
        assert f":{port} " not in lab.shell(agent, "cat /proc/net/tcp | grep ' 0A '").text
