# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan of a session in another size: what stays is what it was, and what is added has a place of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import agent, exactly, frees, plan, request

from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import Plan
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.report import Fabric
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import ConflictError
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.placement import Placement, Shortfall
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.request import Request
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.resizing import (
    added_since,
    check_subnet,
    growth_demand,
    is_resize,
    resized,
    without,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.role_placement import place
from ansible_collections.cluster.compute.plugins.plugin_utils._session.agreement import check_agreement

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
    smaller = request(cluster_size=len(names), cluster_mode="multi-node", **rules).with_sizes([min(size, len(names))])
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


def test_a_session_whose_network_reaches_no_agent_grows_nowhere() -> None:
    before = plan(request(cluster_size=2, cluster_mode="multi-node"), "ab")
    others = [agent("c", swarm="other")]
    demand = growth_demand(request(cluster_size=3, cluster_mode="multi-node"), before, others)
    assert isinstance(place(demand, others, frees(*others)), Shortfall)


def test_only_the_size_may_differ() -> None:
    two = request(cluster_size=2)
    assert is_resize(two, request(cluster_size=3))
    assert not is_resize(two, two)
    assert not is_resize(two, request(cluster_size=3, memory="2g"))
    elastic = request(cluster_size=4, torchrun="elastic", torchrun_nodes="2:4")
    assert elastic.with_sizes([6]).torchrun_nodes == "2:6"
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


ROLE_SIZES = st.lists(st.integers(1, 4), min_size=3, max_size=3)


def with_roles(sizes: Sequence[int], **variables: object) -> Request:
    names = zip(("ps", "worker", "x-y"), sizes, (0, 2, 3), strict=True)
    roles = [{"name": name, "size": size, "per_agent": most} for name, size, most in names]
    return request(cluster_mode="multi-node", roles=roles, **variables)


@given(st.lists(ROLE_SIZES, min_size=2, max_size=4), st.data())
def test_in_sessions_with_roles_what_stays_keeps_name_and_address(steps: list[list[int]], data: st.DataObject) -> None:
    """Sizes change one after another, larger and smaller at once. Each plan is the plan of its request."""
    asked = with_roles(steps[0])
    last = plan(asked, data.draw(st.text("abc", min_size=asked.size, max_size=asked.size)))
    for sizes in steps[1:]:
        before, asked = last, with_roles(sizes)
        free = frees(*AGENTS)
        for one in before.containers:
            free[one.agent].book(one.resources)
        added: Placement | Shortfall = Placement((), (), "")
        if any(size > old for size, old in zip(asked.sizes, before.session.sizes, strict=True)):
            added = place(growth_demand(asked, before, AGENTS), AGENTS, free)
        if isinstance(added, Shortfall):
            continue
        last = resized(before, asked, added)
        check_agreement(last, asked, "abc", "head")
        assert [one.hostname for one in last.containers] == [member.hostname for member in asked.members]
        assert len({one.address for one in last.containers}) == len(last.containers)
        former = {one.hostname: one for one in before.containers}
        kept = [(one, former.pop(one.hostname)) for one in last.containers if one.hostname in former]
        for new, old in kept:
            same = ("id", "name", "hostname", "index", "agent", "address", "resources", "ports")
            assert [getattr(new, name) for name in same] == [getattr(old, name) for name in same]
            assert new.labels[SPEC] == old.labels[SPEC]
        # The last ones of their role leave, and all that is added has a place.
        assert set(former) == {
            f"{role.name}{index}"
            for role, size in zip(before.session.roles, asked.sizes, strict=True)
            for index in range(size + 1, role.size + 1)
        }
        names = added_since(last, before.session.sizes)
        assert len(names) == len(added.agents) == len(last.containers) - len(kept)
        assert without(asked, names).sizes == tuple(map(min, asked.sizes, before.session.sizes))


def test_the_limit_for_each_agent_counts_the_role_alone() -> None:
    """Two of three agents have a ps, and the role has at most two containers on each."""
    asked = request(
        cluster_mode="multi-node", roles=[{"name": "ps", "size": 2}, {"name": "w", "size": 3, "per_agent": 2}]
    )
    before = plan(asked, "aabaab")
    wanted = asked.with_sizes([1, 2, 6])
    found = place(growth_demand(wanted, before, AGENTS), AGENTS, frees(*AGENTS))
    assert isinstance(found, Placement)
    assert Counter(found.agents) == {"b": 1, "c": 2}
    assert isinstance(
        place(growth_demand(asked.with_sizes([1, 2, 7]), before, AGENTS), AGENTS, frees(*AGENTS)), Shortfall
    )


def test_a_role_grows_on_the_fabric_that_another_role_has() -> None:
    asked = request(cluster_mode="multi-node", roles=[{"name": "w"}], fabric=True)
    before = plan(asked, "ab")
    agents = [agent(name, cpus=cpus, fabric=Fabric("eth1", "")) for name, cpus in (("a", 2), ("b", 0))]
    free = {name: replace(one, has_fabric=False) for name, one in frees(*agents).items()}
    found = place(growth_demand(asked.with_sizes([1, 2]), before, agents), agents, free)
    assert isinstance(found, Placement)
    assert found.agents == ("a",)


def test_only_the_sizes_of_roles_may_differ() -> None:
    roles = [{"name": "ps", "size": 2}, {"name": "worker", "size": 3}]
    first = request(roles=roles, torchrun="elastic", torchrun_nodes="2:4")
    wider = request(roles=[roles[0], {"name": "worker", "size": 4}], torchrun="elastic", torchrun_nodes="2:5")
    assert is_resize(first, wider)
    assert first.with_sizes(wider.sizes) == wider
    # The sum is the same.
    assert is_resize(request(roles=roles), request(roles=[{"name": "ps", "size": 3}, {"name": "worker", "size": 2}]))
    for other in (
        roles[:1],
        [*roles, {"name": "x"}],
        roles[::-1],
        [{"name": "ps", "size": 2}, {"name": "w", "size": 4}],
        [{"name": "ps", "size": 2}, {"name": "worker", "size": 4, "cpus": 2}],
    ):
        assert not is_resize(request(roles=roles), request(roles=other))
    assert not is_resize(request(roles=roles), request(cluster_size=7))
