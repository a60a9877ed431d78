# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the doctor says of fabrics, RDMA ports and NVLinks, and by what the containers of each pair of agents would exchange data."""

from __future__ import annotations

import doctest
from dataclasses import replace
from typing import Any

import pytest
from check_samples import report

from ansible_collections.cluster.compute.plugins.module_utils._agent import nvidia
from ansible_collections.cluster.compute.plugins.module_utils._agent.nvidia import nvlinks
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.examination import (
    ExaminedFabric,
    ExaminedRdmaPort,
    NvLinks,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.findings import OK, WARN, Requirements
from ansible_collections.cluster.compute.plugins.plugin_utils._doctor import transports
from ansible_collections.cluster.compute.plugins.plugin_utils._doctor.transports import check_transports

FABRIC = ExaminedFabric("ens2", "", 9000, 100000)
ROCE = ExaminedRdmaPort("mlx5_0:1", "Ethernet", True, True, True, ("IB/RoCE v1", "RoCE v2"))
INFINIBAND = ExaminedRdmaPort("mlx5_1:1", "InfiniBand", True, gids=("IB/RoCE v1",))
OVER_FABRIC = "RoCE v2 with session_rdma and session_fabric"
ON_HOST = "RoCE v2 with session_rdma and session_network: host"
NEEDED = Requirements()
# https://docs.nvidia.com/datacenter/dcgm/latest/user-guide/feature-overview.html and NVIDIA's guide of DGX systems show such tables.
# nvidia-smi underlines its head.
NVSWITCH = """\
\t\x1b[4mGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m
GPU0\t X \tNV18\tNV18\tNV18\tPIX\tSYS\t0-31,64-95\t0\t\tN/A
GPU1\tNV18\t X \tNV18\tNV18\tSYS\tSYS\t0-31,64-95\t0\t\tN/A
GPU2\tNV18\tNV18\t X \tNV18\tSYS\tSYS\t32-63,96-127\t1\t\tN/A
GPU3\tNV18\tNV18\tNV18\t X \tSYS\tPIX\t32-63,96-127\t1\t\tN/A
NIC0\tPIX\tSYS\tSYS\tSYS\t X \tSYS\t\t\t\t
NIC1\tSYS\tSYS\tSYS\tPIX\tSYS\t X \t\t\t\t

Legend:

  X    = Self
  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)
  NV#  = Connection traversing a bonded set of # NVLinks

NIC Legend:

  NIC0: mlx5_0
"""
BRIDGED = """\
\tGPU0\tGPU1\tGPU2\tCPU Affinity\tNUMA Affinity
GPU0\t X \tNV4\tPHB\t0-15\t0
GPU1\tNV4\t X \tSYS\t0-15\t0
GPU2\tPHB\tSYS\t X \t16-31\t1
"""


def test_the_examples() -> None:
    assert not doctest.testmod(transports).failed
    assert not doctest.testmod(nvidia).failed


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (NVSWITCH, (4, 6)),
        (BRIDGED, (3, 1)),
        ("\t\x1b[4mGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\nGPU0\t X \t0-15\t0\t\tN/A\n", (1, 0)),
        ("\tGPU0\tGPU1\nGPU0", (2, 0)),
        ("Failed to initialize NVML: Driver/library version mismatch\n", (0, 0)),
        ("", (0, 0)),
    ],
)
def test_pairs_of_gpus_with_nvlinks_are_counted(text: str, found: tuple[int, int]) -> None:
    assert nvlinks(text) == NvLinks(*found)


def test_nvlink_is_said_to_stay_inside_a_container() -> None:
    def found(gpus: int, linked: int) -> str:
        return transports.check_nvlink(report(1, nvlink=NvLinks(gpus, linked)), NEEDED)[1]

    assert found(4, 6).startswith("6 of 6 pairs of 4 GPUs, only inside a container: prefer one container")
    assert found(4, 0) == "0 of 6 pairs of 4 GPUs"
    assert found(1, 0) == "no two GPUs that nvidia-smi topo -m shows"


@pytest.mark.parametrize(
    ("fabric", "status", "found"),
    [
        (FABRIC, OK, "ens2, 100 Gbit/s, MTU 9000"),
        (replace(FABRIC, speed=0), OK, "ens2, MTU 9000"),
        (
            replace(FABRIC, reason="has no link on ens2, its agent_fabric,"),
            WARN,
            "has no link on ens2, its agent_fabric",
        ),
        (ExaminedFabric(), OK, "no agent_fabric"),
    ],
)
def test_the_fabric_of_an_agent(fabric: ExaminedFabric, status: str, found: str) -> None:
    assert transports.check_fabric(report(1, fabric=fabric), NEEDED)[:2] == (status, found)


