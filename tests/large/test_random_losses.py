# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host is powered off at a random moment under a session that moves, also while a command changes the session, and comes back.

ROUNDS sets the number of losses, and SEED their moments.
"""

from __future__ import annotations

import faulthandler
import os
import random
import re
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from agents_lab import NAMES, Agents, Lab
from controller import ENDED, Done, Session
from lost_hosts import PATIENCE, bring_back, one_line, places

from ansible_collections.cluster.compute.plugins.module_utils._shared.waiting import deadline_in, wait_until

ROUNDS = int(os.environ.get("ROUNDS", "3"))
SEED = int(os.environ.get("SEED", "1"))
NAME = "wanders"
# Two hosts have room for four containers.
SHAPE = {
    "session_cluster_mode": "multi-node",
    "session_per_agent": 2,
    "session_cpus": 0.6,
    "session_lost_after": PATIENCE,
    "session_on_lost": "relocate",
}
# What a user does while the host is lost, with the most seconds until its power is cut.
MOVES = {"nothing": 1, "launch": 12, "scale": 12, "repair": 10, "end": 6}


@pytest.fixture
def whole(agents: Agents, lab: Lab) -> Iterator[Lab]:
    """The lab, whose hosts are in one Swarm again afterwards."""
    yield lab
    bring_back(agents, lab)


def changed(agents: Agents, move: str) -> Done | None:
    """The command of a user; it may fail, because a host is lost under it."""
    if move == "end":
        return agents.terminate(NAME)
    if move == "nothing":
        return None
    return agents.launch(NAME, session_cluster_size=4 if move == "scale" else 3, **SHAPE)


def identities(session: Session, hosts: list[str]) -> dict[str, str]:
    """Address and host key of each container, as main1 finds them by a login without a warning."""
    found = {}
    for host in hosts:
        login = session.say("main1", f"ssh -o BatchMode=yes {host} 'hostname; hostname -i' 2>&1").split()
        assert login[0] == host, login
        found[host] = " ".join([*login[1:], session.say("main1", f"ssh-keyscan -t ed25519 {host} 2>/dev/null")])
    return found


def is_running(agents: Agents) -> bool:
    return (NAME, "RUNNING") in agents.states()


def names(lines: list[str]) -> list[str]:
    """The names of containers in what an agent holds."""
    return [line.split()[1] for line in lines if re.search(rf"\.{NAME}\.[a-z]+\d+$", line)]


def check_moved(agents: Agents, lost: str) -> None:
    """Passes move all containers away from a lost host."""

    def has_moved() -> bool:
        agents.play("schedule").check()
        return not is_running(agents) or lost not in places(agents, NAME).values()

    assert wait_until(has_moved, deadline_in(120)), f"still on {lost}: {agents.rows()}"


def check_whole(agents: Agents, known: dict[str, str]) -> None:
    """A session that runs has each container once, with the address and the host key that it had; one that does not run has none."""
    held = {agent: names(lines) for agent, lines in agents.held().items()}
    where = places(agents, NAME) if is_running(agents) else {}
    expected = {agent: Counter(f"{agents.owner}.{NAME}.{h}" for h, a in where.items() if a == agent) for agent in NAMES}
    assert {agent: Counter(found) for agent, found in held.items()} == expected, agents.rows()
    if where:
        found = identities(Session(agents, NAME), list(where))
        assert len({text.split()[0] for text in found.values()}) == len(found), found
        assert {host: found[host] for host in known} == known


def lose_and_return(agents: Agents, lab: Lab, rng: random.Random) -> str:
    """One round. Returns what happened, in a line."""
    move = rng.choice(list(MOVES))
    known: dict[str, str] = {}
    candidates = list(NAMES[1:])
    if move != "launch":
        session = agents.launched(NAME, session_cluster_size=3, **SHAPE)
        where = places(agents, NAME)
        known = identities(session, list(where))
        candidates = [agent for agent in candidates if agent in where.values()]
        if move == "repair":
            host = rng.choice(list(where))
            lab.shell(where[host], f"docker kill {agents.owner}.{NAME}.{host}").check()
    lost, moment = rng.choice(candidates), rng.uniform(0, MOVES[move])
    with ThreadPoolExecutor(1) as threads:
        change = threads.submit(changed, agents, move)
        time.sleep(moment)
        lab.power_off(lost)
        done = change.result()
    agents.play("schedule").check()
    time.sleep(PATIENCE)
    check_moved(agents, lost)
    lab.power_on(lost)
    passed = one_line(agents.play("schedule").check())
    line = f"{move}, {lost} lost after {moment:.1f} s, code {done.code if done else '-'}, {agents.states()[-1][1]}"
    try:
        check_whole(agents, known if is_running(agents) else {})
    except AssertionError as error:
        raise AssertionError(f"{line}: {error}\n{done.text if done else ''}\n{passed}") from error
    agents.play("provision_agents").check()
    if agents.states()[-1][1] not in ENDED:
        agents.terminate(NAME).check()
    assert agents.held() == {name: [] for name in NAMES}, line
    return line


def test_a_host_that_is_lost_at_a_random_moment_leaves_nothing_twice(agents: Agents, whole: Lab) -> None:
    print(f"SEED={SEED}")
    # The test may run longer than faulthandler_timeout: each round has its own deadline.
    faulthandler.cancel_dump_traceback_later()
    for number in range(ROUNDS):
        print(f"round {number}:", lose_and_return(agents, whole, random.Random(f"{SEED}-{number}")), flush=True)
