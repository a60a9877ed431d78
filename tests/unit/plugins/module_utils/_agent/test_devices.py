# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The GPUs of a host: the driver's files and the output of nvidia-smi, in the formats that NVIDIA documents."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._agent import devices
from ansible_collections.cluster.compute.plugins.module_utils._agent.devices import divided, gid_types, rdma_ports
from ansible_collections.cluster.compute.plugins.module_utils._agent.nvidia import Log, Seen, SmiOutput, look, sizes
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import Gpu
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.report import GpuSharing, RdmaPort

# https://docs.nvidia.com/datacenter/tesla/mig-user-guide/getting-started-with-mig.html
WHOLE = """\
GPU 0: NVIDIA H200 (UUID: GPU-b1028956-cfa2-0990-bf4a-5da9abb51763)
GPU 1: NVIDIA H200 (UUID: GPU-36009026-9470-a2e0-73d3-222a63b82e4e)
"""
SPLIT = """\
GPU 0: A100-SXM4-40GB (UUID: GPU-e86cb44c-6756-fd30-cd4a-1e6da3caf9b0)
  MIG 3g.20gb     Device  0: (UUID: MIG-c7384736-a75d-5afc-978f-d2f1294409fd)
  MIG 3g.20gb     Device  1: (UUID: MIG-a28ad590-3fda-56dd-84fc-0a0b96edc58d)
GPU 1: A100-SXM4-40GB (UUID: GPU-5c89852c-d268-c3f3-1b07-005d5ae1dc3f)
"""
# Drivers before R470 name a MIG device after its GPU and its instances.
OLDER = """\
GPU 0: A100-SXM4-40GB (UUID: GPU-e86cb44c-6756-fd30-cd4a-1e6da3caf9b0)
  MIG 1g.5gb Device 0: (UUID: MIG-GPU-e86cb44c-6756-fd30-cd4a-1e6da3caf9b0/7/0)
"""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (WHOLE, ["GPU-b1028956-cfa2-0990-bf4a-5da9abb51763", "GPU-36009026-9470-a2e0-73d3-222a63b82e4e"]),
        (
            SPLIT,
            [
                "MIG-c7384736-a75d-5afc-978f-d2f1294409fd",
                "MIG-a28ad590-3fda-56dd-84fc-0a0b96edc58d",
                "GPU-5c89852c-d268-c3f3-1b07-005d5ae1dc3f",
            ],
        ),
        (OLDER, ["MIG-GPU-e86cb44c-6756-fd30-cd4a-1e6da3caf9b0/7/0"]),
        ("No devices found.\n", []),
        ("  MIG 1g.5gb Device 0: (UUID: MIG-1)\nGPU 0: x (UUID: all)\n", []),
    ],
)
def test_the_list_of_nvidia_smi(text: str, found: list[str]) -> None:
    assert devices.parse_list(text) == found


def driver(folder: Path, *uuids: str) -> str:
    for number, uuid in enumerate(uuids):
        path = folder / f"driver/nvidia/gpus/0000:0{number}:00.0/information"
        path.parent.mkdir(parents=True)
        path.write_text(f"Model: \t\t NVIDIA H200\nIRQ:   \t\t 48\nGPU UUID: \t {uuid}\nVideo BIOS: \t 96.00\n")
    return str(folder)


def never() -> str:
    raise AssertionError("nvidia-smi takes seconds")


def test_the_kernel_knows_the_gpus_that_were_used(tmp_path: Path) -> None:
    assert devices.gpu_ids(driver(tmp_path, "GPU-a", "GPU-b"), never) == ["GPU-a", "GPU-b"]


def test_a_host_without_a_driver_is_not_asked(tmp_path: Path) -> None:
    assert devices.gpu_ids(str(tmp_path), never) == []


def test_before_the_first_use_nvidia_smi_is_asked(tmp_path: Path) -> None:
    proc = driver(tmp_path, "GPU-????????-????-????-????-????????????", "GPU-b")
    assert devices.gpu_ids(proc, lambda: WHOLE) == devices.parse_list(WHOLE)
    assert devices.gpu_ids(proc, lambda: "") == ["GPU-b"]


def test_mig_devices_are_asked_for(tmp_path: Path) -> None:
    proc = driver(tmp_path, "GPU-a")
    (tmp_path / "driver/nvidia/capabilities/gpu0/mig/gi1").mkdir(parents=True)
    assert devices.gpu_ids(proc, lambda: SPLIT) == devices.parse_list(SPLIT)


LOGS = {path.stem: path.read_text() for path in (Path(__file__).parent / "nvidia_smi").glob("*.xml")}
T4 = "GPU-4c1f0f2e-6f0a-4b57-9a11-0a44c9d01e10"
A100 = ("GPU-e86cb44c-6756-fd30-cd4a-1e6da3caf9b0", "GPU-5c89852c-d268-c3f3-1b07-005d5ae1dc3f")
MIG = ("MIG-c7384736-a75d-5afc-978f-d2f1294409fd", "MIG-a28ad590-3fda-56dd-84fc-0a0b96edc58d")
MIB = 1 << 20


