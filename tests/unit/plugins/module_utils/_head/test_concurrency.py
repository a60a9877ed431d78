# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Several schedulers at once, and a reader beside them."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest
from samples import agent, context, request
from store_sessions import plan_of

from ansible_collections.cluster.compute.plugins.module_utils._agent.ssh.config_files import ssh_port
from ansible_collections.cluster.compute.plugins.module_utils._head.scheduler import launch
from ansible_collections.cluster.compute.plugins.module_utils._head.store import Store

FORK = multiprocessing.get_context("fork")
A = agent("a")
TRAIN = request(cluster_size=3)


def _schedule(folder: str, number: int) -> None:
    store = Store(folder)
    agents = [agent("a", cpus=4, gpus=["a-0", "a-1", "a-2", "a-3"]), agent("b", cpus=2, gpus=["b-0", "b-1"])]
    with store.transaction():
        launch(
            store, request(name="job-%02d" % number, gpus=1, cpu_pinning=True), context(*agents, now=1000.0 + number)
        )
    store.close()


def test_ten_at_once_for_room_for_six(tmp_path: Path) -> None:
    folder = str(tmp_path / "state")
    processes = [FORK.Process(target=_schedule, args=(folder, number)) for number in range(10)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0] * 10
    store = Store(folder)
    placed = [row.plan for row in store.live() if row.state == "PREPARING"]
    waiting = [row for row in store.live() if row.state == "PENDING"]
    store.close()
    assert (len(placed), len(waiting)) == (6, 4)
    assert sorted(plan.main.agent for plan in placed) == ["a"] * 4 + ["b"] * 2
    gpus = [gpu.id for plan in placed for gpu in plan.main.resources.gpus]
    assert len(set(gpus)) == len(gpus) == 6
    cpus = {(plan.main.agent, plan.main.resources.cpuset) for plan in placed}
    assert len(cpus) == 6
    assert len({plan.network.subnet for plan in placed}) == 6
    assert len({(plan.main.agent, ssh_port(plan).host_port) for plan in placed}) == 6


@pytest.mark.parametrize("has_store", [False, True])
def test_check_mode_decides_the_same_and_changes_nothing(tmp_path: Path, has_store: bool) -> None:
    folder = tmp_path / "state"
    if has_store:
        Store(str(folder)).close()
    before = {path.name: path.read_bytes() for path in folder.glob("*")}
    store = Store(str(folder), read_only=True)
    with store.transaction(keep=False):
        decision = launch(store, TRAIN, context(A))
        assert (decision.outcome, decision.is_new) == ("placed", True)
        assert len(plan_of(decision).containers) == 3
    store.close()
    assert {path.name: path.read_bytes() for path in folder.glob("*")} == before
    assert folder.exists() == has_store
