# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An elastic training of torchrun goes on through the loss of a container, on one agent and over three."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import example_images
import pytest
from agents_lab import Agents
from controller import Controller, Session, run

from ansible_collections.cluster.compute.plugins.module_utils._core.waiting import deadline_in, wait_until

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
