# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Placement: what must hold of every answer, as properties; what the answers are, as tables."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import GIB, agent, frees

from ansible_collections.cluster.compute.plugins.module_utils._core.constants import MULTI_NODE, SINGLE_NODE
from ansible_collections.cluster.compute.plugins.module_utils._core.model import Gpu
from ansible_collections.cluster.compute.plugins.module_utils._core.reports import Agent
from ansible_collections.cluster.compute.plugins.module_utils._planning.capacity import (
    FreeCapacity,
    PerContainer,
    free_of,
    parse_cpuset,
)
from ansible_collections.cluster.compute.plugins.module_utils._planning.placement import (
    Demand,
    Placement,
    Shortfall,
    place,
)

CPU = PerContainer(1000, GIB)

# A demand's shape is also what is booked already: shares and fractions that fit together, and some that do not.
EACH = st.builds(
    PerContainer,
    millicpus=st.sampled_from([1000, 2000, 3000]),
    memory=st.sampled_from([GIB // 2, GIB, 2 * GIB]),
    gpus=st.sampled_from([0, 0, 0, 0.25, 0.5, 1, 2]),
    pinned=st.booleans(),
)
DEMAND = st.builds(
    Demand,
    size=st.integers(1, 8),
    each=EACH,
    mode=st.sampled_from([SINGLE_NODE, MULTI_NODE, MULTI_NODE]),
    strategy=st.sampled_from(["pack", "spread"]),
    agents=st.lists(st.sampled_from("abcdef"), max_size=3, unique=True).map(tuple),
    policy=st.sampled_from(["preferred", "strict"]),
)


@st.composite
def clusters(
    draw: st.DrawFn, swarms: Sequence[str] = ("s1", "s1", "s1", "s2", "")
) -> tuple[list[Agent], dict[str, FreeCapacity]]:
    """Agents of all sorts, with something booked on them."""
    agents, free = [], {}
    for name in "abcdef"[: draw(st.integers(0, 6))]:
        cpus = draw(st.integers(0, 8))
        one = Agent(
            name,
            millicpus=cpus * 1000,
            memory=draw(st.integers(0, 16)) * GIB // 2,
            gpus=tuple(
                Gpu("%s-%d" % (name, n), draw(st.sampled_from([1.0, 2.0, 4.0]))) for n in range(draw(st.integers(0, 3)))
            ),
            cpu_ids=tuple(range(cpus)),
            group=draw(st.sampled_from(["default"] * 4 + ["other"])),
            schedulable=draw(st.sampled_from([True] * 5 + [False])),
            reachable=draw(st.sampled_from([True] * 5 + [False])),
            architecture="x86_64",
            image_architecture=draw(st.sampled_from(["", "x86_64", "x86_64", "aarch64"])),
            swarm=draw(st.sampled_from(swarms)),
        )
        left = free_of(one, [])
        for each in draw(st.lists(EACH, max_size=2)):
            if left.room(each):
                left.take(each)
        agents.append(one)
        free[name] = left
    return agents, free


def holds(free: FreeCapacity, each: PerContainer) -> int:
    """How many containers an agent takes, by giving it one after the other."""
    free, count = copy.deepcopy(free), 0
    while free.room(each):
        free.take(each)
        count += 1
    return count


def may_hold(one: Agent, demand: Demand) -> bool:
    """The rules of who may hold a container, each written down once more."""
    designated = demand.policy != "strict" or not demand.agents or one.name in demand.agents
    right = one.image_architecture in ("", one.architecture)
    return one.group == demand.group and one.schedulable and one.reachable and designated and right


@given(clusters(), DEMAND)
def test_no_slot_of_any_agent_is_overcommitted(
    cluster: tuple[list[Agent], dict[str, FreeCapacity]], demand: Demand
) -> None:
    agents, free = cluster
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


@given(clusters(), DEMAND)
def test_it_is_all_or_nothing_and_everyone_gets_what_was_asked(
    cluster: tuple[list[Agent], dict[str, FreeCapacity]], demand: Demand
) -> None:
    agents, free = cluster
    before = copy.deepcopy(free)
    placed = place(demand, agents, free)
    assert free == before
    if isinstance(placed, Shortfall):
        assert placed.reason
        return
    each = demand.each
    assert len(placed.agents) == len(placed.resources) == demand.size
    for one in placed.resources:
        assert (one.millicpus, one.memory) == (each.millicpus, each.memory)
        assert sum(gpu.shares for gpu in one.gpus) == pytest.approx(each.gpus)
        assert len({gpu.id for gpu in one.gpus}) == len(one.gpus)
        assert len(parse_cpuset(one.cpuset)) == (each.millicpus // 1000 if each.pinned else 0)


@given(clusters(), DEMAND)
def test_only_agents_that_may_hold_it_do(cluster: tuple[list[Agent], dict[str, FreeCapacity]], demand: Demand) -> None:
    agents, free = cluster
    placed = place(demand, agents, free)
    if isinstance(placed, Placement):
        used = [one for one in agents if one.name in placed.agents]
        assert all(may_hold(one, demand) for one in used)
        assert placed.mode == (SINGLE_NODE if len(used) == 1 else MULTI_NODE)
        assert len(used) == 1 or (demand.mode == MULTI_NODE and len({one.swarm for one in used}) == 1 and used[0].swarm)
        # An agent's ranks lie side by side.
        assert len(used) == 1 + sum(a != b for a, b in zip(placed.agents, placed.agents[1:], strict=False))


@given(clusters(), DEMAND)
def test_one_agent_is_taken_whenever_one_suffices(
    cluster: tuple[list[Agent], dict[str, FreeCapacity]], demand: Demand
) -> None:
    agents, free = cluster
    placed = place(demand, agents, free)
    whole = [one.name for one in agents if may_hold(one, demand) and holds(free[one.name], demand.each) >= demand.size]
    if whole:
        assert isinstance(placed, Placement)
        assert len(set(placed.agents)) == 1
        assert placed.mode == SINGLE_NODE
        if set(whole) & set(demand.agents):
            assert placed.agents[0] in demand.agents
    elif demand.mode == SINGLE_NODE:
        assert isinstance(placed, Shortfall)


@given(clusters(swarms=("s1",)), DEMAND)
def test_pack_takes_the_fewest_agents(cluster: tuple[list[Agent], dict[str, FreeCapacity]], demand: Demand) -> None:
    agents, free = cluster
    demand = replace(demand, mode=MULTI_NODE, strategy="pack", agents=())
    rooms = {one.name: holds(free[one.name], demand.each) for one in agents if may_hold(one, demand)}
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
def test_spread_leaves_nobody_behind_who_has_room(cpus: list[int], size: int) -> None:
    agents = [agent("agent%d" % index, cpus=count) for index, count in enumerate(cpus)]
    placed = place(Demand(size, CPU, MULTI_NODE, strategy="spread"), agents, frees(*agents))
    assert isinstance(placed, Placement) == (size <= sum(cpus))
    if isinstance(placed, Placement) and placed.mode == MULTI_NODE:
        counts = Counter(placed.agents)
        for one, room in zip(agents, cpus, strict=True):
            assert counts[one.name] == room or counts[one.name] >= max(counts.values()) - 1


@given(clusters(), DEMAND, st.randoms(use_true_random=False))
def test_the_answer_does_not_hang_on_the_order_of_agents(
    cluster: tuple[list[Agent], dict[str, FreeCapacity]], demand: Demand, random: object
) -> None:
    agents, free = cluster
    shuffled = list(agents)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    again = {name: free[name] for name in sorted(free, reverse=True)}
    first, second = place(demand, agents, free), place(demand, shuffled, again)
    assert first == place(demand, agents, free) == second


@given(clusters(), DEMAND, st.integers(0, 5), st.integers(0, 4), st.integers(0, 8), st.integers(0, 2))
def test_more_capacity_never_turns_a_fit_into_a_shortfall(
    cluster: tuple[list[Agent], dict[str, FreeCapacity]], demand: Demand, index: int, cpus: int, memory: int, gpus: int
) -> None:
    agents, free = cluster
    if not agents or isinstance(place(demand, agents, free), Shortfall):
        return
    more = copy.deepcopy(free)
    grown = more[agents[index % len(agents)].name]
    grown.millicpus += cpus * 1000
    grown.memory += memory * GIB
    grown.cpu_ids += range(100, 100 + cpus)
    grown.gpus.update(("new-%d" % number, (1.0, 4.0)) for number in range(gpus))
    assert isinstance(place(demand, agents, more), Placement)


@given(clusters(), DEMAND, st.sampled_from(["s1", "s2", ""]), st.integers(0, 9))
def test_another_agent_never_turns_a_fit_into_a_shortfall(
    cluster: tuple[list[Agent], dict[str, FreeCapacity]], demand: Demand, swarm: str, cpus: int
) -> None:
    agents, free = cluster
    if isinstance(place(demand, agents, free), Shortfall):
        return
    new = agent("new", cpus=cpus, swarm=swarm)
    assert isinstance(place(demand, [*agents, new], {**free, **frees(new)}), Placement)


@given(clusters(), st.lists(DEMAND, max_size=5))
def test_what_is_placed_one_after_the_other_never_shares_a_device(
    cluster: tuple[list[Agent], dict[str, FreeCapacity]], demands: list[Demand]
) -> None:
    agents, free = cluster
    parts: Counter[str] = Counter()
    for demand in demands:
        placed = place(demand, agents, free)
        if isinstance(placed, Placement):
            given = [free[name].take(demand.each) for name in placed.agents]
            # What the placement says is what taking it gives.
            assert given == list(placed.resources)
            for gpu in (gpu for one in given for gpu in one.gpus):
                parts[gpu.id] += gpu.shares  # type: ignore[assignment]
    assert all(part <= 1 + 1e-9 for part in parts.values())


BIG, MIDDLE, SMALL = agent("big", cpus=8), agent("middle", cpus=6), agent("small", cpus=4)
ALONE = agent("alone", cpus=8, swarm="")
ELSEWHERE = agent("elsewhere", cpus=8, swarm="swarm2")


@pytest.mark.parametrize(
    ("demand", "agents", "expected"),
    [
        pytest.param(Demand(3, CPU), [BIG, SMALL], ["small"] * 3, id="the tightest of those that hold all"),
        pytest.param(
            Demand(3, CPU, MULTI_NODE), [BIG, SMALL], ["small"] * 3, id="multi-node on one agent when one suffices"
        ),
        pytest.param(
            Demand(3, CPU, MULTI_NODE, strategy="spread"), [BIG, SMALL], ["small"] * 3, id="and so under spread"
        ),
        pytest.param(
            Demand(9, CPU, MULTI_NODE),
            [SMALL, MIDDLE, BIG],
            ["big"] * 8 + ["small"],
            id="pack: roomiest, then tightest",
        ),
        pytest.param(
            Demand(9, CPU, MULTI_NODE, strategy="spread"),
            [SMALL, MIDDLE, BIG],
            ["big"] * 3 + ["middle"] * 3 + ["small"] * 3,
            id="spread: evenly",
        ),
        pytest.param(
            Demand(16, CPU, MULTI_NODE, strategy="spread"),
            [SMALL, MIDDLE, BIG],
            ["big"] * 6 + ["middle"] * 6 + ["small"] * 4,
            id="spread: as evenly as the room allows",
        ),
        pytest.param(Demand(2, CPU, agents=("big",)), [BIG, SMALL], ["big"] * 2, id="preferred agent"),
        pytest.param(Demand(7, CPU, agents=("small",)), [BIG, SMALL], ["big"] * 7, id="preferred agent is full"),
        pytest.param(Demand(2, CPU, agents=("gone",)), [BIG, SMALL], ["small"] * 2, id="preferred agent is unknown"),
        pytest.param(
            Demand(10, CPU, MULTI_NODE, agents=("small", "middle")),
            [BIG, MIDDLE, SMALL],
            ["middle"] * 6 + ["small"] * 4,
            id="preferred agents together",
        ),
        pytest.param(
            Demand(6, CPU, MULTI_NODE, agents=("big",), policy="strict"), [BIG, MIDDLE], ["big"] * 6, id="strict agent"
        ),
        pytest.param(
            Demand(9, CPU, MULTI_NODE),
            [BIG, ELSEWHERE, SMALL, ALONE],
            ["big"] * 8 + ["small"],
            id="agents of one Swarm",
        ),
        pytest.param(Demand(8, CPU), [ALONE], ["alone"] * 8, id="a single agent needs no Swarm"),
        pytest.param(
            Demand(1, CPU),
            [replace(SMALL, gpus=(Gpu("x"),)), BIG],
            ["big"],
            id="devices are kept for those who need them",
        ),
    ],
)
def test_where_a_session_goes(demand: Demand, agents: list[Agent], expected: list[str]) -> None:
    placed = place(demand, agents, frees(*agents))
    assert isinstance(placed, Placement)
    assert list(placed.agents) == expected
    assert placed.mode == (SINGLE_NODE if len(set(expected)) == 1 else MULTI_NODE)


@pytest.mark.parametrize(
    ("demand", "agents", "reason"),
    [
        pytest.param(Demand(1, CPU), [], "there is no agent in the inventory", id="nobody"),
        pytest.param(Demand(4, CPU), [agent("agent2", cpus=1)], "agent2: needs 4 CPUs, 1 free", id="CPUs"),
        pytest.param(
            Demand(2, PerContainer(1000, 8 * GIB)),
            [agent("a", memory=12 * GIB)],
            "a: needs 16g memory, 12g free",
            id="memory",
        ),
        pytest.param(
            Demand(1, PerContainer(1000, GIB, gpus=2)), [agent("a", gpus=["x"])], "a: needs 2 GPUs, 1 free", id="GPUs"
        ),
        pytest.param(
            Demand(1, PerContainer(1000, GIB, gpus=0.5)),
            [agent("a", gpus=["x"])],
            "a: needs 0.5 GPUs, 0 free",
            id="no shares",
        ),
        pytest.param(
            Demand(9, CPU),
            [SMALL, BIG],
            "big: needs 9 CPUs, 8 free; small: needs 9 CPUs, 4 free",
            id="single-node never spans",
        ),
        pytest.param(
            Demand(13, CPU, MULTI_NODE),
            [SMALL, BIG],
            "big: needs 13 CPUs, 8 free; small: needs 13 CPUs, 4 free; together they hold 12 of 13 containers",
            id="together not enough",
        ),
        pytest.param(
            Demand(9, CPU, MULTI_NODE),
            [BIG, ALONE],
            "the agents are not in one Swarm (alone in no Swarm): provision_agents.yml joins them",
            id="no Swarm",
        ),
        pytest.param(
            Demand(9, CPU, MULTI_NODE),
            [BIG, ELSEWHERE],
            "the agents are not in one Swarm (2 Swarms): provision_agents.yml joins them",
            id="two Swarms",
        ),
        pytest.param(
            Demand(9, CPU, MULTI_NODE),
            [BIG, ELSEWHERE, agent("full", cpus=0, swarm="")],
            "the agents are not in one Swarm (2 Swarms): provision_agents.yml joins them",
            id="two Swarms, and a full agent in none",
        ),
        pytest.param(
            Demand(5, CPU, policy="strict", agents=("small",)),
            [BIG, SMALL],
            "small: needs 5 CPUs, 4 free; big is not among the designated agents",
            id="strict and too small",
        ),
        pytest.param(
            Demand(1, CPU, policy="strict", agents=("gone",)),
            [SMALL],
            "no agent may hold it: small is not among the designated agents",
            id="strict and unknown",
        ),
        pytest.param(
            Demand(1, CPU, group="gpu"),
            [SMALL],
            "no agent may hold it: small is in resource group default",
            id="resource group",
        ),
        pytest.param(
            Demand(9, CPU),
            [BIG, replace(SMALL, reachable=False, reason="timed out"), replace(ALONE, group="gpu")],
            "big: needs 9 CPUs, 8 free; small cannot be reached (timed out)",
            id="lost agents are part of the reason, other groups are not",
        ),
        pytest.param(
            Demand(1, CPU),
            [replace(SMALL, reachable=False)],
            "no agent may hold it: small cannot be reached",
            id="lost",
        ),
        pytest.param(
            Demand(1, CPU),
            [replace(SMALL, schedulable=False)],
            "no agent may hold it: small is not schedulable",
            id="unschedulable",
        ),
        pytest.param(
            Demand(1, CPU),
            [replace(SMALL, architecture="aarch64", image_architecture="x86_64")],
            "no agent may hold it: small is aarch64, the image is for x86_64",
            id="architecture",
        ),
        pytest.param(
            Demand(3, CPU),
            [agent("a%02d" % number, cpus=1) for number in range(10)],
            "; ".join("a%02d: needs 3 CPUs, 1 free" % number for number in range(8)) + "; and 2 more",
            id="a long list is cut",
        ),
    ],
)
def test_why_a_session_waits(demand: Demand, agents: list[Agent], reason: str) -> None:
    assert place(demand, agents, frees(*agents)) == Shortfall(reason)
