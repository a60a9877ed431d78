# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An engine dies or a host is lost during a launch or later: all or nothing, and no leftovers."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from agents_fixtures import terminate_all
from agents_lab import NAMES, Agents, Lab
from controller import LABEL, Session, run

# Two containers on each of two hosts, so that a fault hits a launch that has more to do there; or one on each host.
FOUR = {"session_cluster_size": 4, "session_cluster_mode": "multi-node", "session_cpus": 1}
THREE = {**FOUR, "session_cluster_size": 3, "session_cpus": 2}
LABELLED = f"docker ps --quiet --filter label={LABEL}"
# The moment of the fault, as a condition on the host that it hits.
MOMENTS = {
    "created": f'[ -n "$({LABELLED} --all)" ]',
    "starting": f'[ -n "$({LABELLED})" ]',
}
NOTHING: dict[str, list[str]] = {name: [] for name in NAMES}
REJECT = "INPUT -p tcp --dport 22 -j REJECT --reject-with tcp-reset"
STORE = "/var/lib/cluster-compute"


def containers(held: list[str]) -> list[str]:
    """The containers only: a manager keeps an overlay network until the lost agent is back."""
    return [line for line in held if ".main" in line or ".sub" in line]


@pytest.fixture(autouse=True)
def no_session_stays(agents: Agents) -> Iterator[None]:
    """A test that fails leaves its session, which would take the room of the next. All hosts work again before (`whole`)."""
    yield
    terminate_all(agents)


# Five containers are on all hosts, so that two of them are cleaned.
@pytest.mark.parametrize(
    ("moment", "lost", "size"),
    [pytest.param("created", "agent2", 4, marks=pytest.mark.large), ("starting", "agent1", 5)],
)
def test_an_engine_that_dies_during_the_launch_undoes_it(
    moment: str, lost: str, size: int, agents: Agents, whole: Lab
) -> None:
    """The head's engine manages the Swarm: without it, the other engines cannot start containers either."""
    killer = whole.kill_engine(lost, MOMENTS[moment])
    done = agents.launch(f"dies-{moment}", **{**FOUR, "session_cluster_size": size})
    assert killer.wait(timeout=60) == 0
    assert done.code != 0, done.text
    assert re.findall(r"agent\d", done.message)[0] == lost, done.message
    assert [containers(whole.held(agent)) for agent in NAMES if agent != lost] == [[], []]
    state, reason = next(row[1::2] for row in agents.rows() if row[0] == f"dies-{moment}")
    assert state == "ERROR"
    assert lost in reason

    whole.start_engine(lost)
    assert agents.launch("after", session_cluster_size=1).check()
    agents.terminate("after").check()
    assert agents.held() == NOTHING


def test_a_host_that_is_lost_during_the_launch_undoes_it(agents: Agents, whole: Lab) -> None:
    """Its SSH port rejects connections as soon as it holds a container; its engine keeps running."""
    cut = f"until {MOMENTS['created']}; do sleep 0.1; done; iptables -I {REJECT}; pkill -f 'sshd: admin'; true"
    command = ["docker", "exec", "--detach", whole.container("agent2"), "sh", "-c", cut]
    run(command).check()
    try:
        done = agents.launch("gone", **FOUR)
        assert done.code != 0, done.text
        assert "agent2 cannot be reached" in done.message
        assert [containers(whole.held(agent)) for agent in ("agent1", "agent3")] == [[], []]
        assert len(containers(whole.held("agent2"))) == 2
    finally:
        whole.shell("agent2", f"iptables -D {REJECT}")
    agents.terminate("gone").check()
    assert agents.held() == NOTHING