def seen(model: str = "a100_mig", listed: str = SPLIT, old: str = "", new: str = "") -> Seen:
    """What nvidia-smi says, with another text in the log of a model."""
    assert old in LOGS[model]
    answers = {("-q", "-x"): SmiOutput(0, LOGS[model].replace(old, new)), ("-L",): SmiOutput(0, listed)}
    found = look(MIG, lambda *asked: answers[asked])
    assert found
    return found


NAME, MEMORY = "A100-SXM4-40GB", "<total>19968 MiB"
# Another text in the log, another profile in the list, and the size of the two MIG devices.
SIZES = [
    ("", "", "3g.20gb", 0.4286),
    ("", "", "1g.20gb", 0.1429),
    ("", "", "1g.5gb+me", 0.1429),
    ("", "", "7g.40gb", 1.0),
    (NAME, "A30", "2g.12gb", 0.5),
    (NAME, "RTX PRO 6000 Blackwell Server Edition", "1g.24gb", 0.25),
    (NAME, "RTX PRO 5000 Blackwell", "1g.24gb", 0.5),
    # It shares the memory of its instance with other devices.
    ("", "", "1c.3g.20gb", None),
    (MEMORY, "<total>N/A", "3g.20gb", None),
    ("<index>1</index>", "<index>1</index></mig_device><mig_device>", "3g.20gb", None),
]


@pytest.mark.parametrize(("old", "new", "profile", "size"), SIZES)
def test_a_mig_device_is_as_large_as_its_slices(old: str, new: str, profile: str, size: float | None) -> None:
    found = sizes(seen(listed=SPLIT.replace("3g.20gb", profile), old=old, new=new))
    assert found[A100[1]] == (1.0, 40960 * MIB)
    assert [found.get(part) for part in MIG] == [(size, 19968 * MIB) if size else None] * 2


def test_other_logs_have_the_memory_of_their_gpus() -> None:
    assert {name: set(sizes(seen(name, "")).values()) for name in LOGS if name != "a100_mig"} == {
        "t4": {(1.0, 15360 * MIB)},
        "h100": {(1.0, 81559 * MIB)},
        "h100_alone": {(1.0, 81559 * MIB)},
        "h200": {(1.0, 143771 * MIB)},
        "rtx4090": {(1.0, 24564 * MIB)},
    }
    assert sizes(Seen()) == {}


WHOLE_GPUS = [Gpu(A100[1]), Gpu("AMD-0000:03:00.0")]
NO_PART = "gives no part of a GPU: "
DIVIDED: list[tuple[list[Gpu], str, bool, list[Gpu], str]] = [
    (WHOLE_GPUS, "none", False, WHOLE_GPUS, NO_PART + devices._UNDIVIDED["none"]),
    ([Gpu(A100[1], 4.0)], "none", True, [Gpu(A100[1], 4.0)], ""),
    ([Gpu(part) for part in MIG], "none", False, [Gpu(part) for part in MIG], NO_PART + devices._UNDIVIDED["none"]),
    ([], "none", False, [], ""),
    (WHOLE_GPUS, "mps", False, [Gpu(A100[1], 100.0, 40960 * MIB), WHOLE_GPUS[1]], ""),
    ([Gpu(A100[1], 4.0)], "mps", True, [Gpu(A100[1], 4.0, 40960 * MIB)], ""),
    ([Gpu(A100[1])], "mps", True, [Gpu(A100[1])], NO_PART + devices._UNDIVIDED["mps"]),
    (
        [Gpu("GPU-unknown"), Gpu(MIG[0])],
        "mps",
        False,
        [Gpu("GPU-unknown"), Gpu(MIG[0])],
        NO_PART + devices._UNDIVIDED["mps"],
    ),
    (
        [Gpu(MIG[0]), Gpu("MIG-unknown"), Gpu(A100[1])],
        "mig",
        False,
        [Gpu(A100[1]), Gpu(MIG[0], 0.4286, 19968 * MIB)],
        "",
    ),
    (WHOLE_GPUS, "mig", False, WHOLE_GPUS, NO_PART + devices._UNDIVIDED["mig"]),
]


@pytest.mark.parametrize(("gpus", "sharing", "is_declared", "parts", "reason"), DIVIDED)
def test_the_parts_of_gpus(
    gpus: list[Gpu], sharing: str, is_declared: bool, parts: list[Gpu], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices, "mps_fault", lambda _directory: "")
    found = divided(gpus, sharing, "/run/mps", is_declared, seen())
    assert found == (parts, GpuSharing(sharing, reason))