@pytest.mark.parametrize(
    ("ports", "status", "found"),
    [
        ((), OK, "none"),
        ((ROCE, INFINIBAND), OK, "mlx5_0:1 IB/RoCE v1 and RoCE v2 on the fabric; mlx5_1:1 InfiniBand"),
        ((replace(ROCE, fabric=False),), OK, "mlx5_0:1 IB/RoCE v1 and RoCE v2, not on the fabric"),
        ((replace(ROCE, host=False),), OK, "mlx5_0:1 IB/RoCE v1 and RoCE v2 on the fabric, without the host's address"),
        ((replace(ROCE, active=False),), OK, "mlx5_0:1 Ethernet, not active"),
        ((replace(ROCE, gids=()),), WARN, "mlx5_0:1 RoCE on the fabric; no RoCE v2 on mlx5_0:1"),
    ],
)
def test_the_rdma_ports_of_an_agent(ports: tuple[ExaminedRdmaPort, ...], status: str, found: str) -> None:
    assert transports.check_rdma(report(1, rdma=ports), NEEDED)[:2] == (status, found)


def transport(*agents: dict[str, Any]) -> list[tuple[str, str, str]]:
    reports = [report(number, **agent) for number, agent in enumerate(agents, 1)]
    return [(one.where, one.status, one.found) for one in check_transports(reports)]


def test_pairs_that_would_use_the_same_are_one_line() -> None:
    both = {"fabric": FABRIC, "rdma": (ROCE,)}
    found = "TCP over the private network; TCP over session_fabric, 100 Gbit/s, MTU 9000; "
    assert transport(both, both, both) == [
        ("all pairs", OK, f"{found}{OVER_FABRIC}; {ON_HOST}"),
    ]
    assert transport({}, {}) == [("all pairs", OK, "TCP over the private network")]


def test_an_agent_without_the_fabric_has_pairs_of_its_own() -> None:
    with_fabric = {"fabric": FABRIC, "rdma": (INFINIBAND,)}
    assert transport(with_fabric, with_fabric, {"rdma": (INFINIBAND,)}) == [
        ("agent1 -> agent2", OK, "TCP over the private network; TCP over session_fabric, 100 Gbit/s, MTU 9000; InfiniBand with session_rdma"),
        ("agent1 -> agent3", OK, "TCP over the private network; InfiniBand with session_rdma; so do 1 more pairs"),
    ]  # fmt: skip


def test_roce_needs_a_usable_fabric_or_an_address_of_the_host() -> None:
    down = replace(FABRIC, reason="has network other on ens2, its agent_fabric,")
    tcp = "TCP over the private network"
    without = replace(ROCE, host=False)
    assert transport({"fabric": FABRIC, "rdma": (ROCE,)}, {"fabric": down, "rdma": (without,)}) == [
        ("all pairs", OK, tcp)
    ]
    assert transport({"fabric": FABRIC, "rdma": (ROCE,)}, {"fabric": down, "rdma": (ROCE,)}) == [
        ("all pairs", OK, f"{tcp}; {ON_HOST}"),
    ]
    elsewhere = replace(ROCE, fabric=False)
    assert transport({"rdma": (elsewhere,)}, {"rdma": (elsewhere,)}) == [("all pairs", OK, f"{tcp}; {ON_HOST}")]
    assert transport({"rdma": (elsewhere,)}, {"fabric": down, "rdma": (elsewhere,)}) == [("all pairs", OK, tcp)]


def test_what_does_not_fit_together_is_a_warning() -> None:
    narrow = replace(FABRIC, mtu=1500, speed=25000)
    (mixed,) = transport({"fabric": FABRIC}, {"fabric": narrow})
    assert mixed[1:] == (WARN, "TCP over the private network; TCP over session_fabric, 25 Gbit/s, MTU 9000 and 1500")
    (kinds,) = transport({"rdma": (INFINIBAND,)}, {"fabric": FABRIC, "rdma": (ROCE,)})
    assert kinds[1:] == (
        WARN,
        "TCP over the private network; no RDMA in common: InfiniBand with session_rdma, and RoCE v2 with session_rdma and session_fabric",
    )
