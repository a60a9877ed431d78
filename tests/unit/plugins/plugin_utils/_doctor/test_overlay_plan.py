# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan of the check's overlay network: who takes part, and a subnet that nothing uses."""

from __future__ import annotations

import doctest
from typing import Any

import pytest
from check_samples import THREE, report, swarm

from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.examination import (
    Examination,
    OverlayMember,
    OverlayPlan,
)
from ansible_collections.cluster.compute.plugins.plugin_utils._doctor import overlay_plan as planning
from ansible_collections.cluster.compute.plugins.plugin_utils._doctor.overlay_plan import overlay_plan

POOLS = ["10.201.0.0/16"]


def plan(reports: list[Examination], **changes: Any) -> OverlayPlan:
    options: dict[str, Any] = {"pools": POOLS, "encrypted": False, "head": "agent1", "seconds": 2.0}
    return overlay_plan(reports, **{**options, **changes})


def test_all_agents_take_part() -> None:
    assert plan(THREE) == OverlayPlan(
        manager="agent1",
        members=(
            OverlayMember("agent1", "check1", "10.201.192.2"),
            OverlayMember("agent2", "check2", "10.201.192.3"),
            OverlayMember("agent3", "check3", "10.201.192.4"),
        ),
        subnet="10.201.192.0/27",
        gateway="10.201.192.1",
        ip_range="10.201.192.16/28",
        mtu=1450,
        seconds=2.0,
    )


LEFT_OUT: dict[str, dict[str, Any]] = {
    "an agent of another Swarm": {"swarm": swarm(2, "other", managers=())},
    "an agent of no Swarm": {"swarm": swarm(2, "", state="inactive")},
    "an agent without the reference image": {"image": False},
}


@pytest.mark.parametrize("case", LEFT_OUT)
def test_an_agent_that_cannot_take_part_is_left_out(case: str) -> None:
    found = plan([THREE[0], report(2, **LEFT_OUT[case]), THREE[2]])
    assert [member.name for member in found.members] == ["agent1", "agent3"]


def test_the_head_creates_the_network_else_another_manager() -> None:
    assert plan(THREE, head="agent3").manager == "agent3"
    worker = report(3, swarm=swarm(3, manager=False))
    assert plan([THREE[0], THREE[1], worker], head="agent3").manager == "agent1"


def test_the_narrowest_network_decides() -> None:
    assert plan([THREE[0], report(2, mtu=1400)]).mtu == 1350


def test_networks_of_sessions_are_taken() -> None:
    assert plan([THREE[0], report(2, session_subnets=("10.201.192.0/24",))]).subnet == "10.201.193.0/27"


@pytest.mark.parametrize(
    ("reports", "reason"),
    [
        ([THREE[0]], "no two agents"),
        ([report(n, swarm=swarm(n, manager=False)) for n in (1, 2)], "a manager that answers"),
        ([THREE[0], report(2, routes=("10.0.0.0/8",))], "No free /27 is left"),
    ],
)
def test_without_a_network_there_is_a_reason(reports: list[Examination], reason: str) -> None:
    found = plan(reports)
    assert found.members == ()
    assert reason in found.reason


def test_it_is_encrypted_where_all_kernels_can() -> None:
    assert plan(THREE, encrypted=True).encrypted is True
    assert plan([THREE[0], report(2, esp=False)], encrypted=True).encrypted is False


def test_examples() -> None:
    assert doctest.testmod(planning).failed == 0
