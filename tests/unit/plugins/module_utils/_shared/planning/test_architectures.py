# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Agents of several architectures in one pool: a session runs on one of them, by its image."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import GIB, agent, frees, plan, request

from ansible_collections.cluster.compute.plugins.module_utils._shared.constants import MULTI_NODE
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.report import AgentReport
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.capacity import Demand, PerContainer
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.node_loss import new_places
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.placement import Placement, Shortfall
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.resizing import growth_demand
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.role_placement import never_fits, place

CPU = PerContainer(1000, GIB)
X86, ARM = "x86_64", "aarch64"


def intel(name: str, cpus: int = 4, image: str = X86, **fields: Any) -> AgentReport:
    return agent(name, cpus, architecture=X86, image_architecture=image, **fields)


def arm(name: str, cpus: int = 4, image: str = ARM, **fields: Any) -> AgentReport:
    return agent(name, cpus, architecture=ARM, image_architecture=image, **fields)


def placed(demand: Demand, *agents: AgentReport) -> list[str] | str:
    found = place(demand, agents, frees(*agents))
    return found.reason if isinstance(found, Shortfall) else list(found.agents)


@pytest.mark.parametrize(
    ("size", "agents", "expected"),
    [
        pytest.param(6, [intel("a"), arm("b"), intel("c")], ["a"] * 4 + ["c"] * 2, id="each has its own image"),
        pytest.param(6, [intel("a"), arm("b"), arm("c")], ["b"] * 4 + ["c"] * 2, id="the other architecture has room"),
        pytest.param(6, [intel("a"), arm("b", 8, image=""), intel("c")], ["a"] * 4 + ["c"] * 2, id="by the image"),
        pytest.param(
            4, [intel("a", image=""), arm("b")], ["b"] * 4, id="an agent without an image of its architecture"
        ),
        pytest.param(4, [intel("a", image=ARM), arm("b", image="")], ["b"] * 4, id="an image for others is copied"),
        pytest.param(
            6,
            [intel("a", image=""), arm("b", image=""), intel("c", image="")],
            ["a"] * 4 + ["c"] * 2,
            id="no agent has the image",
        ),
    ],
)
def test_a_session_runs_on_agents_of_one_architecture(
    size: int, agents: list[AgentReport], expected: list[str]
) -> None:
    assert placed(Demand(size, CPU, MULTI_NODE), *agents) == expected
    roles = tuple(Demand(2, CPU, MULTI_NODE, role=f"r{number}") for number in range(size // 2))
    assert placed(Demand(size, CPU, MULTI_NODE, roles=roles), *agents) == expected


def test_the_reason_names_the_agents_that_the_image_leaves_out() -> None:
    full = intel("a", 0)
    assert placed(Demand(2, CPU), full, arm("b", image="")) == (
        "a: needs 2 CPUs, 0 free; b is aarch64, and the image is for x86_64"
    )
    riscv = agent("c", architecture="riscv64")
    assert "c is riscv64, and the image is for aarch64 and x86_64" in placed(Demand(9, CPU), full, arm("b"), riscv)


def test_no_architecture_has_room_for_all() -> None:
    agents = [intel("a"), arm("b"), arm("c", 1)]
    reason = "a session runs on one architecture, and none has room for all 6 containers: aarch64 for 5, x86_64 for 4"
    assert placed(Demand(6, CPU, MULTI_NODE), *agents) == reason
    # No other session has anything there: it cannot wait for that.
    assert never_fits(Demand(6, CPU, MULTI_NODE), agents) == reason


def test_an_agent_that_lacks_the_image_waits_for_it_and_is_no_reason_to_refuse() -> None:
    assert never_fits(Demand(4, CPU), [intel("a", 1), arm("b", image="")]) == ""


def test_agents_that_a_session_does_not_ask_for_decide_nothing_about_its_image() -> None:
    """The first session of the ARM agents pulls the image for them."""
    other, lacking = intel("a", group="big"), arm("b", image="")
    assert placed(Demand(2, CPU), other, lacking) == ["b", "b"]
    assert placed(Demand(2, CPU, agents=("b",), policy="strict"), replace(other, group="default"), lacking) == [
        "b",
        "b",
    ]
    assert placed(Demand(2, CPU), replace(other, group="default", reachable=False), lacking) == ["b", "b"]


def test_a_session_grows_on_agents_of_its_architecture() -> None:
    agents = [intel("a", 1), arm("b", 9), intel("c", 2)]
    asked = request(cluster_size=2, cluster_mode=MULTI_NODE, cpus=1, memory="1g")
    running = plan(asked, "ac")
    demand = growth_demand(replace(asked, size=3), running, agents)
    assert demand.agents == ("a", "c")


def test_containers_of_a_lost_agent_move_to_agents_of_the_same_architecture() -> None:
    agents = [intel("a"), intel("l", reachable=False), arm("b", 9), intel("c")]
    asked = request(cluster_size=2, cluster_mode=MULTI_NODE, cpus=1, memory="1g", per_agent=1)
    running = plan(asked, "al")
    found = new_places(asked, running, ["l"], agents, frees(*agents), [])
    assert not isinstance(found, Shortfall)
    assert {name: where for name, (where, _given) in found.items()} == {"sub1": "c"}


def test_a_session_that_has_lost_all_agents_moves_where_all_its_containers_fit() -> None:
    agents = [intel("k", reachable=False), intel("l", reachable=False), arm("b", 1), intel("c"), arm("d", 0)]
    asked = request(cluster_size=2, cluster_mode=MULTI_NODE, cpus=1, memory="1g")
    running = plan(asked, "kl")
    found = new_places(asked, running, ["k", "l"], agents, frees(*agents), [])
    assert not isinstance(found, Shortfall)
    assert {where for where, _given in found.values()} == {"c"}


AGENTS = st.lists(
    st.tuples(st.sampled_from([X86, X86, ARM, "riscv64"]), st.sampled_from(["", X86, ARM]), st.integers(0, 5)),
    min_size=1,
    max_size=6,
)


@given(AGENTS, st.integers(1, 9), st.sampled_from(["pack", "spread"]), st.integers(0, 3))
def test_no_plan_mixes_architectures(pool: Any, size: int, strategy: str, roles: int) -> None:
    agents = [
        agent(name, cpus, architecture=own, image_architecture=image)
        for name, (own, image, cpus) in zip("abcdef", pool, strict=False)
    ]
    parts = tuple(Demand(size, CPU, MULTI_NODE, role=f"r{number}") for number in range(roles))
    demand = Demand(size * max(1, roles), CPU, MULTI_NODE, strategy=strategy, roles=parts)
    found = place(demand, agents, frees(*agents))
    known = {one.image.architecture for one in agents} & {one.architecture for one in agents} - {""}
    if isinstance(found, Placement):
        used = [one for one in agents if one.name in found.agents]
        assert len({one.architecture for one in used}) == 1
        # A copy of the image, or the image itself, is for them.
        assert used[0].architecture in (known or {used[0].architecture})
        assert all(one.image.architecture in ("", one.architecture) for one in used)


def test_an_image_that_no_agent_can_run_does_not_keep_the_others_from_another() -> None:
    agents = [agent("a", architecture="x86_64", image_architecture="aarch64"), agent("b", architecture="x86_64")]
    found = place(Demand(1, CPU, MULTI_NODE), agents, frees(*agents))
    assert isinstance(found, Placement)
    assert found.agents == ("b",)
