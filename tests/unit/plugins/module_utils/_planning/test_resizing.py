# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan of a session in another size: what stays is what it was, and what is added has a place of its own."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import agent, exactly, frees, plan, request

from ansible_collections.cluster.compute.plugins.module_utils._core.errors import ConflictError
from ansible_collections.cluster.compute.plugins.module_utils._core.model import Plan
from ansible_collections.cluster.compute.plugins.module_utils._planning.agreement import check_agreement
from ansible_collections.cluster.compute.plugins.module_utils._planning.placement import Placement, Shortfall, place
from ansible_collections.cluster.compute.plugins.module_utils._planning.resizing import (
    check_subnet,
    growth_demand,
    is_resize,
    resized,
    with_size,
)

AGENTS = [agent(name, cpus=8) for name in "abc"]
SPEC = "cluster.compute.container.spec"


def grown(before: Plan, size: int, **variables: object) -> Plan | Shortfall:
    """The plan in this size, with what is added beside the containers that stay."""
    asked = request(cluster_size=size, cluster_mode="multi-node", **variables)
    free = frees(*AGENTS)
    for container in before.containers:
        free[container.agent].take(asked.demand().per_container)
    found = place(growth_demand(asked, before, AGENTS), AGENTS, free)
    return found if isinstance(found, Shortfall) else resized(before, asked, found)


@given(
    st.text("abc", min_size=2, max_size=9).map(sorted).filter(lambda names: len(set(names)) > 1),
    st.integers(1, 12),
    st.sampled_from(["pack", "spread"]),
    st.sampled_from([0, 4, 5]),
)
def test_what_stays_is_unchanged_and_names_are_contiguous(
    names: list[str], size: int, strategy: str, per_agent: int
) -> None:
    rules = {"strategy": strategy, "per_agent": per_agent, "cpus": 1}
    before = plan(request(cluster_size=len(names), cluster_mode="multi-node", **rules), names)
    smaller = with_size(request(cluster_size=len(names), cluster_mode="multi-node", **rules), min(size, len(names)))
    after = grown(before, size, **rules) if size > len(names) else resized(before, smaller)
    if isinstance(after, Shortfall):
        held = Counter(names)
        room = sum(max(0, min(8, per_agent or 8) - held[one.name]) for one in AGENTS)
        assert size - len(names) > room
        return
    assert [one.hostname for one in after.containers] == ["main1", *(f"sub{index}" for index in range(1, size))]
    for old, new in zip(before.containers, after.containers, strict=False):
        kept = ("id", "name", "hostname", "index", "rank", "local_rank", "agent", "address", "resources", "ports")
        assert [getattr(new, name) for name in kept] == [getattr(old, name) for name in kept]
        assert new.labels[SPEC] == old.labels[SPEC]
    assert len({one.address for one in after.containers}) == len({one.id for one in after.containers}) == size
    ranks = Counter(one.agent for one in after.containers)
    assert max(ranks.values()) <= max(8, *Counter(names).values())
    assert not per_agent or all(ranks[name] <= max(per_agent, Counter(names)[name]) for name in ranks)
    places = [(one.agent, one.local_rank) for one in after.containers]
    assert len(set(places)) == size
    assert {one.environment["BACKENDAI_CLUSTER_SIZE"] for one in after.containers} == {str(size)}
    assert after.network.subnet == before.network.subnet


def test_growing_and_shrinking_gives_the_first_plan_again() -> None:
    first = request(cluster_size=3)
    before = plan(first, "aaa")
    added = Placement(("a", "a"), (before.main.resources, before.main.resources), "single-node")
    between = resized(before, request(cluster_size=5), added)
    check_agreement(between, request(cluster_size=5), "a", "head")
    back = resized(between, first, launch=before.session.launch)
    check_agreement(back, first, "a", "head")
    assert [one.environment for one in back.containers] == [one.environment for one in before.containers]
    # The digest of the first request and its size stay with the session, so that its labels describe it without a store.
    assert back.session.request == between.session.request == first.digest
    assert back.main.labels["cluster.compute.session.first"] == "3"


def test_a_session_on_a_bridge_grows_on_its_own_host_only() -> None:
    before = plan(request(cluster_size=2), "aa")
    demand = growth_demand(request(cluster_size=9, cluster_mode="multi-node"), before, AGENTS)
    assert (demand.mode, demand.agents, demand.policy, demand.size) == ("single-node", ("a",), "strict", 7)
    found = place(demand, AGENTS, {**frees(*AGENTS), "a": frees(agent("a", cpus=1))["a"]})
    assert isinstance(found, Shortfall)
    assert found.reason == "a: needs 7 CPUs, 1 free"


def test_a_session_on_an_overlay_grows_in_its_own_swarm_only() -> None:
    before = plan(request(cluster_size=2, cluster_mode="multi-node"), "ab")
    agents = [*AGENTS[:2], agent("c", swarm="other"), agent("d")]
    assert growth_demand(request(cluster_size=3, cluster_mode="multi-node"), before, agents).agents == ("a", "b", "d")
    strict = {"agents": ["a", "b"], "agents_policy": "strict"}
    asked = request(cluster_size=3, cluster_mode="multi-node", **strict)
    assert growth_demand(asked, before, agents).agents == ("a", "b")


def test_only_the_size_may_differ() -> None:
    two = request(cluster_size=2)
    assert is_resize(two, request(cluster_size=3))
    assert not is_resize(two, two)
    assert not is_resize(two, request(cluster_size=3, memory="2g"))
    elastic = request(cluster_size=4, torchrun="elastic", torchrun_nodes="2:4")
    assert with_size(elastic, 6).torchrun_nodes == "2:6"
    assert is_resize(elastic, request(cluster_size=6, torchrun="elastic", torchrun_nodes="2:6"))
    assert not is_resize(elastic, request(cluster_size=6, torchrun="elastic", torchrun_nodes="3:6"))


def test_a_size_beyond_the_subnet_is_refused() -> None:
    before = plan(request(cluster_size=2), "aa")
    check_subnet(request(cluster_size=14), before)
    message = (
        "Session train keeps its 2 containers: its subnet 10.201.0.0/27 has no addresses for 15. End it, and launch it "
        "with that size."
    )
    with pytest.raises(ConflictError, match=exactly(message)):
        check_subnet(request(cluster_size=15), before)
