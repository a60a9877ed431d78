# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sessions across hosts: the placement of containers and the network between them."""

from __future__ import annotations

import itertools
import json
import shlex
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from agents_lab import NAMES, Agents, Lab
from controller import PATIENCE, Session
from followed_logs import followed, wait_for

from ansible_collections.cluster.compute.plugins.module_utils._agent.examination import ESP

HOSTS = ["main1", "sub1", "sub2", "sub3", "sub4", "sub5"]
SIX = {
    "session_cluster_size": 6,
    "session_cluster_mode": "multi-node",
    "session_cpus": 1,
    "session_bootstrap": "echo hello",
}
SEALED = {"session_cluster_size": 3, "session_per_agent": 1}
# The options of the session's network, as soon as there is one.
OPTIONS = (
    "until docker network ls --quiet --filter label=cluster.compute.session.name=sealed | grep -q .; do sleep 0.2; done;"
    "docker network ls --quiet --filter label=cluster.compute.session.name=sealed | "
    "xargs docker network inspect --format '{{json .Options}}'"
)
PAIRS = "for a in {hosts}; do ssh $a 'for b in {hosts}; do ssh $b echo $BACKENDAI_CLUSTER_HOST \\$BACKENDAI_CLUSTER_HOST; done'; done"


@pytest.fixture(scope="module")
def six(agents: Agents) -> Session:
    """Two containers on each of three hosts."""
    return agents.launched("six-wide", **SIX)


def placement(session: Session) -> list[str]:
    return [container["agent"] for container in session.document["containers"]]


def test_six_containers_are_placed_two_on_each_host(six: Session) -> None:
    assert placement(six) == [name for name in NAMES for _ in range(2)]
    assert six.document["session"]["mode"] == "multi-node"
    assert six.document["network"]["driver"] == "overlay"


def test_every_container_reaches_every_other_by_name(six: Session) -> None:
    output = six.say("main1", PAIRS.format(hosts=" ".join(HOSTS))).splitlines()
    assert output == [f"{a} {b}" for a, b in itertools.product(HOSTS, HOSTS)]


@pytest.mark.parametrize("rank", range(6))
def test_each_container_is_as_planned(six: Session, rank: int) -> None:
    """Address, interface, MTU and environment, read from the controller through main1."""
    wanted = six.document["containers"][rank]
    script = (
        "echo $BACKENDAI_CLUSTER_HOST $BACKENDAI_CLUSTER_MODE $LOCAL_RANK $RANK;"
        "ip -4 -o address show eth0 | tr -s ' ' | cut -d ' ' -f 4 | cut -d / -f 1; cat /sys/class/net/eth0/mtu;"
        "ls /sys/class/net | tr '\\n' ' '"
    )
    output = six.say(HOSTS[rank], script).splitlines()
    assert output[0] == f"{HOSTS[rank]} multi-node {rank % 2} {rank}"
    assert output[1] == wanted["address"]
    assert output[2] == "1450"
    assert output[3].split() == ["eth0", "eth1", "lo"]


def test_a_full_packet_passes_and_a_larger_packet_does_not(six: Session) -> None:
    ping = "ping -M do -c 1 -W 2 -s {} {} >/dev/null 2>&1 && echo passes || echo does not"
    for name in ("sub1", "sub2", "sub5"):
        assert six.say("main1", ping.format(1450 - 28, name)) == "passes"
        assert six.say("main1", ping.format(1450 - 27, name)) == "does not"


def test_a_repeated_launch_changes_nothing(six: Session, agents: Agents) -> None:
    before = agents.held()
    assert agents.launch("six-wide", **SIX).check().changed == 0
    assert agents.held() == before


def test_a_restarted_container_keeps_its_address(six: Session, lab: Lab, agents: Agents) -> None:
    engine_name = f"{agents.owner}.six-wide.sub5"
    lab.shell("agent3", f"docker restart --time 1 {engine_name}").check()
    assert agents.launch("six-wide", **SIX).check().changed == 0
    address = six.document["containers"][5]["address"]
    assert address in six.say("sub5", "ip -4 -o address show eth0")
    assert six.say("main1", "ssh sub5 hostname") == "sub5"


def test_a_removed_container_is_created_again_as_it_was(six: Session, lab: Lab, agents: Agents) -> None:
    before = six.document["containers"][4]
    lab.shell("agent3", f"docker rm --force {agents.owner}.six-wide.sub4").check()
    listed = next(row for row in agents.sessions() if row["name"] == "six-wide")
    assert listed["degraded"] == ["sub4"]
    agents.launch("six-wide", **SIX).check()
    assert six.document["containers"][4] == before
    assert six.say("sub4", "ssh main1 ssh sub4 hostname") == "sub4"


def test_logs_are_followed_on_all_hosts_until_a_termination_that_leaves_nothing(
    six: Session, agents: Agents, tmp_path: Path
) -> None:
    path = tmp_path / "log"
    with followed(agents, six.name, path) as following:
        for host in HOSTS:
            wait_for(path, f"{host}: hello\n")
        agents.terminate("six-wide").check()
        assert following.wait(PATIENCE) == 0
    assert agents.held() == {name: [] for name in NAMES}


def test_a_limit_for_each_agent_puts_every_container_on_a_host_of_its_own(agents: Agents, lab: Lab) -> None:
    apart = {"session_cluster_size": 3, "session_per_agent": 1}
    eligible = {"agent_schedulable": "{{ inventory_hostname != 'agent3' }}"}
    drained = agents.launch("apart", "--check", **apart, **eligible).check().text
    # Ansible breaks long lines.
    assert "session_per_agent: 1 needs 3 agents, 2 are eligible; agent3 is not schedulable" in " ".join(drained.split())
    planned = agents.launch("apart", "--check", **apart).check().text
    assert "would be launched (cluster session, multi-node)" in planned
    session = agents.launched("apart", **apart)
    assert placement(session) == list(NAMES)
    lab.shell("agent3", f"docker rm --force {agents.owner}.apart.sub2").check()
    assert "sub2 brought back" in agents.launch("apart", **apart).check().text
    assert placement(session) == list(NAMES)
    assert session.say("main1", "ssh sub2 hostname") == "sub2"
    agents.terminate("apart").check()


def test_an_encrypted_network_carries_all_traffic_or_the_launch_fails(agents: Agents, lab: Lab) -> None:
    """A kernel without ESP drops what an encrypted network should carry, so main1 reaches no sub."""
    with ThreadPoolExecutor(1) as thread:
        options = thread.submit(lab.shell, "agent1", OPTIONS)
        done = agents.launch("sealed", **SEALED, session_network_encrypted=True, session_verify_timeout=5)
        assert "encrypted" in json.loads(options.result().check().text)
    if "taken" in lab.shell("agent1", "unshare --net sh -c " + shlex.quote(ESP)).text:
        assert Session(agents, "sealed").say("main1", "ping -c 1 -W 2 sub2 >/dev/null && ssh sub2 hostname") == "sub2"
    else:
        assert "Session sealed was not launched: " in done.message
        assert "sub" in done.message
    agents.terminate("sealed").check()
    assert agents.held() == {name: [] for name in NAMES}


def test_a_session_that_the_agents_could_never_hold_waits_with_its_reason(agents: Agents) -> None:
    waits = agents.launch("too-large", **{**SIX, "session_cluster_size": 7}).check()
    shown = " ".join(waits.text.split())
    assert "Session too-large is PENDING: no host can hold this as they are: largest free when empty" in shown
    assert "together they hold 6 of 7 containers; add a host or ask for less." in shown
    agents.terminate("too-large").check()
    assert agents.held() == {name: [] for name in NAMES}
