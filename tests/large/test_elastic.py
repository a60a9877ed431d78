# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An elastic training of torchrun goes on through the loss of a container, on one agent and over three, and follows the size of its session."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import example_images
import pytest
from agents_lab import Agents
from controller import Controller, Session, run

from ansible_collections.cluster.compute.plugins.module_utils._shared.waiting import deadline_in, wait_until

PROGRAM = (Path(__file__).parent / "programs" / "elastic.py").read_text()
BOOTSTRAP = f"cat >/tmp/elastic.py <<'END'\n{PROGRAM}\nEND\n"
TRIO: dict[str, Any] = {
    "session_cluster_size": 3,
    "session_cpus": "0.6",
    "session_memory": "768m",
    "session_shm": "256m",
    "session_bootstrap": BOOTSTRAP,
    "session_launch_timeout": 900,
}
ENDED = r"rank (\d) of (\d) ended: (\w+), error (\d+)$"
STEP = r"step (\d+) with \d ranks: (\w+)$"


# An agent of the lab has room for one container of this size.
WIDE = {"session_cpus": 1.2, "session_cluster_mode": "multi-node"}


@pytest.fixture(params=["controller", "agents"])
def pool(request: pytest.FixtureRequest) -> Controller:
    """A controller for one agent, then one for three."""
    made: Controller = request.getfixturevalue(request.param)
    return made


# Each container joins by itself: main1 with its command, the others with their bootstrap script.
JOIN = "torchrun --nnodes=2:5 --max-restarts=20 --rdzv-conf=last_call_timeout=5 /tmp/elastic.py 3000 0.04"
GROWING: dict[str, Any] = {
    **TRIO,
    "session_cluster_mode": "multi-node",
    "session_per_agent": 2,
    "session_torchrun": "elastic",
    "session_bootstrap": f'{BOOTSTRAP}[ "$BACKENDAI_CLUSTER_HOST" = main1 ] || setsid {JOIN} &\n',
    "session_command": JOIN,
}


def docker(session: Session, command: str, host: str) -> str:
    """The output of a docker command for a container, on its agent."""
    pool = session.controller
    agents = {container["hostname"]: container["agent"] for container in session.document["containers"]}
    line = f"docker {command} {pool.owner}.{session.name}.{host}"
    done = pool.lab.shell(agents[host], line) if isinstance(pool, Agents) else run(line.split())
    return done.check().text


def written(session: Session) -> str:
    """The log of main1."""
    return docker(session, "logs", "main1")


def test_an_elastic_training_survives_the_loss_of_a_container(pool: Controller) -> None:
    """A container is killed, the same command brings it back, it rejoins, and every step's result is that of an undisturbed run."""
    variables = {
        **TRIO,
        **(WIDE if isinstance(pool, Agents) else {}),
        "session_image": example_images.build(pool.client, "pytorch"),
        "session_torchrun": "elastic",
        "session_torchrun_nodes": "1:3",
        "session_command": "everywhere --rejoin 600 torchrun /tmp/elastic.py 1200 0.04",
    }
    session = pool.launched("elastic", **variables)
    assert wait_until(lambda: "step 200 with 3 ranks" in written(session), deadline_in(180)), written(session)
    docker(session, "kill", "sub1")
    pool.launch("elastic", **variables).check()
    repaired = written(session)
    assert wait_until(lambda: len(re.findall(ENDED, written(session), re.MULTILINE)) == 3, deadline_in(300)), written(
        session
    )
    pool.launch("elastic", session_wait_result=True, **variables).check()
    text = written(session)
    assert "everywhere: sub1 is lost" in text
    assert re.search(r"sub1: rank \d of 3 begins at step [1-9]", text), text
    assert "with 3 ranks" in text[len(repaired) :], text
    ended = re.findall(ENDED, text, re.MULTILINE)
    assert [size for _rank, size, _sum, _error in ended] == ["3"] * 3, text
    undisturbed = session.say("main1", "everywhere torchrun --rdzv-id=undisturbed /tmp/elastic.py 1200 0")
    assert {found[2:] for found in re.findall(ENDED, undisturbed, re.MULTILINE)} == {found[2:] for found in ended}
    steps = dict(re.findall(STEP, undisturbed, re.MULTILINE))
    assert len(set(steps.values())) == 12, undisturbed
    assert set(re.findall(STEP, text, re.MULTILINE)) <= steps.items(), text
    pool.terminate("elastic").check()


def check_logins(session: Session, hosts: list[str], to: str) -> None:
    for host in hosts:
        assert session.say(host, f"ssh -o BatchMode=yes {to} hostname 2>&1") == to


def trained(session: Session, hosts: list[str], size: int) -> bool:
    """Whether this many ranks have trained a hundred steps together, as the log of any container says."""
    return any(f" with {size} ranks: " in docker(session, "logs", host) for host in hosts)


def sized(agents: Agents, name: str, size: int, **variables: Any) -> float:
    """Launch a session of this size, or change it to this size; returns the seconds."""
    began = time.monotonic()
    image = example_images.build(agents.client, "pytorch")
    agents.launch(name, **{**GROWING, "session_image": image, "session_cluster_size": size, **variables}).check()
    return time.monotonic() - began


def test_a_training_follows_the_size_of_its_session(agents: Agents) -> None:
    """3, 5, then 2 containers on three agents: the result is that of an undisturbed run."""
    first, five = ["main1", "sub1", "sub2"], ["main1", "sub1", "sub2", "sub3", "sub4"]
    sized(agents, "sizes", 3)
    session = Session(agents, "sizes")
    assert wait_until(lambda: trained(session, first, 3), deadline_in(180)), written(session)
    launch = sized(agents, "pair", 2)
    agents.terminate("pair").check()
    growth = sized(agents, "sizes", 5)
    check_logins(session, five, "sub4")
    assert len({container["agent"] for container in session.document["containers"]}) == 3
    print(f"2 containers more: {growth:.1f} s; a launch of 2 containers: {launch:.1f} s")
    assert wait_until(lambda: trained(session, five, 5), deadline_in(180)), written(session)
    sized(agents, "sizes", 2)
    check_logins(session, five[:2], "sub1")
    assert wait_until(lambda: trained(session, five[:2], 2), deadline_in(180)), written(session)
    sized(agents, "sizes", 2, session_wait_result=True)
    text = written(session) + docker(session, "logs", "sub1")
    ended = re.findall(ENDED, text, re.MULTILINE)
    assert {rank for rank, *_result in ended} == {"0", "1"}, text
    undisturbed = session.say("main1", "everywhere torchrun --rdzv-id=undisturbed /tmp/elastic.py 3000 0")
    assert {found[1:] for found in re.findall(ENDED, undisturbed, re.MULTILINE)} == {found[1:] for found in ended}
    steps = dict(re.findall(STEP, undisturbed, re.MULTILINE))
    assert set(re.findall(STEP, text, re.MULTILINE)) <= steps.items(), text
    agents.terminate("sizes").check()
