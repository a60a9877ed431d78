# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""RDMA through the fabric: the search of a container for the entry of its address, in folders as the kernel writes them."""

from __future__ import annotations

import subprocess
from contextlib import nullcontext
from pathlib import Path
from typing import Any, cast

import pytest
from samples import SESSION, plan, request

from ansible_collections.cluster.compute.plugins.module_utils._agent.engine import fabric
from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.client import Engine
from ansible_collections.cluster.compute.plugins.module_utils._shared import label
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import ConflictError, StateError

ADDRESS = "10.201.9.18"
OWN = "0000:0000:0000:0000:0000:ffff:0ac9:0912"
OTHER = "0000:0000:0000:0000:0000:ffff:0ac9:0911"
LOCAL = "fe80:0000:0000:0000:5054:00ff:fe12:3457"


class Container:
    """The engine's side of a container whose /sys is a folder."""

    agent = "agent1"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        box = folder / "busybox"
        box.write_text('#!/bin/sh\nexec "$@"\n')
        box.chmod(0o755)

    def execute(self, _container: str, command: list[str], _name: str) -> tuple[int, str]:
        _shell, dash_c, script, *arguments = command
        for real, made in (
            ("/sys/", f"{self.folder}/sys/"),
            ("/opt/cluster-compute/bin/busybox", str(self.folder / "busybox")),
            ("-lt 100", "-lt 2"),
        ):
            assert real in script
            script = script.replace(real, made)
        done = subprocess.run(["sh", dash_c, script, *arguments], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def port(self, device: str, link_layer: str, *entries: tuple[str, str], state: str = "4: ACTIVE") -> None:
        folder = self.folder / "sys/class/infiniband" / device / "ports/1"
        files = {"link_layer": link_layer, "state": state}
        for number, (gid, kind) in enumerate(entries):
            files |= {f"gids/{number}": gid, f"gid_attrs/types/{number}": kind}
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text + "\n")

    def find(self, address: str = ADDRESS) -> None:
        main = plan(request(), "a").main
        fabric._find_gid(cast("Engine", cast("Any", self)), main, {"Id": "x"}, address)


@pytest.fixture
def container(tmp_path: Path) -> Container:
    return Container(tmp_path)


def test_the_entry_of_the_own_address_is_found(container: Container) -> None:
    container.port("mlx5_1", "Ethernet", (LOCAL, "RoCE v2"))
    container.port(
        "mlx5_0", "Ethernet", (LOCAL, "IB/RoCE v1"), (LOCAL, "RoCE v2"), (OWN, "IB/RoCE v1"), (OWN, "RoCE v2")
    )
    container.find()


# What a network namespace sees of a port of rdma_rxe under Linux 6.12 of Debian 13: its macvlan interface has 10.9.0.2 there, that of
# another namespace 10.9.0.3, and the interface of the host 192.0.2.1.
RECORDED = [
    "fe80:0000:0000:0000:8840:62ff:fe7a:abe4",
    "0000:0000:0000:0000:0000:ffff:c000:0201",
    "0000:0000:0000:0000:0000:ffff:0a09:0002",
    "fe80:0000:0000:0000:b0dc:b8ff:fe77:165f",
    "0000:0000:0000:0000:0000:ffff:0a09:0003",
    "fe80:0000:0000:0000:c895:dcff:fe33:8585",
]


@pytest.mark.parametrize(("address", "is_there"), [("10.9.0.2", True), ("10.9.0.3", True), ("10.9.0.4", False)])
def test_a_recorded_table_has_the_addresses_of_all_namespaces(
    address: str, is_there: bool, container: Container
) -> None:
    container.port("rxe0", "Ethernet", *((gid, "RoCE v2") for gid in RECORDED))
    with nullcontext() if is_there else pytest.raises(StateError):
        container.find(address)


def test_an_infiniband_port_needs_no_entry(container: Container) -> None:
    container.port("mlx5_0", "Ethernet", (LOCAL, "RoCE v2"))
    container.port("mlx5_1", "InfiniBand", (LOCAL, "IB/RoCE v1"))
    container.find()


@pytest.mark.parametrize(
    "entries",
    [
        [(LOCAL, "RoCE v2"), (OTHER, "RoCE v2")],
        [(OWN, "IB/RoCE v1")],
        [],
    ],
)
def test_without_the_entry_the_launch_is_refused(entries: list[tuple[str, str]], container: Container) -> None:
    """The entry of another container of the host is of no use, and neither is one of version 1."""
    container.port("mlx5_0", "Ethernet", *entries)
    container.port("mlx5_1", "InfiniBand", state="1: DOWN")
    message = (
        "main1: no RDMA port of agent1 has a RoCE v2 GID for 10.201.9.18, its address on the fabric "
        "(mlx5_0/ports/1 mlx5_1/ports/1): check that"
    )
    with pytest.raises(StateError) as caught:
        container.find()
    assert caught.value.message.startswith(message)


def test_a_container_without_rdma_devices_is_refused(container: Container) -> None:
    with pytest.raises(StateError, match="main1: no RDMA port of agent1 has a RoCE v2 GID"):
        container.find()


class Networks:
    """An engine with a network of the name on the fabric."""

    agent = "agent1"

    def __init__(self, name: str, session: str, parent: str) -> None:
        own = {"Driver": "macvlan", "Scope": "local", "Options": {"parent": parent}}
        self.held: list[dict[str, Any]] = [{"Id": "1", "Name": name, "Labels": {label.SESSION: session}, **own}]

    def networks(self, everyone: bool = False) -> list[dict[str, Any]]:
        return self.held

    def create_network(self, *_arguments: Any) -> None:
        raise AssertionError("there is one of this name")


@pytest.mark.parametrize(
    ("session", "parent", "is_own"),
    [(SESSION, "ens2f0", True), (SESSION, "eth0", False), ("", "ens2f0", False), (SESSION[:-1] + "0", "ens2f0", False)],
)
def test_a_network_of_another_session_or_interface_is_not_joined(session: str, parent: str, is_own: bool) -> None:
    made = plan(request(fabric=True), "a", fabric="10.201.9.0/27")
    engine: Any = Networks(made.network.fabric_name, session, parent)
    refused = "On agent1 the network .* does not belong to this session and to ens2f0; remove it"
    with nullcontext() if is_own else pytest.raises(ConflictError, match=refused):
        fabric.create_fabric(engine, made, "ens2f0", check=False)
