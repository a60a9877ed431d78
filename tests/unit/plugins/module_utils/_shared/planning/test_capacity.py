# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from samples import GIB, agent

from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import Gpu, Resources
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.report import GpuSharing
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.capacity import (
    FreeCapacity,
    PerContainer,
    parse_cpuset,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.placement import free_of

CPU = PerContainer(1000, GIB)


def devices(**parts: tuple[float, float]) -> FreeCapacity:
    return FreeCapacity("a", 64000, 64 * GIB, dict(parts))


@pytest.mark.parametrize(
    ("free", "each", "room"),
    [
        (FreeCapacity("a", 4000, 16 * GIB), CPU, 4),
        (FreeCapacity("a", 4000, 2 * GIB), CPU, 2),
        (FreeCapacity("a", 3999, 16 * GIB), CPU, 3),
        (FreeCapacity("a", 0, 16 * GIB), CPU, 0),
        (FreeCapacity("a", -2000, 16 * GIB), CPU, 0),
        (FreeCapacity("a", 8000, 16 * GIB, cpu_ids=[1, 2, 5]), PerContainer(1000, GIB, pinned=True), 3),
        (FreeCapacity("a", 8000, 16 * GIB, cpu_ids=[1, 2, 5]), PerContainer(2000, GIB, pinned=True), 1),
        (devices(x=(1.0, 1.0), y=(1.0, 1.0), z=(0.5, 2.0)), PerContainer(1000, GIB, gpus=1), 2),
        (devices(x=(1.0, 1.0), y=(1.0, 1.0), z=(1.0, 1.0)), PerContainer(1000, GIB, gpus=2), 1),
        (devices(x=(1.0, 1.0)), PerContainer(1000, GIB, gpus=0.5), 0),
        (devices(x=(1.0, 2.0), y=(0.75, 4.0)), PerContainer(1000, GIB, gpus=0.5), 3),
        (devices(x=(1.0, 2.0)), PerContainer(1000, GIB, gpus=0.25), 0),
        (devices(x=(1.0, 10.0)), PerContainer(1000, GIB, gpus=0.1), 10),
    ],
)
def test_room(free: FreeCapacity, each: PerContainer, room: int) -> None:
    assert free.room(each) == room


@pytest.mark.parametrize(
    ("free", "each", "count", "text"),
    [
        (FreeCapacity("a", 1000, 16 * GIB), PerContainer(2000, GIB), 2, "needs 4 CPUs, 1 free"),
        (FreeCapacity("a", -500, 16 * GIB), CPU, 1, "needs 1 CPUs, 0 free"),
        (FreeCapacity("a", 8000, 2 * GIB - 1), CPU, 2, "needs 2g memory, 1.9g free"),
        (FreeCapacity("a", 8000, -1), CPU, 2, "needs 2g memory, 0b free"),
        (
            FreeCapacity("a", 8000, 9 * GIB, cpu_ids=[7]),
            PerContainer(2000, GIB, pinned=True),
            3,
            "needs 6 unpinned CPUs, 1 free",
        ),
        (devices(x=(1.0, 1.0), y=(0.5, 2.0)), PerContainer(1000, GIB, gpus=2), 1, "needs 2 GPUs, 1 free"),
        (devices(x=(1.0, 1.0)), PerContainer(1000, GIB, gpus=0.5), 1, "needs 0.5 GPUs, 0 free"),
        (devices(x=(1.0, 2.0)), PerContainer(1000, GIB, gpus=0.5), 3, "needs 1.5 GPUs, 1 free"),
        (FreeCapacity("a", 4000, 16 * GIB), CPU, 4, ""),
    ],
)
def test_a_shortfall_names_what_is_needed_and_what_is_free(
    free: FreeCapacity, each: PerContainer, count: int, text: str
) -> None:
    assert free.shortfall(each, count) == text


def test_taking_books_every_slot() -> None:
    free = FreeCapacity("a", 8000, 16 * GIB, {"x": (1.0, 1.0), "y": (1.0, 1.0)}, [0, 1, 2, 3])
    taken = free.take(PerContainer(2000, GIB, 1 << 20, gpus=1, pinned=True))
    assert taken == Resources(2000, GIB, 1 << 20, (Gpu("x"),), "0,1")
    assert free == FreeCapacity("a", 6000, 15 * GIB, {"x": (0.0, 1.0), "y": (1.0, 1.0)}, [2, 3])


def test_a_fraction_goes_to_the_fullest_device() -> None:
    free = devices(whole=(1.0, 4.0), half=(0.5, 4.0), scrap=(0.25, 4.0))
    assert [free.take(PerContainer(1000, GIB, gpus=0.5)).gpus[0].id for _ in range(3)] == ["half", "whole", "whole"]
    assert free.take(PerContainer(1000, GIB, gpus=0.25)).gpus == (Gpu("scrap", 0.25),)


def test_whole_devices_leave_the_shared_ones_alone() -> None:
    free = devices(shared=(0.5, 2.0), x=(1.0, 1.0))
    assert free.take(PerContainer(1000, GIB, gpus=1)).gpus == (Gpu("x"),)


@pytest.mark.parametrize(
    ("text", "cpus"), [("", set()), ("3", {3}), ("0-2,5", {0, 1, 2, 5}), ("1,2", {1, 2}), ("7-7", {7})]
)
def test_parse_cpuset(text: str, cpus: set[int]) -> None:
    assert parse_cpuset(text) == cpus


def test_free_is_capacity_without_bookings() -> None:
    one = agent("a", cpus=8, gpus=[Gpu("x", 4.0), "y"])
    booked = [Resources(2000, GIB, 0, (Gpu("x", 0.25),), "0-1"), Resources(1000, GIB, 0, (Gpu("y"), Gpu("lost")), "4")]
    free = free_of(one, booked)
    assert (free.millicpus, free.memory, free.cpu_ids) == (5000, 14 * GIB, [2, 3, 5, 6, 7])
    assert free.gpus == {"x": (0.75, 4.0), "y": (0.0, 1.0), "lost": (0.0, 1.0)}


def test_a_device_booked_more_than_once_is_not_free() -> None:
    free = free_of(agent("a", gpus=["x"]), [Resources(gpus=(Gpu("x"),)), Resources(gpus=(Gpu("x"),))])
    assert free.gpus == {"x": (0.0, 1.0)}
    assert free.room(PerContainer(1000, GIB, gpus=1)) == 0


@pytest.mark.parametrize(
    ("shares", "written"),
    [(3, 1 / 3), (3, 0.33), (3, 0.3333), (3, 0.35), (6, 0.17), (7, 1 / 7), (7, 0.14), (63, 0.01)],
)
def test_shares_of_a_device_add_up(shares: int, written: float) -> None:
    """Three thirds are exactly one GPU, however a third is written, so the last third can be allocated."""
    free = devices(x=(1.0, float(shares)))
    each = PerContainer(1000, GIB, gpus=written)
    assert free.room(each) == shares
    for left in reversed(range(shares)):
        assert free.take(each).gpus == (Gpu("x", 1 / shares),)
        assert free.room(each) == left
    booked = [Resources(gpus=(Gpu("x", 1 / shares),))] * (shares - 1)
    again = free_of(agent("a", cpus=64, memory=64 * GIB, gpus=[Gpu("x", float(shares))]), booked)
    assert again.room(each) == 1


# A 3g.20gb and a 1g.5gb of one A100, and a 3g.20gb of another: a slice is a seventh.
MIG = (Gpu("MIG-a", 0.4286, 20 * GIB), Gpu("MIG-b", 0.1429, 5 * GIB), Gpu("MIG-c", 0.4286, 20 * GIB))


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        (0.1, MIG[1]),
        (1 / 7, MIG[1]),
        (0.2, MIG[0]),
        (0.43, MIG[0]),
        (0.44, MIG[0]),
        (0.5, None),
        (1, Gpu("GPU-d")),
        (2, None),
    ],
)
def test_a_part_is_the_smallest_mig_device_that_has_it(asked: float, given: Gpu | None) -> None:
    free = free_of(agent("a", gpus=[*MIG, "GPU-d"]), [])
    each = PerContainer(1000, GIB, gpus=asked)
    assert [free.take(each).gpus] == [(given,)] if given else free.room(each) == 0


