# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Properties that every placement has, whatever the agents and the demand."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import pytest
from hostile import Choices, fuzzed
from hypothesis import given
from hypothesis import strategies as st
from samples import GIB, agent, frees

from ansible_collections.cluster.compute.plugins.module_utils._shared.constants import MULTI_NODE, SINGLE_NODE
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import Gpu
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.report import (
    GREEN,
    RED,
    YELLOW,
    AgentReport,
    GpuHealth,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.capacity import (
    Demand,
    FreeCapacity,
    PerContainer,
    parse_cpuset,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.placement import (
    Placement,
    Shortfall,
    free_of,
    place,
)

CPU = PerContainer(1000, GIB)
LONG = 424  # bytes: a cluster has up to 145 choices of two bytes, five demands have 65


def drawn_each(choices: Choices, gpus: Sequence[float] = (0, 0, 0, 0.25, 0.5, 1, 2)) -> PerContainer:
    """A demand's shape, and what is booked already: shares and fractions that fit together, and some that do not."""
    return PerContainer(
        millicpus=choices.of([1000, 2000, 3000]),
        memory=choices.of([GIB // 2, GIB, 2 * GIB]),
        gpus=choices.of(gpus),
        pinned=choices.of([False, True]),
    )


def drawn_demand(choices: Choices, gpus: Sequence[float] = (0, 0, 0, 0.25, 0.5, 1, 2)) -> Demand:
    """As requests are checked: with one agent for all containers, it may have all of them."""
    size, mode = choices.of([1, 1, 1, 2, 2, 3, 4, 5, 6, 7, 8]), choices.of([SINGLE_NODE, MULTI_NODE, MULTI_NODE])
    return Demand(
        size=size,
        per_container=drawn_each(choices, gpus),
        mode=mode,
        strategy=choices.of(["pack", "spread"]),
        agents=tuple(dict.fromkeys(choices.of("abcdef") for _name in range(choices.below(4)))),
        policy=choices.of(["preferred", "strict"]),
        per_agent=choices.of([number for number in (0, 0, 1, 2, 3) if mode == MULTI_NODE or not 0 < number < size]),
    )


def drawn_cluster(
    choices: Choices, swarms: Sequence[str] = ("s1", "s1", "s1", "s2", "")
) -> tuple[list[AgentReport], dict[str, FreeCapacity]]:
    """Agents of all sorts, with something booked on them."""
    agents, free = [], {}
    for name in "abcdef"[: choices.of([3, 4, 5, 6, 0, 1, 2])]:
        cpus = choices.below(9)
        gpus = tuple(Gpu("%s-%d" % (name, n), choices.of([1.0, 2.0, 4.0])) for n in range(choices.below(4)))
        one = agent(
            name,
            cpus,
            choices.below(17) * GIB // 2,
            gpus=gpus,
            group=choices.of(["default"] * 8 + ["other"]),
            schedulable=choices.of([True] * 9 + [False]),
            reachable=choices.of([True] * 9 + [False]),
            architecture="x86_64",
            image_architecture=choices.of(["", "x86_64", "x86_64", "x86_64", "aarch64"]),
            swarm=choices.of(swarms),
            gpu_health=tuple(
                GpuHealth(gpu.id, choices.of([GREEN, GREEN, YELLOW, RED])) for gpu in gpus[: choices.below(4)]
            ),
        )
        left = free_of(one, [])
        for each in [drawn_each(choices) for _booked in range(choices.below(3))]:
            if left.room(each):
                left.take(each)
        agents.append(one)
        free[name] = left
    return agents, free


def holds(free: FreeCapacity, demand: Demand) -> int:
    """How many containers of a session an agent takes, by giving it one after the other."""
    free, count = copy.deepcopy(free), 0
    while free.room(demand.per_container) and (not demand.per_agent or count < demand.per_agent):
        free.take(demand.per_container)
        count += 1
    return count


def may_hold(one: AgentReport, demand: Demand) -> bool:
    """The rules of eligible agents, each written a second time."""
    designated = demand.policy != "strict" or not demand.agents or one.name in demand.agents
    right = one.image.architecture in ("", one.architecture)
    return one.group == demand.group and one.schedulable and one.reachable and designated and right


@fuzzed(200, LONG)
def test_no_slot_of_any_agent_is_overcommitted(choices: Choices) -> None:
    demand, (agents, free) = drawn_demand(choices), drawn_cluster(choices)
    placed = place(demand, agents, free)
    if isinstance(placed, Shortfall):
        return
    for name in set(placed.agents):
        mine = [given for where, given in zip(placed.agents, placed.resources, strict=True) if where == name]
        assert sum(one.millicpus for one in mine) <= free[name].millicpus
        assert sum(one.memory for one in mine) <= free[name].memory
        cpus = [cpu for one in mine for cpu in parse_cpuset(one.cpuset)]
        assert len(cpus) == len(set(cpus))
        assert set(cpus) <= set(free[name].cpu_ids)
        parts: Counter[str] = Counter()
        for gpu in (gpu for one in mine for gpu in one.gpus):
            parts[gpu.id] += gpu.shares  # type: ignore[assignment]
        assert all(part <= free[name].gpus[device][0] + 1e-9 for device, part in parts.items())


@fuzzed(1000, LONG)
def test_no_session_gets_a_red_gpu(choices: Choices) -> None:
    demand, (agents, free) = drawn_demand(choices, (0.25, 0.5, 1, 2)), drawn_cluster(choices)
    placed = place(demand, agents, free)
    if isinstance(placed, Placement):
        given_gpus = {gpu.id for one in placed.resources for gpu in one.gpus}
        assert given_gpus
        assert not given_gpus & {gpu.id for one in agents for gpu in one.gpu_health if gpu.state == RED}


PARTS = (Gpu("", 100.0, 24 * GIB), Gpu("", 4.0), Gpu(""), Gpu("MIG-", 0.4286, 20 * GIB), Gpu("MIG-", 0.1429, GIB))


@fuzzed(1000, LONG)
def test_no_part_of_a_gpu_is_given_twice(choices: Choices) -> None:
    kinds = [choices.of(PARTS) for _gpu in range(choices.below(7))]
    red = {choices.below(6) for _gpu in range(choices.below(7))}
    asked = [choices.of([0.05, 0.1, 0.25, 0.43, 0.5, 1, 2]) for _session in range(choices.below(41))]
    gpus = {f"{one.id}{number}": replace(one, id=f"{one.id}{number}") for number, one in enumerate(kinds)}
    sick = tuple(GpuHealth(name, RED) for number, name in enumerate(gpus) if number in red)
    host, booked = agent("a", cpus=64, memory=64 * GIB, gpus=list(gpus.values()), gpu_health=sick), []
    for fraction in asked:
        placed = place(Demand(1, PerContainer(100, GIB // 4, gpus=fraction)), [host], {"a": free_of(host, booked)})
        if isinstance(placed, Placement):
            booked += placed.resources
            for gpu in placed.resources[0].gpus:
                own = gpus[gpu.id]
                assert gpu.shares == (own.shares if own.shares < 1 else pytest.approx(min(fraction, 1)))
                assert gpu.shares >= min(fraction, 1) - 0.02
                assert gpu.id not in [one.id for one in sick]
                assert gpu.limit == (("MIG" if own.shares < 1 else "MPS" if own.memory else "") if fraction < 1 else "")
    given_parts = [gpu for one in booked for gpu in one.gpus]
    for name, own in gpus.items():
        mine = [gpu for gpu in given_parts if gpu.id == name]
        assert sum(gpu.shares for gpu in mine) <= min(1.0, own.shares) + 1e-6
        assert sum(gpu.memory for gpu in mine) <= own.memory
        assert len(mine) <= 1 or own.shares > 1


@fuzzed(200, LONG)
def test_it_is_all_or_nothing_and_everyone_gets_what_was_asked(choices: Choices) -> None:
    demand, (agents, free) = drawn_demand(choices), drawn_cluster(choices)
    before = copy.deepcopy(free)
    placed = place(demand, agents, free)
    assert free == before
    if isinstance(placed, Shortfall):
        assert placed.reason
        return
    each = demand.per_container
    assert len(placed.agents) == len(placed.resources) == demand.size
    for one in placed.resources:
        assert (one.millicpus, one.memory) == (each.millicpus, each.memory)
        assert sum(gpu.shares for gpu in one.gpus) == pytest.approx(each.gpus)
        assert len({gpu.id for gpu in one.gpus}) == len(one.gpus)
        assert len(parse_cpuset(one.cpuset)) == (each.millicpus // 1000 if each.pinned else 0)


@fuzzed(200, LONG)
def test_no_agent_gets_more_containers_than_the_session_permits(choices: Choices) -> None:
    demand, (agents, free) = drawn_demand(choices), drawn_cluster(choices)
    placed = place(demand, agents, free)
    if isinstance(placed, Placement) and demand.per_agent:
        assert max(Counter(placed.agents).values()) <= demand.per_agent


@fuzzed(200, LONG)
def test_only_agents_that_may_hold_it_do(choices: Choices) -> None:
    demand, (agents, free) = drawn_demand(choices), drawn_cluster(choices)
    placed = place(demand, agents, free)
    if isinstance(placed, Placement):
        used = [one for one in agents if one.name in placed.agents]
        assert all(may_hold(one, demand) for one in used)
        assert placed.mode == (SINGLE_NODE if len(used) == 1 else MULTI_NODE)
        assert len(used) == 1 or (demand.mode == MULTI_NODE and len({one.swarm for one in used}) == 1 and used[0].swarm)
        # An agent's ranks lie side by side.
        assert len(used) == 1 + sum(a != b for a, b in zip(placed.agents, placed.agents[1:], strict=False))


@fuzzed(200, LONG)
def test_one_agent_is_taken_whenever_one_suffices(choices: Choices) -> None:
    demand, (agents, free) = drawn_demand(choices), drawn_cluster(choices)
    placed = place(demand, agents, free)
    whole = [one.name for one in agents if may_hold(one, demand) and holds(free[one.name], demand) >= demand.size]
    if whole:
        assert isinstance(placed, Placement)
        assert len(set(placed.agents)) == 1
        assert placed.mode == SINGLE_NODE
        if set(whole) & set(demand.agents):
            assert placed.agents[0] in demand.agents
    elif demand.mode == SINGLE_NODE:
        assert isinstance(placed, Shortfall)


@fuzzed(200, LONG)
def test_pack_takes_the_fewest_agents(choices: Choices) -> None:
    demand, (agents, free) = drawn_demand(choices), drawn_cluster(choices, ("s1",))
    demand = replace(demand, mode=MULTI_NODE, strategy="pack", agents=())
    rooms = {one.name: holds(free[one.name], demand) for one in agents if may_hold(one, demand)}
    enough = [
        number
        for number in range(1, len(rooms) + 1)
        for chosen in combinations(rooms.values(), number)
        if sum(chosen) >= demand.size
    ]
    placed = place(demand, agents, free)
    assert isinstance(placed, Placement) == bool(enough)
    if isinstance(placed, Placement):
        assert len(set(placed.agents)) == min(enough)


@given(st.integers(2, 8), st.integers(1, 6), st.integers(1, 20))
def test_spread_is_even_on_equal_agents(number: int, cpus: int, size: int) -> None:
    agents = [agent("agent%d" % index, cpus=cpus) for index in range(number)]
    placed = place(Demand(size, CPU, MULTI_NODE, strategy="spread"), agents, frees(*agents))
    if size <= cpus:
        assert isinstance(placed, Placement)
        assert placed.mode == SINGLE_NODE
    elif size <= number * cpus:
        assert isinstance(placed, Placement)
        counts = Counter(placed.agents)
        assert max(counts.values()) - min(counts.values()) <= 1
        assert len(counts) == min(number, size)
    else:
        assert isinstance(placed, Shortfall)


@given(st.lists(st.integers(0, 6), min_size=1, max_size=6), st.integers(1, 20))
def test_spread_uses_every_agent_with_room(cpus: list[int], size: int) -> None:
    agents = [agent("agent%d" % index, cpus=count) for index, count in enumerate(cpus)]
    placed = place(Demand(size, CPU, MULTI_NODE, strategy="spread"), agents, frees(*agents))
    assert isinstance(placed, Placement) == (size <= sum(cpus))
    if isinstance(placed, Placement) and placed.mode == MULTI_NODE:
        counts = Counter(placed.agents)
        for one, room in zip(agents, cpus, strict=True):
            assert counts[one.name] == room or counts[one.name] >= max(counts.values()) - 1


@fuzzed(200, LONG)
def test_the_answer_does_not_hang_on_the_order_of_agents(choices: Choices) -> None:
    demand, (agents, free) = drawn_demand(choices), drawn_cluster(choices)
    shuffled = sorted(agents, key=lambda _agent: choices.below(1000))
    again = {name: free[name] for name in sorted(free, reverse=True)}
    first, second = place(demand, agents, free), place(demand, shuffled, again)
    assert first == place(demand, agents, free) == second


@fuzzed(200, LONG)
def test_more_capacity_never_turns_a_fit_into_a_shortfall(choices: Choices) -> None:
    demand, (agents, free) = drawn_demand(choices), drawn_cluster(choices)
    if not agents or isinstance(place(demand, agents, free), Shortfall):
        return
    more = copy.deepcopy(free)
    grown, cpus = more[choices.of(agents).name], choices.below(5)
    grown.millicpus += cpus * 1000
    grown.memory += choices.below(9) * GIB
    grown.cpu_ids += range(100, 100 + cpus)
    grown.gpus.update(("new-%d" % number, (1.0, 4.0)) for number in range(choices.below(3)))
    assert isinstance(place(demand, agents, more), Placement)


@fuzzed(200, LONG)
def test_another_agent_never_turns_a_fit_into_a_shortfall(choices: Choices) -> None:
    demand, (agents, free) = drawn_demand(choices), drawn_cluster(choices)
    if isinstance(place(demand, agents, free), Shortfall):
        return
    new = agent("new", cpus=choices.below(10), swarm=choices.of(["s1", "s2", ""]))
    assert isinstance(place(demand, [*agents, new], {**free, **frees(new)}), Placement)


@fuzzed(200, LONG)
def test_what_is_placed_one_after_the_other_never_shares_a_device(choices: Choices) -> None:
    agents, free = drawn_cluster(choices)
    parts: Counter[str] = Counter()
    for demand in [drawn_demand(choices) for _demand in range(choices.below(6))]:
        placed = place(demand, agents, free)
        if isinstance(placed, Placement):
            given = [free[name].take(demand.per_container) for name in placed.agents]
            # What the placement says is what taking it gives.
            assert given == list(placed.resources)
            for gpu in (gpu for one in given for gpu in one.gpus):
                parts[gpu.id] += gpu.shares  # type: ignore[assignment]
    assert all(part <= 1 + 1e-9 for part in parts.values())
