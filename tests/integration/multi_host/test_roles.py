# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Roles over three agents, each in its own resource group: names, TensorFlow's cluster, apps, another size in the middle, a repair, an end."""

from __future__ import annotations

import json
import re
from typing import Any

from agents_lab import NAMES, Agents, Lab
from app_pages import get, opened
from begun import begun
from controller import Done, Session
from lost_hosts import running

GROUPS = {
    "agent_resource_group": "{{ {'agent1': 'cpu', 'agent2': ['cpu', 'gpu'], 'agent3': 'gpu'}[inventory_hostname] }}"
}
ASK = 'import socket; socket.create_connection(("ps1", 12345), 10)'
# One login into each container shows all that it knows, and reaches every other from there.
LOOK = """
for a in {hosts}; do ssh $a '
    cut -d" " -f1 /etc/mpi/hostfile | xargs; xargs </etc/cluster-compute/hostnames; echo "$TF_CONFIG"
    for b in {hosts}; do ssh $b echo $BACKENDAI_CLUSTER_HOST \\$BACKENDAI_CLUSTER_HOST; done'
done
"""
# It shows the hostname of its container.
PAGE = "mkdir -p {0}; cd {0}; hostname >index.html; exec python3 -m http.server $APP_PORT"


def app(name: str, port: int) -> list[dict[str, Any]]:
    return [{"name": name, "port": port, "command": PAGE.format(name), "ready": "/"}]


def roles(ps: int) -> list[dict[str, Any]]:
    """A head and parameter servers on agents without GPUs, and a worker for each agent with GPUs. Each role has another app."""
    server = {"command": "exec python3 -m http.server 12345", "ready": 12345}
    return [
        {"name": "main", "resource_group": "cpu"},
        {
            "name": "ps",
            "size": ps,
            "resource_group": "cpu",
            "cpus": 0.1,
            "per_agent": 1,
            "apps": app("shards", 6002),
            **server,
        },
        {
            "name": "worker",
            "size": 2,
            "resource_group": "gpu",
            "cpus": 0.3,
            "per_agent": 1,
            "apps": app("board", 6003),
            "after": ["ps"],
            "command": f"python3 -c '{ASK}'",
            "ready": "test -e /etc/cluster-compute/run/*/exit_code",
        },
    ]


def launch(agents: Agents, ps: int) -> Done:
    wanted: dict[str, Any] = {
        "session_cluster_mode": "multi-node",
        "session_resource_group": "cpu",
        "session_cpus": 0.2,
    }
    wanted["session_apps"] = app("overview", 6001)
    return agents.launch("spread", session_roles=roles(ps), **wanted, **GROUPS).check()


def check_members(session: Session, ps: int) -> None:
    """Every container reaches every other by its name, and knows the cluster of TensorFlow and the hosts that compute."""
    servers = [f"ps{index}" for index in range(1, ps + 1)]
    hosts = ["main1", *servers, "worker1", "worker2"]
    assert [one["hostname"] for one in session.document["containers"]] == hosts
    output = session.say("main1", LOOK.format(hosts=" ".join(hosts))).splitlines()
    parts = [output[start : start + 3 + len(hosts)] for start in range(0, len(output), 3 + len(hosts))]
    ports = [f"{host}:12345" for host in servers]
    cluster = {"chief": ["main1:12345"], "ps": ports, "worker": ["worker1:12345", "worker2:12345"]}
    assert json.loads(parts[-1][2]) == {"cluster": cluster, "task": {"type": "worker", "index": 1}}
    for host, (slots, names, _config, *reached) in zip(hosts, parts, strict=True):
        assert slots.split() == ["main1", "worker1", "worker2"]
        assert names.split() == hosts
        assert reached == [f"{host} {other}" for other in hosts]


def check_apps(agents: Agents, session: Session) -> None:
    """Each app answers in the first container of its role: that of main1 at a port of its agent, the others by SSH through main1."""
    [listed] = agents.sessions(session_name="spread")
    placed = {one["hostname"]: one["agent"] for one in listed["containers"] if one["state"] == "running"}
    found = {one["name"]: (one["agent"], bool(one["port"])) for one in listed["apps"]}
    hosts = {"overview": "main1", "shards": "ps1", "board": "worker1"}
    assert found == {name: (placed[host], host == "main1") for name, host in hosts.items()}
    for name, host in hosts.items():
        with opened(session, name) as url:
            assert get(url).strip() == host


def test_roles_over_agents_change_are_repaired_and_end(agents: Agents, lab: Lab) -> None:
    launch(agents, 1)
    session = Session(agents, "spread")
    before = running(agents, "spread")
    assert {before["worker1"], before["worker2"]} == {"agent2", "agent3"}
    assert {before["main1"], before["ps1"]} <= {"agent1", "agent2"}
    check_members(session, 1)
    check_apps(agents, session)
    began, began_main = begun(session, before), begun(session, ["main1"])

    assert "Session spread: RUNNING, ps2 added" in launch(agents, 2).text
    grown = running(agents, "spread")
    assert {host: grown[host] for host in before} == before
    assert {grown["ps1"], grown["ps2"]} == {"agent1", "agent2"}
    check_members(session, 2)
    assert begun(session, before) == began
    assert (
        session.say("worker2", 'echo "$RANK $BACKENDAI_CLUSTER_LOCAL_RANK $BACKENDAI_CLUSTER_REPLICAS"')
        == "2 4 main:1,ps:2,worker:2"
    )

    prefix = session.document["session"]["owner"] + ".spread."
    for host in ("ps2", "worker1"):
        lab.shell(grown[host], f"docker rm --force {prefix}{host}").check()
    text = launch(agents, 2).text
    assert re.search("RUNNING, (ps2, worker1|worker1, ps2) brought back", text), text
    assert running(agents, "spread") == grown
    check_apps(agents, session)
    assert session.say("worker1", "cat /etc/cluster-compute/run/*/exit_code") == "0"
    check_members(session, 2)

    assert "RUNNING, ps2 removed" in launch(agents, 1).text
    assert running(agents, "spread") == before
    check_members(session, 1)
    assert begun(session, ["main1"]) == began_main
    assert launch(agents, 1).changed == 0
    agents.terminate("spread").check()
    assert agents.held() == {name: [] for name in NAMES}
