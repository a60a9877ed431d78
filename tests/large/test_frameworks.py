# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands of docs/frameworks.md: each framework finds the containers of a session, and computes over all of them.

Each runs on one agent, and on three over an overlay with one container each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import example_images
import pytest
import yaml
from agents_lab import NAMES, Agents
from controller import ROOT, Controller, Session, run

PATIENCE = 1800
SESSION = {
    "session_cluster_mode": "multi-node",
    "session_memory": "2g",
    "session_shm": "256m",
    "session_torchrun": "static",
    "session_launch_timeout": PATIENCE,
}
# Two containers on one agent, or one on each of three, which have the memory for one.
ONE = {"session_cluster_size": 2, "session_cpus": 0.9}
THREE = {"session_cluster_size": 3, "session_cpus": 0.6}
FETCH = (
    "python -c \"from deepspeed.launcher.runner import fetch_hostfile; print(dict(fetch_hostfile('/job/hostfile')))\""
)


@dataclass(frozen=True)
class Cluster:
    """A session, its containers in the order of their ranks, and the sum of the numbers 1 to N over N containers."""

    session: Session
    hosts: Sequence[str]

    @property
    def size(self) -> int:
        return len(self.hosts)

    @property
    def sum(self) -> int:
        return self.size * (self.size + 1) // 2

    @property
    def slots(self) -> list[tuple[str, int]]:
        return [(host, 1) for host in self.hosts]

    def output(self, command: str) -> list[str]:
        """The lines of the programs of a command on main1, sorted."""
        # DeepSpeed compiles a part of itself.
        text = run(["ssh", "-F", self.session.config, "main1", command], timeout=PATIENCE).check().text
        line = r"(?:^|: )((?:jax|lightning|accelerate|deepspeed): .*)$"
        found = [match[1] for match in re.finditer(line, text, re.MULTILINE)]
        assert len(found) == self.size, text
        return sorted(found)


@pytest.fixture(scope="module", params=["one", "three"])
def pool(
    request: pytest.FixtureRequest, engine_host: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Controller]:
    """A controller for one agent, then one for three."""
    if request.param == "three":
        yield request.getfixturevalue("agents")
        return
    with Controller(tmp_path_factory.mktemp("frameworks") / "own", engine_host) as made:
        yield made


def launch(pool: Controller, name: str, image: str, *arguments: str, **variables: Any) -> Session:
    """A session whose image is on the controller's engine; agents that lack it get a copy."""
    asked = {"session_name": name, "session_image": image, "session_launch_timeout": PATIENCE, **variables}
    run(pool.command("cluster_session", *arguments, **asked), cwd=ROOT, env=pool.environment, timeout=PATIENCE).check()
    session = Session(pool, name)
    agents = {container["agent"] for container in session.document["containers"]}
    assert agents == (set(NAMES) if isinstance(pool, Agents) else {"localhost"})
    return session


@pytest.fixture(scope="module")
def cluster(pool: Controller) -> Iterator[Cluster]:
    """Containers of the image of four frameworks."""
    image = example_images.build(pool.client, "frameworks")
    shape = THREE if isinstance(pool, Agents) else ONE
    session = launch(pool, "frameworks", image, **{**SESSION, **shape})
    yield Cluster(session, [container["hostname"] for container in session.document["containers"]])
    pool.terminate("frameworks").check()


def test_deepspeed_reads_the_hosts(cluster: Cluster) -> None:
    assert cluster.session.say("main1", FETCH).splitlines()[-1] == str(dict(cluster.slots))


def test_deepspeed_starts_its_processes_without_an_option(cluster: Cluster) -> None:
    assert cluster.output("deepspeed /usr/local/bin/deepspeed_sum.py") == [
        f"deepspeed: rank {rank} of {cluster.size} on {host}, sum {cluster.sum}"
        for rank, host in enumerate(cluster.hosts)
    ]


@pytest.mark.parametrize("command", ["mpirun jax_sum.py", "everywhere jax_sum.py"])
def test_jax_sums_over_all_processes(cluster: Cluster, command: str) -> None:
    """Without an argument under mpirun; with the three arguments from the session's variables otherwise."""
    assert cluster.output(command) == [
        f"jax: process {rank} of {cluster.size}, {cluster.size} devices, sum {cluster.sum}"
        for rank in range(cluster.size)
    ]


@pytest.mark.parametrize(
    ("command", "environment"),
    [
        ("everywhere torchrun /usr/local/bin/lightning_fit.py", "TorchElasticEnvironment"),
        ("everywhere 'LOCAL_RANK=0 lightning_fit.py'", "LightningEnvironment"),
    ],
)
def test_lightning_detects_its_environment(cluster: Cluster, command: str, environment: str) -> None:
    lines = cluster.output(command)
    for rank, (host, line) in enumerate(zip(cluster.hosts, lines, strict=True)):
        assert line.startswith(f"lightning: rank {rank} of {cluster.size} on {host} by {environment}: "), lines
    assert len({line.partition("y = ")[2] for line in lines}) == 1, "the ranks share the line"


@pytest.mark.parametrize("launcher", ["accelerate launch --cpu", "torchrun"])
def test_accelerate_sums_over_all_processes(cluster: Cluster, launcher: str) -> None:
    assert cluster.output(f"everywhere {launcher} /usr/local/bin/accelerate_sum.py") == [
        f"accelerate: process {rank} of {cluster.size} on {host}, MULTI_CPU, sum {cluster.sum}"
        for rank, host in enumerate(cluster.hosts)
    ]


@pytest.mark.parametrize("example", ["dask", "ray"])
def test_the_workers_are_the_subs(pool: Controller, example: str) -> None:
    settings = f"examples/{example}/session.yml"
    name = yaml.safe_load((ROOT / settings).read_text())["session_name"]
    # An agent has room for one container of this size.
    wide = {"session_cpus": 1.2} if isinstance(pool, Agents) else {}
    launch(pool, name, example_images.build(pool.client, example), "-e", f"@{settings}", **wide)
    logs = pool.play("session_logs", session_name=name).check().text
    assert "4203 primes below 40000, counted by sub1, sub2" in logs
    pool.terminate(name).check()
