# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""AMD GPUs and RDMA devices: the kernel's folders, and the requests to the engine. No test has such hardware."""

from __future__ import annotations

import doctest
import os
import socket
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from engine_lab import Shape

from ansible_collections.cluster.compute.plugins.module_utils._agent.engine import device_nodes
from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.payloads import (
    AgentSettings,
    EngineLimits,
    container_body,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import Gpu
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import StateError

FIRST, SECOND = "AMD-0000:03:00.0", "AMD-0000:83:00.0"
NODES = {FIRST: "/dev/dri/renderD129", SECOND: "/dev/dri/renderD128"}
NVIDIA = "GPU-b1028956-cfa2-0990-bf4a-5da9abb51763"


def host(folder: Path, *cards: tuple[str, str, str], kfd: bool = True) -> tuple[str, str]:
    """The folders of a host whose cards have a node, an address and a vendor."""
    (folder / "dev").mkdir()
    if kfd:
        (folder / "dev/kfd").touch()
    for node, address, vendor in cards:
        device = folder / "devices" / address
        device.mkdir(parents=True)
        (device / "vendor").write_text(vendor + "\n")
        link = folder / "sys/class/drm" / node
        link.mkdir(parents=True)
        os.symlink(device, link / "device")
    return str(folder / "sys"), str(folder / "dev")


def test_the_gpus_of_amd_are_found_by_vendor_and_named_by_address(tmp_path: Path) -> None:
    folders = host(
        tmp_path,
        ("renderD128", "0000:83:00.0", "0x1002"),
        ("renderD129", "0000:03:00.0", "0x1002"),
        ("renderD130", "0000:04:00.0", "0x10de"),
        ("card0", "0000:05:00.0", "0x1002"),
    )
    assert device_nodes.amd_gpus(*folders) == NODES


def test_a_host_without_a_node_to_compute_through_has_none(tmp_path: Path) -> None:
    assert device_nodes.amd_gpus(*host(tmp_path, ("renderD128", "0000:83:00.0", "0x1002"), kfd=False)) == {}


def host_config(gpus: tuple[str, ...] = (), rdma: bool = False, limits: EngineLimits | None = None) -> dict[str, Any]:
    plan = Shape().plan()
    plan = replace(plan, session=replace(plan.session, rdma=rdma))
    first = plan.containers[0]
    container = replace(first, resources=replace(first.resources, gpus=tuple(Gpu(gpu) for gpu in gpus)))
    settings = AgentSettings(limits=limits or EngineLimits(), nodes=NODES)
    config: dict[str, Any] = container_body(plan, container, settings)["HostConfig"]
    return config


@pytest.mark.parametrize(
    ("gpus", "rdma", "paths"),
    [
        ((), False, []),
        ((FIRST,), False, ["/dev/kfd", "/dev/dri/renderD129"]),
        ((FIRST, SECOND), True, ["/dev/kfd", "/dev/dri/renderD129", "/dev/dri/renderD128", "/dev/infiniband"]),
        ((NVIDIA,), True, ["/dev/infiniband"]),
    ],
)
def test_a_container_gets_the_nodes_of_its_own_devices(gpus: tuple[str, ...], rdma: bool, paths: list[str]) -> None:
    devices = host_config(gpus, rdma).get("Devices", [])
    assert [device["PathOnHost"] for device in devices] == paths
    assert all(device["PathInContainer"] == device["PathOnHost"] for device in devices)


def test_each_vendor_gets_its_own_request() -> None:
    config = host_config((NVIDIA, FIRST))
    assert [request["DeviceIDs"] for request in config["DeviceRequests"]] == [[NVIDIA]]
    assert "DeviceRequests" not in host_config((FIRST,))


def test_a_gpu_that_is_gone_is_an_error() -> None:
    with pytest.raises(StateError, match="has no GPU AMD-0000:09:00\\.0 any more"):
        host_config(("AMD-0000:09:00.0",))


@pytest.mark.parametrize(("limit", "memlock"), [(0, -1), (8 << 20, 8 << 20), (-1, -1)])
def test_rdma_locks_as_much_memory_as_the_engine_can_give(limit: int, memlock: int) -> None:
    ulimits = {
        one["Name"]: one["Hard"] for one in host_config(rdma=True, limits=EngineLimits(memlock=limit))["Ulimits"]
    }
    assert ulimits["memlock"] == memlock


def test_the_groups_of_nodes(tmp_path: Path) -> None:
    node = tmp_path / "renderD128"
    node.touch()
    os.chown(node, -1, os.getgid())
    devices = [{"PathOnHost": str(node)}, {"PathOnHost": str(tmp_path / "gone")}, {"PathOnHost": "/dev/null"}]
    assert device_nodes.device_groups(devices) == sorted({os.getgid()} - {0})


def test_examples() -> None:
    assert doctest.testmod(device_nodes).failed == 0


@pytest.fixture
def pipes() -> Iterator[Path]:
    """A directory with a short path, because that of a socket has at most 107 characters."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder)


def listener(pipes: Path, kind: int) -> socket.socket:
    made = socket.socket(socket.AF_UNIX, kind)
    made.bind(str(pipes / "control"))
    return made


@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_SEQPACKET])
def test_an_mps_daemon_that_listens_is_not_disturbed(pipes: Path, kind: int) -> None:
    with listener(pipes, kind) as daemon:
        daemon.listen()
        daemon.setblocking(False)
        assert device_nodes.mps_fault(str(pipes), os.geteuid()) == ""
        with pytest.raises(BlockingIOError):
            daemon.accept()
    assert "Connection refused" in device_nodes.mps_fault(str(pipes), os.geteuid())


def test_what_is_no_directory_of_an_mps_daemon_has_its_reason(pipes: Path) -> None:
    def reason(path: object, owner: int = os.geteuid()) -> str:
        found = device_nodes.mps_fault(str(path), owner)
        assert found.startswith(f"has no MPS daemon at {path}, its agent_mps_directory (")
        return found.partition(" (")[2].rstrip(")")

    assert reason(pipes) == "No such file or directory"
    assert reason(pipes / "none") == "No such file or directory"
    for path in ("", "relative", "/a/../b", "/a b", "/a\n"):
        assert "not an absolute path" in device_nodes.mps_fault(path)
    with listener(pipes, socket.SOCK_STREAM) as daemon:
        daemon.listen()
        os.rename(pipes / "control", pipes / "other")
        os.symlink(pipes / "other", pipes / "control")
        assert reason(pipes) == "its control is not a socket"
        os.unlink(pipes / "control")
    with listener(pipes, socket.SOCK_DGRAM):
        assert reason(pipes) == "another program's socket"
        assert reason(pipes, os.geteuid() + 1) == "a link, or not root's directory"
    os.symlink(pipes, f"{pipes}-link")
    try:
        assert reason(f"{pipes}-link") == "a link, or not root's directory"
    finally:
        os.unlink(f"{pipes}-link")
