# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Horovod, compiled into the image of examples/horovod: the commands of docs/frameworks.md, on one agent and over three."""

from __future__ import annotations

import re
from collections.abc import Iterator

import example_images
import pytest
from agents_lab import NAMES, Agents
from controller import ROOT, Controller, Session, run

PATIENCE = 1200
# Three containers; an agent of the three has room for one.
SHAPE = {
    "session_cluster_size": 3,
    "session_cluster_mode": "multi-node",
    "session_cpus": 0.6,
    "session_memory": "1g",
    "session_launch_timeout": PATIENCE,
}
HOSTS = ("main1", "sub1", "sub2")


@pytest.fixture(scope="module")
def one(engine_host: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    with Controller(tmp_path_factory.mktemp("horovod") / "own", engine_host) as made:
        yield made


@pytest.fixture(scope="module", params=["one", "agents"])
def session(request: pytest.FixtureRequest) -> Iterator[Session]:
    """A session of one agent, then one over an overlay of three."""
    pool: Controller = request.getfixturevalue(request.param)
    image = example_images.build(pool.client, "horovod")
    apart = {"session_per_agent": 1} if isinstance(pool, Agents) else {}
    command = pool.command("cluster_session", session_name="horovod", session_image=image, **SHAPE, **apart)
    run(command, cwd=ROOT, env=pool.environment, timeout=PATIENCE).check()
    made = Session(pool, "horovod")
    assert len({container["agent"] for container in made.document["containers"]}) == (len(NAMES) if apart else 1)
    yield made
    pool.terminate("horovod").check()


@pytest.mark.parametrize(
    "hosts",
    [
        "-H $(discover_hosts | paste -sd,)",
        "--hostfile /job/hostfile",
        "--min-np 1 --max-np 3 --host-discovery-script discover_hosts",
    ],
    ids=["hosts", "hostfile", "elastic"],
)
def test_an_all_reduce_over_all_containers(session: Session, hosts: str) -> None:
    command = f"horovodrun -np 3 {hosts} horovod_sum.py"
    text = run(["ssh", "-F", session.config, "main1", command], timeout=PATIENCE).check().text
    found = re.findall(r"horovod: rank (\d) of 3 on (\w+), sum (\d+)$", text, re.MULTILINE)
    assert sorted(rank for rank, _host, _sum in found) == ["0", "1", "2"], text
    assert sorted(host for _rank, host, _sum in found) == sorted(HOSTS), text
    assert {total for _rank, _host, total in found} == {"6"}, text
