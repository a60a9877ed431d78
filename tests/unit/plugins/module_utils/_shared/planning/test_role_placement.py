# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The placement of sessions with roles: all containers or none, each with the resources of its role."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import GIB, agent, frees, request

from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import Gpu
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.report import AgentReport
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.capacity import Demand, parse_cpuset
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.placement import Placement, Shortfall
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.policy import Policy, QueueRules
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.queue import QueueEntry, schedule
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.role_placement import never_fits, place

MULTI = {"cluster_mode": "multi-node", "memory": "1g"}
HEAD = {"name": "main", "cpus": 1, "gpus": 0, "resource_group": "cpu"}
GPUS = {"name": "worker", "size": 2, "cpus": 4, "gpus": 1, "resource_group": "gpu"}
CPU_AGENT = agent("c", cpus=4, group="cpu")
GPU_AGENTS = tuple(agent(name, cpus=8, group="gpu", gpus=(name + "0", name + "1")) for name in "gh")


def placed(asked: dict[str, Any], *agents: AgentReport) -> str | Shortfall:
    found = place(request(**asked).demand(), agents, frees(*agents))
    return "".join(found.agents) if isinstance(found, Placement) else found


@pytest.mark.parametrize(
    ("asked", "agents", "expected"),
    [
        # One agent that can hold all roles holds all of them: the tightest.
        ({**MULTI, "roles": [{"name": "ps", "size": 2}]}, (agent("a", 8), agent("b", 3), agent("c", 4)), "bbb"),
        ({"memory": "1g", "roles": [{"name": "ps", "size": 2}]}, (agent("a", 2), agent("b", 3)), "bbb"),
        # A CPU head beside GPU workers.
        ({**MULTI, "roles": [HEAD, GPUS]}, (CPU_AGENT, *GPU_AGENTS), "cgg"),
        ({**MULTI, "per_agent": 1, "roles": [HEAD, GPUS]}, (CPU_AGENT, *GPU_AGENTS), "cgh"),
        ({**MULTI, "strategy": "spread", "roles": [HEAD, GPUS]}, (CPU_AGENT, *GPU_AGENTS), "cgh"),
        # The wide role comes first, so that the small one does not take its room.
        ({**MULTI, "roles": [{"name": "wide", "cpus": 4, "memory": "4g"}]}, (agent("a", 4), agent("b", 1)), "ba"),
        # An agent of another Swarm, or of none, cannot join.
        ({**MULTI, "roles": [{"name": "ps", "size": 2}]}, (agent("a", 2), agent("b", 2, swarm="two")), None),
        ({**MULTI, "roles": [{"name": "ps", "size": 3}]}, (agent("a", 2), agent("b", 2, swarm="two"), agent("c", 2)), "caac"),
    ],
)  # fmt: skip
def test_roles_are_placed_together(
    asked: dict[str, Any], agents: tuple[AgentReport, ...], expected: str | None
) -> None:
    found = placed(asked, *agents)
    if expected is None:
        assert isinstance(found, Shortfall)
    else:
        assert isinstance(found, str)
        assert sorted(found) == sorted(expected)
        assert found[0] == expected[0]


@pytest.mark.parametrize(
    ("asked", "agents", "reason"),
    [
        (
            {"roles": [{"name": "ps", "size": 2, "cpus": 4}]},
            (agent("a", cpus=6),),
            "role ps: a: needs 8 CPUs, 6 free",
        ),
        (
            {"roles": [{"name": "ps", "size": 2, "cpus": 2}]},
            (agent("a", cpus=4),),
            "no agent can hold all roles: session_cluster_mode multi-node places them on several (role main, beside the others: a: "
            "needs 1 CPUs, 0 free)",
        ),
        (
            {**MULTI, "roles": [HEAD, {**GPUS, "size": 5}]},
            (CPU_AGENT, *GPU_AGENTS),
            "role worker: g: needs 20 CPUs, 8 free; h: needs 20 CPUs, 8 free; together they hold 4 of 5 containers",
        ),
        (
            {**MULTI, "roles": [{**HEAD, "cpus": 4}, {"name": "data", "resource_group": "cpu"}]},
            (CPU_AGENT, *GPU_AGENTS),
            "role data, beside the others: c: needs 1 CPUs, 0 free",
        ),
    ],
)
def test_a_shortfall_names_the_role(asked: dict[str, Any], agents: tuple[AgentReport, ...], reason: str) -> None:
    found = placed(asked, *agents)
    assert isinstance(found, Shortfall)
    assert found.reason == reason


def test_a_role_that_no_agent_could_ever_hold_is_known() -> None:
    asked = request(**MULTI, roles=[HEAD, {**GPUS, "gpus": 3}]).demand()
    assert never_fits(asked, (CPU_AGENT, *GPU_AGENTS)).startswith("role worker: g: needs 6 GPUs, 2 free")
    assert never_fits(request(**MULTI, roles=[HEAD, GPUS]).demand(), (CPU_AGENT, *GPU_AGENTS)) == ""
    silent = agent("s", group="gpu", reachable=False)
    assert never_fits(asked, (CPU_AGENT, *GPU_AGENTS, silent)) == ""