def test_without_a_daemon_a_report_says_why_no_part_is_given() -> None:
    found, why = divided([Gpu(A100[1], 4.0)], "mps", "/nonexistent", True, seen())
    assert found == [Gpu(A100[1], 4.0, 40960 * MIB)]
    assert why.reason.startswith("has no MPS daemon at /nonexistent, its agent_mps_directory (")
    assert why.may_pass
    assert divided([Gpu(A100[1])], "mig", "", False, None)[0] == [Gpu(A100[1])]
    assert "no amount of memory" in divided([Gpu(A100[1])], "mps", "/nonexistent", False, None)[1].reason


@pytest.mark.parametrize("sharing", ["none", "mps", "mig"])
def test_a_log_that_fails_is_why_no_part_is_given(sharing: str) -> None:
    failed = Seen(Log(fault="nvidia-smi does not answer in 30 s"))
    found, why = divided([Gpu(A100[1])], sharing, "/nonexistent", False, failed)
    assert (found, why.reason) == ([Gpu(A100[1])], NO_PART + "nvidia-smi does not answer in 30 s")


def write_port(sys: Path, device: str, port: int, link_layer: str, state: str = "4: ACTIVE") -> None:
    folder = sys / "class" / "infiniband" / device / "ports" / str(port)
    folder.mkdir(parents=True)
    (folder / "link_layer").write_text(link_layer + "\n", encoding="ascii")
    (folder / "state").write_text(state + "\n", encoding="ascii")


def test_each_port_has_its_link_layer_and_state(tmp_path: Path) -> None:
    write_port(tmp_path, "mlx5_0", 1, "InfiniBand")
    write_port(tmp_path, "mlx5_0", 2, "InfiniBand", "1: DOWN")
    write_port(tmp_path, "mlx5_1", 1, "Ethernet")
    assert rdma_ports("", (), str(tmp_path)) == [
        RdmaPort("mlx5_0:1", "InfiniBand", True),
        RdmaPort("mlx5_0:2", "InfiniBand", False),
        RdmaPort("mlx5_1:1", "Ethernet", True),
    ]


def write_gid(sys: Path, device: str, entry: int, interface: str, kind: str) -> None:
    for what, text in (("ndevs", interface), ("types", kind)):
        file = sys / "class/infiniband" / device / "ports/1/gid_attrs" / what / str(entry)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n", encoding="ascii")


@pytest.mark.parametrize(
    ("fabric", "ports"), [("ens2", ["mlx5_0:1"]), ("ens2.7", ["mlx5_0:1"]), ("ens3", []), ("", [])]
)
def test_a_roce_port_lies_beneath_an_interface_of_the_fabric(fabric: str, ports: list[str], tmp_path: Path) -> None:
    write_port(tmp_path, "mlx5_0", 1, "Ethernet")
    write_gid(tmp_path, "mlx5_0", 0, "ens2", "IB/RoCE v1")
    write_gid(tmp_path, "mlx5_0", 1, "ens2", "RoCE v2")
    write_port(tmp_path, "mlx5_1", 1, "InfiniBand")
    (tmp_path / "class/net/ens2.7/lower_ens2").mkdir(parents=True)
    assert [port.name for port in rdma_ports(fabric, (), str(tmp_path)) if port.fabric] == ports


@pytest.mark.parametrize(
    ("gid", "kind", "has"),
    [
        ("0000:0000:0000:0000:0000:ffff:c000:0205", "RoCE v2", True),
        ("0000:0000:0000:0000:0000:ffff:c000:0205", "IB/RoCE v1", False),
        ("0000:0000:0000:0000:0000:ffff:0ac9:0912", "RoCE v2", False),
        ("fe80:0000:0000:0000:5054:00ff:fe12:3457", "RoCE v2", False),
    ],
)
def test_a_roce_port_has_an_address_of_its_host_or_only_of_others(
    gid: str, kind: str, has: bool, tmp_path: Path
) -> None:
    """The table also has the addresses of containers with interfaces above that of the port."""
    write_port(tmp_path, "mlx5_0", 1, "Ethernet")
    write_gid(tmp_path, "mlx5_0", 0, "ens2", "RoCE v2")
    write_gid(tmp_path, "mlx5_0", 3, "ens2", kind)
    gids = tmp_path / "class/infiniband/mlx5_0/ports/1/gids"
    gids.mkdir()
    (gids / "3").write_text(gid + "\n", encoding="ascii")
    (port,) = rdma_ports("", ["192.0.2.5", "127.0.0.1"], str(tmp_path))
    assert port.host is has


def test_the_types_of_the_addresses_of_a_port(tmp_path: Path) -> None:
    write_gid(tmp_path, "mlx5_0", 0, "ens2", "IB/RoCE v1")
    write_gid(tmp_path, "mlx5_0", 1, "ens2", "RoCE v2")
    write_gid(tmp_path, "mlx5_0", 2, "", "")
    assert gid_types("mlx5_0:1", str(tmp_path)) == ["IB/RoCE v1", "RoCE v2"]
    assert gid_types("mlx5_1:1", str(tmp_path)) == []


def test_a_host_without_rdma_has_no_ports(tmp_path: Path) -> None:
    assert rdma_ports("eth1", ["192.0.2.5"], str(tmp_path)) == []