def test_an_engine_that_dies_degrades_a_running_session(agents: Agents, whole: Lab) -> None:
    agents.launched("outlives", **THREE)
    assert whole.kill_engine("agent3").wait(timeout=60) == 0
    row = next(row for row in agents.sessions() if row["name"] == "outlives")
    assert row["state"] == "RUNNING"
    assert row["degraded"] == ["sub2"]
    refused = agents.launch("outlives", **THREE)
    assert refused.code != 0
    assert "agent3 cannot be reached" in refused.message
    ended = agents.terminate("outlives").check().text
    assert "not reached: agent3" in ended
    assert [containers(whole.held(agent)) for agent in NAMES[:2]] == [[], []]

    whole.start_engine("agent3")
    assert len(containers(whole.held("agent3"))) == 1
    agents.terminate("outlives").check()
    assert agents.held() == NOTHING


def test_an_agent_that_is_unreachable_for_a_while_does_not_end_the_wait(agents: Agents, whole: Lab) -> None:
    command = "until [ -e /tmp/go ]; do sleep 0.2; done"
    batch = {**THREE, "session_command": command, "session_wait_result": True, "session_terminate_when_done": True}
    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(agents.launch, "waits", **batch)
        until_running(agents, "waits")
        try:
            whole.shell("agent3", f"iptables -I {REJECT}; pkill -f 'sshd: [a]dmin'; true").check()
            time.sleep(25)  # longer than two rounds of questions
        finally:
            whole.shell("agent3", f"iptables -D {REJECT}").check()
        whole.shell("agent1", f"docker exec {agents.owner}.waits.main1 touch /tmp/go").check()
        done = waiting.result()
    assert done.code == 0, done.text
    assert "The wait goes on without an answer of agent3: agent3 cannot be reached" in done.text
    assert "Session waits: SUCCESS" in done.text
    assert agents.held() == NOTHING


def until_running(agents: Agents, name: str) -> None:
    deadline = time.monotonic() + 120
    while (name, "RUNNING") not in agents.states():
        assert time.monotonic() < deadline, f"{name} does not run"
        time.sleep(1)


# Saves its state when it receives TERM; that takes a moment.
PROGRAM = "trap 'sleep 1; touch ~/saved; exit' TERM; touch ~/ready; while :; do sleep 0.1; done"


def test_programs_save_their_state_when_an_engine_stops_and_the_session_is_repaired(agents: Agents, whole: Lab) -> None:
    session = agents.launched("repaired", **FOUR)
    assert [one["agent"] for one in session.document["containers"]] == ["agent1", "agent1", "agent2", "agent2"]
    session.ssh("sub3", "cat >program", said=PROGRAM + "\n").check()
    session.ssh("sub3", "setsid sh program >/dev/null 2>&1 </dev/null & until [ -e ready ]; do sleep 0.1; done").check()
    whole.stop_engine("agent2")
    whole.start_engine("agent2")
    agents.launch("repaired", **FOUR).check()
    assert "saved" in session.say("sub3", "ls").split()
    assert session.say("main1", "ssh sub3 ssh sub2 hostname") == "sub2"
    agents.terminate("repaired").check()
    assert agents.held() == NOTHING


def test_a_session_is_adopted_when_the_store_is_lost(agents: Agents, whole: Lab) -> None:
    """The labels of the containers are enough to list, repair and terminate it."""
    session: Session = agents.launched("adopted", **THREE)
    before = whole.shell("agent1", LABELLED).text
    whole.shell("agent1", f"rm -rf {STORE}/*").check()
    row = next(row for row in agents.sessions() if row["name"] == "adopted")
    assert (row["state"], row["degraded"], row["size"]) == ("RUNNING", [], 3)
    assert agents.launch("adopted", **THREE).check().changed <= 1
    assert whole.shell("agent1", LABELLED).text == before
    whole.shell("agent2", f"docker rm --force {agents.owner}.adopted.sub1").check()
    agents.launch("adopted", **THREE).check()
    assert session.say("main1", "ssh sub1 hostname") == "sub1"
    agents.terminate("adopted").check()
    assert agents.held() == NOTHING