def test_a_session_behind_another_gets_what_its_roles_have_left() -> None:
    demand = request(**MULTI, roles=[HEAD, GPUS]).demand()
    agents = (CPU_AGENT, *GPU_AGENTS)
    queue = [
        QueueEntry(name, name, 10, float(since), demand) for since, name in enumerate(("first", "second", "third"))
    ]
    decided = schedule(queue, agents, frees(*agents), Policy(rules=QueueRules()), 10.0, lambda _entry, _place: True)
    turns = {entry.id: outcome for entry, outcome in decided}
    first, second, third = turns["first"], turns["second"], turns["third"]
    assert isinstance(first, Placement)
    assert isinstance(second, Placement)
    used = [gpu.id for one in (*first.resources, *second.resources) for gpu in one.gpus]
    assert sorted(used) == ["g0", "g1", "h0", "h1"]
    assert isinstance(third, Shortfall)
    assert third.reason.endswith(
        "(room is kept for first, second, before it in the queue; schedule.yml launches what fits)"
    )


ROLE = st.fixed_dictionaries(
    {
        "size": st.integers(1, 3),
        "cpus": st.sampled_from([1, 2, 3]),
        "memory": st.sampled_from(["512m", "1g", "2g"]),
        "gpus": st.sampled_from([0, 0, 0.25, 0.5, 1, 2]),
        "cpu_pinning": st.booleans(),
        "resource_group": st.sampled_from(["default", "default", "other"]),
    }
)


@st.composite
def requests(draw: st.DrawFn) -> dict[str, Any]:
    roles = [{"name": name, **draw(ROLE)} for name in ("ps", "worker", "data")[: draw(st.integers(1, 3))]]
    mode = draw(st.sampled_from(["single-node", "multi-node", "multi-node"]))
    return {"cluster_mode": mode, "strategy": draw(st.sampled_from(["pack", "spread"])), "roles": roles}


@st.composite
def clusters(draw: st.DrawFn) -> list[AgentReport]:
    shares = st.sampled_from([1.0, 2.0, 4.0])
    return [
        agent(
            name,
            cpus=draw(st.integers(1, 12)),
            memory=draw(st.integers(1, 24)) * GIB // 2,
            gpus=[Gpu("%s%d" % (name, number), draw(shares)) for number in range(draw(st.integers(0, 3)))],
            group=draw(st.sampled_from(["default", "default", "other", "default,other"])),
            swarm=draw(st.sampled_from(["s1", "s1", "s2", ""])),
        )
        for name in "abcd"[: draw(st.integers(1, 4))]
    ]


@given(clusters(), requests())
def test_every_container_has_what_its_role_asks_for_and_nothing_is_given_twice(
    agents: list[AgentReport], asked: dict[str, Any]
) -> None:
    made, free = request(**asked), frees(*agents)
    before = copy.deepcopy(free)
    found = place(made.demand(), agents, free)
    assert free == before
    if isinstance(found, Shortfall):
        return
    assert len(found.agents) == len(found.resources) == made.size
    by_name = {one.name: one for one in agents}
    for member, name, each in zip(made.members, found.agents, found.resources, strict=True):
        role = made.part_of(member.role)
        assert (each.millicpus, each.memory) == (role.millicpus, role.memory)
        assert sum(gpu.shares for gpu in each.gpus) == pytest.approx(role.gpus, abs=0.02)
        assert len(parse_cpuset(each.cpuset)) == (role.millicpus // 1000 if role.pinned else 0)
        assert role.group in by_name[name].groups
    for name in set(found.agents):
        mine = [each for where, each in zip(found.agents, found.resources, strict=True) if where == name]
        assert sum(one.millicpus for one in mine) <= by_name[name].capacity.millicpus
        assert sum(one.memory for one in mine) <= by_name[name].capacity.memory
        gpus: Counter[str] = Counter()
        for gpu in (gpu for one in mine for gpu in one.gpus):
            gpus[gpu.id] += gpu.shares  # type: ignore[assignment]
        assert all(booked <= 1.001 for booked in gpus.values())
        cpus = [cpu for one in mine for cpu in parse_cpuset(one.cpuset)]
        assert len(cpus) == len(set(cpus))
    used = set(found.agents)
    assert (found.mode == "single-node") == (len(used) == 1)
    assert len(used) == 1 or (len({by_name[name].swarm for name in used}) == 1 and made.mode == "multi-node")


def holds_all(one: AgentReport, parts: Sequence[Demand]) -> bool:
    """Whether an agent takes all containers, by giving it one after the other."""
    left = frees(one)[one.name]
    for each in (part.per_container for part in parts for _container in range(part.size)):
        if not left.room(each):
            return False
        left.take(each)
    return all(part.group in one.groups for part in parts)


@given(clusters(), requests())
def test_a_session_that_fits_on_one_agent_is_placed(agents: list[AgentReport], asked: dict[str, Any]) -> None:
    demand = request(**asked).demand()
    parts = sorted(demand.parts, key=lambda part: -part.per_container.gpus)
    # Fractions of GPUs can be packed badly.
    whole = not any(part.per_container.gpus % 1 for part in parts)
    if whole and any(holds_all(one, parts) for one in agents):
        assert isinstance(place(demand, agents, frees(*agents)), Placement)