def test_each_mig_device_is_given_once() -> None:
    each = PerContainer(1000, GIB, gpus=0.1)
    free = free_of(agent("a", cpus=8, gpus=MIG), [])
    assert free.room(each) == 3
    taken = [free.take(each) for _ in range(3)]
    assert [one.gpus for one in taken] == [(MIG[1],), (MIG[0],), (MIG[2],)]
    assert free.shortfall(each, 1) == "needs 0.1 GPUs, 0 free"
    assert free_of(agent("a", gpus=MIG), taken).room(each) == 0


def test_mps_limits_the_memory_of_a_part_and_of_no_whole_gpu() -> None:
    free = free_of(agent("a", cpus=8, gpus=[Gpu("GPU-a", 100.0, 24 * GIB), Gpu("GPU-b", 100.0, 24 * GIB)]), [])
    part = free.take(PerContainer(1000, GIB, gpus=0.25))
    assert part.mps == Gpu("GPU-a", 0.25, 6 * GIB)
    assert part.gpus == (part.mps,)
    assert free.take(PerContainer(1000, GIB, gpus=1)).gpus == (Gpu("GPU-b"),)
    assert free.room(PerContainer(1000, GIB, gpus=0.01)) == 6
    assert free.room(PerContainer(10, 1 << 20, gpus=0.01)) == 75


def test_a_reason_says_why_an_agent_gives_no_parts() -> None:
    reason = "has no MPS daemon at /tmp/nvidia-mps"
    free = free_of(agent("a", gpus=[Gpu("GPU-a", 4.0, GIB)], gpu_sharing=GpuSharing("mps", reason)), [])
    assert free.shortfall(PerContainer(1000, GIB, gpus=0.5), 1) == f"needs 0.5 GPUs, 0 free ({reason})"
    assert free.shortfall(PerContainer(1000, GIB, gpus=2), 1) == "needs 2 GPUs, 1 free"


@pytest.mark.parametrize(("shares", "written"), [(3, 0.3), (3, 0.5), (2, 0.25), (4, 0.1), (3, 0.015), (1, 0.99)])
def test_what_is_near_no_share_has_no_room(shares: int, written: float) -> None:
    assert devices(x=(1.0, float(shares))).room(PerContainer(1000, GIB, gpus=written)) == 0
