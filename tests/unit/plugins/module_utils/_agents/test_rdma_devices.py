# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The RDMA ports in a report, from a tree of files as the kernel shows them."""

from __future__ import annotations

from pathlib import Path

from ansible_collections.cluster.compute.plugins.module_utils._agents.rdma_devices import rdma_ports


def write_port(sys: Path, device: str, port: int, link_layer: str, state: str = "4: ACTIVE") -> None:
    folder = sys / "class" / "infiniband" / device / "ports" / str(port)
    folder.mkdir(parents=True)
    (folder / "link_layer").write_text(link_layer + "\n", encoding="ascii")
    (folder / "state").write_text(state + "\n", encoding="ascii")


def test_each_port_has_its_link_layer_and_state(tmp_path: Path) -> None:
    write_port(tmp_path, "mlx5_0", 1, "InfiniBand")
    write_port(tmp_path, "mlx5_0", 2, "InfiniBand", "1: DOWN")
    write_port(tmp_path, "mlx5_1", 1, "Ethernet")
    assert rdma_ports(str(tmp_path)) == [
        {"name": "mlx5_0:1", "link_layer": "InfiniBand", "active": True},
        {"name": "mlx5_0:2", "link_layer": "InfiniBand", "active": False},
        {"name": "mlx5_1:1", "link_layer": "Ethernet", "active": True},
    ]


def test_a_host_without_rdma_has_no_ports(tmp_path: Path) -> None:
    assert rdma_ports(str(tmp_path)) == []
