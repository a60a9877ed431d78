# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A user of a permitted data folder puts a link in its place after it was checked, and before the engine mounts it.

Needs an engine that was made an agent (playbooks/provision_agents.yml).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from ssh_lab import PREFIX, REFERENCE, Lab, agent_client, archive, make_plan

from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.client import Engine
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import Mount
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import ComputeError, StateError

OTHER = "another folder than the one that was checked is mounted at /data (policy of this site)"


@pytest.fixture(scope="module")
def client(engine_host: str) -> Any:
    return agent_client(engine_host)


class Pool:
    """A permitted folder, a session's folder in it, and a folder of the host that no session may have."""

    def __init__(self, base: Path) -> None:
        self.folder, self.own, self.away = base / "pool", base / "pool" / "alice", base / "pool" / "away"
        self.host = base / "host"
        self.own.mkdir(parents=True)
        self.host.mkdir()
        (self.host / "shadow").touch()

    def swap(self) -> None:
        self.own.rename(self.away)
        self.own.symlink_to(self.host)

    def swap_back(self) -> None:
        self.own.unlink()
        self.away.rename(self.own)


@pytest.fixture
def pool(tmp_path: Path) -> Pool:
    return Pool(tmp_path)


@pytest.fixture
def labs(client: Any, engine_host: str, tmp_path: Path, pool: Pool) -> Iterator[Callable[..., Lab]]:
    """Makes sessions of one container that mount the session's folder, and removes them after the test."""
    made: list[Lab] = []

    def make(image: str = REFERENCE) -> Lab:
        plan = make_plan(image, 1, mounts=[Mount(str(pool.own), "/data")], permitted_folders=[str(pool.folder)])
        made.append(Lab(plan, tmp_path / "artifacts", engine_host))
        return made[-1].create()

    yield make
    for lab in made:
        lab.remove()


def at_the_start(monkeypatch: pytest.MonkeyPatch, act: Callable[[], None]) -> None:
    """Do something after the check of the folders, right before the engine mounts them."""
    start = Engine.start

    def later(engine: Engine, identity: str, subject: str = "") -> None:
        act()
        start(engine, identity, subject)

    monkeypatch.setattr(Engine, "start", later)


def test_a_folder_that_is_replaced_after_its_check_reaches_no_program(
    labs: Callable[..., Lab], pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = labs()
    at_the_start(monkeypatch, pool.swap)
    with pytest.raises(ComputeError) as caught:
        lab.start_with_files()
    assert OTHER in caught.value.message
    assert lab.engine.logs(lab.plan.main.name).splitlines() == [f"cluster-compute: {OTHER}"]
    assert os.listdir(pool.host) == ["shadow"]


def test_each_start_checks_the_folders_again(
    labs: Callable[..., Lab], pool: Pool, monkeypatch: pytest.MonkeyPatch, client: Any
) -> None:
    lab = labs().keep()
    name = lab.plan.main.name
    lab.start_with_files()
    lab.reached().ssh("main1", "ls /data")
    client.stop(name, timeout=3)
    with monkeypatch.context() as patch:
        at_the_start(patch, pool.swap)
        with pytest.raises(ComputeError) as caught:
            lab.start_with_files()
    assert OTHER in caught.value.message

    with lab.engine.standard_input(name):  # as docker start, which sends nothing
        client.start(name)
    assert client.wait(name)["StatusCode"] == 1
    assert "the data folders were not checked" in lab.engine.logs(name, 1)

    with pytest.raises(ComputeError, match="must have no symbolic link below"):
        lab.start_with_files()
    pool.swap_back()
    lab.start_with_files()
    assert lab.reached().ssh("main1", "ls /data") == ""


def test_a_folder_that_is_replaced_all_the_time_is_mounted_or_nothing_is(
    labs: Callable[..., Lab], pool: Pool, client: Any
) -> None:
    lab, done = labs(), threading.Event()
    name = lab.plan.main.name

    def swap() -> None:
        while not done.is_set():
            pool.swap()
            pool.swap_back()

    swapping = threading.Thread(target=swap)
    swapping.start()
    ran = []
    try:
        for _attempt in range(8):
            with suppress(ComputeError):
                lab.start_with_files()
                ran.append(client.exec_start(client.exec_create(name, ["ls", "/data"], user="0:0")["Id"]))
            client.stop(name, timeout=1)
    finally:
        done.set()
        swapping.join()
    assert set(ran) <= {b""}


def test_files_of_a_container_are_handled_in_it(labs: Callable[..., Lab], pool: Pool, client: Any) -> None:
    """Root in the container has put a link in the place of a folder of the session, and a user another on the agent."""
    lab = labs()
    name, folder = lab.plan.main.name, "/etc/cluster-compute/run"
    lab.start_with_files()
    lab.engine.put_file(name, folder + "/go", b"1")
    assert lab.engine.read_file(name, folder + "/go") == b"1"
    assert lab.engine.read_file(name, folder + "/go", most=0) == b""
    assert lab.engine.read_file(name, folder) == b""
    (pool.host / "shadow").write_bytes(b"root")
    client.exec_start(
        client.exec_create(name, ["sh", "-c", f"mv {folder} /moved && ln -s /data {folder}"], user="0:0")["Id"]
    )
    pool.swap()
    lab.engine.put_file(name, folder + "/next", b"2")
    assert (sorted(os.listdir(pool.host)), os.listdir(pool.away)) == (["shadow"], ["next"])
    assert lab.engine.read_file(name, folder + "/next") == b"2"
    assert lab.engine.read_file(name, folder + "/shadow") is None


def test_an_image_whose_runtime_would_lie_in_a_data_folder_does_not_start(
    labs: Callable[..., Lab], client: Any
) -> None:
    image = PREFIX + "runtime-in-data"
    client.import_image_from_data(archive([("data", None, 0o755)], {"opt": "data"}), repository=image, tag="1")
    try:
        lab = labs(image + ":1")
        with pytest.raises(StateError, match="main1: /opt is a symbolic link in the image or the container"):
            lab.start_with_files()
        lab.remove()
    finally:
        client.remove_image(image + ":1", force=True)
