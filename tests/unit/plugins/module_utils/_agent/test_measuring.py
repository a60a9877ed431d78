# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What containers use, from control groups or from an engine; and what nvidia-smi prints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._agent.devices import amd_use, parse_gpu_use, use_of_gpu
from ansible_collections.cluster.compute.plugins.module_utils._agent.measuring import (
    Groups,
    Reading,
    measure_containers,
    parse_stats,
    use,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.codec import Json
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import Gpu
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.report import GpuUse, Measured
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import EngineError

X, Y = "a1" * 32, "b2" * 32


def stats(cpu: int, moment: str, **memory: Any) -> Json:
    return {"read": moment, "cpu_stats": {"cpu_usage": {"total_usage": cpu}}, "memory_stats": memory}


FIRST = stats(1_000_000_000, "2026-11-21T23:59:59.9Z", usage=100)


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        # One and a half CPUs, over midnight; version 1 of control groups counts the cache of the children.
        (
            stats(1_750_000_000, "2026-11-22T00:00:00.4Z", usage=900, stats={"total_inactive_file": 300}),
            Measured(1500, 600),
        ),
        (
            stats(1_000_000_000, "2026-11-22T00:00:00.400000001Z", usage=900, stats={"inactive_file": 100}),
            Measured(0, 800),
        ),
        # A container that was started again, a clock that stood still, a cache that is larger than the rest.
        (stats(5, "2026-11-22T00:00:01Z", usage=7, stats={"inactive_file": 9}), Measured(0, 7)),
        (stats(9_000_000_000, "2026-11-21T23:59:59.9Z", usage=7), Measured(0, 7)),
    ],
)
def test_the_use_between_two_readings_of_an_engine(after: Json, expected: Measured) -> None:
    first, second = parse_stats(FIRST), parse_stats(after)
    assert first is not None
    assert second is not None
    assert use(first, second) == expected


class _Engine:
    """Answers with readings in turn, or fails."""

    def __init__(self, *answers: Json | None) -> None:
        self.answers = list(answers)

    def stats(self, _identity: str) -> Json | None:
        answer = self.answers.pop(0)
        if answer == {"failed": True}:
            raise EngineError("The engine could not measure a container.", "a")
        return answer


def measured(root: Path, *answers: Json | None, ids: tuple[str, ...] = (X,)) -> dict[str, Json]:
    engine: Any = _Engine(*answers)
    return measure_containers(engine, ids, Groups(ids, str(root)), pause=0.0)


def test_containers_that_have_ended_and_engines_that_cannot_measure_are_left_out(tmp_path: Path) -> None:
    later = stats(2_000_000_000, "2026-11-22T00:00:00.9Z", usage=50)
    assert measured(tmp_path, FIRST, later) == {X: Measured(1000, 50)}
    assert measured(tmp_path, FIRST, None) == {}
    assert measured(tmp_path, FIRST, stats(0, "0001-01-01T00:00:00Z")) == {}
    assert measured(tmp_path, {"failed": True}) == {}
    assert measured(tmp_path, ids=()) == {}


def write(root: Path, **files: str) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_counters_of_version_1(tmp_path: Path) -> None:
    folders = {name: f"{name}/docker-agents/node1/{X}" for name in ("cpuacct", "memory")}
    write(
        tmp_path,
        **{
            f"{folders['cpuacct']}/cpuacct.usage": "7500\n",
            f"{folders['memory']}/memory.usage_in_bytes": "900\n",
            f"{folders['memory']}/memory.stat": "inactive_file 1\ntotal_inactive_file 300\n",
            f"cpuacct/docker/{Y}/cpuacct.usage": "1\n",
        },
    )
    assert counters(tmp_path) == {X: (7500, 600)}
    assert list(measured(tmp_path)) == [X]


def test_counters_of_version_2(tmp_path: Path) -> None:
    scope = f"user.slice/user-1000.slice/user@1000.service/user.slice/docker-{X}.scope"
    write(
        tmp_path,
        **{
            "cgroup.controllers": "cpu memory\n",
            f"{scope}/cpu.stat": "usage_usec 42\nuser_usec 40\n",
            f"{scope}/memory.current": "1000\n",
            f"{scope}/memory.stat": "anon 5\ninactive_file 10\n",
            f"{scope}/nested/{Y}/memory.current": "1\n",
            f"system.slice/docker-{Y}.scope/cpu.stat": "usage_usec 1\n",
        },
    )
    assert counters(tmp_path) == {X: (42000, 990)}


def counters(root: Path) -> dict[str, tuple[int, int]]:
    found: dict[str, Reading] = Groups((X, Y), str(root)).readings()
    return {identity: (reading.cpu, reading.memory) for identity, reading in found.items()}


def test_devices_that_do_not_report_an_amount() -> None:
    text = "GPU-1, 37, 1024, 2048\nGPU-2, [N/A], [Not Supported], 2048\nNo devices were found\n"
    assert parse_gpu_use(text) == [
        GpuUse("GPU-1", 37, 1 << 30, 2 << 30),
        GpuUse("GPU-2", capacity=2 << 30),
    ]


def test_devices_of_amd_are_measured_by_the_kernel(tmp_path: Path) -> None:
    device = tmp_path / "class/drm/renderD128/device"
    device.mkdir(parents=True)
    for name, text in (
        ("gpu_busy_percent", "93\n"),
        ("mem_info_vram_used", "512\n"),
        ("mem_info_vram_total", "2048\n"),
    ):
        (device / name).write_text(text)
    nodes = {"AMD-0000:03:00.0": "/dev/dri/renderD128", "AMD-0000:04:00.0": "/dev/dri/renderD129"}
    assert amd_use(nodes, str(tmp_path)) == [
        GpuUse("AMD-0000:03:00.0", 93, 512, 2048),
        GpuUse("AMD-0000:04:00.0"),
    ]


def test_a_container_has_the_use_of_its_own_devices() -> None:
    use = (GpuUse("GPU-1", 37), GpuUse("GPU-2", 0))
    assert use_of_gpu([Gpu("GPU-2", 0.5), Gpu("MIG-3")], use) == use[1:]
