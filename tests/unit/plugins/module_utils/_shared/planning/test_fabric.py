# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sessions with ``session_fabric``: where they go, their addresses and names, and the variables of their libraries."""

from __future__ import annotations

from dataclasses import replace

import pytest
from samples import agent, frees, plan, request

from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import Resources
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.report import AgentReport, Fabric
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import InputError
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.allocation import Allocation
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.node_loss import new_places
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.placement import (
    Placement,
    Shortfall,
    free_of,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.resizing import growth_demand, resized
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.role_placement import place

ASKED = request(fabric=True, cluster_size=4, cpus=1, cluster_mode="multi-node", per_agent=2)
A, B, C = (agent(name, fabric=Fabric("eth1", "")) for name in "abc")
NONE = agent("none")
OTHER = Resources(1000, 1 << 30, fabric=True)


def test_a_session_goes_to_the_agents_with_a_fabric() -> None:
    placed = place(ASKED.demand(), [NONE, A, B], frees(NONE, A, B))
    assert isinstance(placed, Placement)
    assert placed.agents == ("a", "a", "b", "b")
    assert all(each.fabric for each in placed.resources)


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (NONE, "none has no agent_fabric for session_fabric"),
        (replace(A, fabric=Fabric("eth1", "has no link on eth1, its agent_fabric,")),
         "a has no link on eth1, its agent_fabric, for session_fabric"),
    ],
)  # fmt: skip
def test_a_session_that_no_agent_can_serve_is_refused_with_the_reason(found: AgentReport, reason: str) -> None:
    answer = place(ASKED.demand(), [found], frees(found))
    assert answer == Shortfall("no agent can hold it: " + reason, is_final=True)


def test_a_session_waits_for_a_fabric_that_another_has() -> None:
    free = {**frees(B, NONE), "a": free_of(A, [OTHER])}
    answer = place(ASKED.demand(), [A, B, NONE], free)
    assert isinstance(answer, Shortfall)
    assert not answer.is_final
    assert "a: its fabric is used by another session" in answer.reason
    assert "none has no agent_fabric for session_fabric" in answer.reason
    without = place(replace(ASKED, fabric=False).demand(), [A, B], free)
    assert isinstance(without, Placement)


def test_the_roles_of_a_session_share_a_fabric_with_no_other() -> None:
    roles = [{"name": "main", "size": 1}, {"name": "sub", "size": 2}]
    asked = request(fabric=True, cpus=1, roles=roles)
    placed = place(asked.demand(), [A], frees(A))
    assert isinstance(placed, Placement)
    assert placed.agents == ("a", "a", "a")
    taken = place(asked.demand(), [A], {"a": free_of(A, [OTHER])})
    assert isinstance(taken, Shortfall)
    assert taken.reason.endswith("a: its fabric is used by another session")


def test_a_session_grows_and_moves_beside_its_own_containers_only() -> None:
    made = plan(replace(ASKED, size=2), "ab")
    booked = {name: [one.resources for one in made.on(name)] for name in "ab"}
    free = {one.name: free_of(one, booked.get(one.name, ())) for one in (A, B, C)}
    free["c"] = free_of(C, [OTHER])
    grown = place(growth_demand(ASKED, made, [A, B, C]), [A, B, C], free)
    assert isinstance(grown, Placement)
    assert sorted(grown.agents) == ["a", "b"]
    moved = new_places(replace(ASKED, size=2), made, ["b"], [A, B, C], free, ())
    assert not isinstance(moved, Shortfall)
    assert moved["sub1"][0] == "a"
    assert resized(made, ASKED, grown).names[:4] == made.names


def test_an_address_on_the_fabric_has_the_place_of_the_private_one() -> None:
    made = plan(ASKED, "aabb")
    assert made.names[:4] == (
        ("main1", "10.201.0.2"),
        ("main1-fabric", "10.201.0.34"),
        ("sub1", "10.201.0.3"),
        ("sub1-fabric", "10.201.0.35"),
    )
    assert plan(replace(ASKED, fabric=False), "aabb").names == made.addresses


def test_subnets_of_a_decision_do_not_overlap() -> None:
    first = Allocation([], [A])
    subnet, fabric = first.subnet(ASKED).subnet, first.fabric(ASKED)
    made = plan(ASKED, "aabb", fabric=fabric)
    second = Allocation([made], [A])
    assert len({subnet, fabric, second.subnet(ASKED).subnet, second.fabric(ASKED)}) == 4
    assert not first.fabric(replace(ASKED, fabric=False))


@pytest.mark.parametrize(
    ("placement", "interface", "name"), [("aaaa", "eth1", "%s-fabric"), ("aabb", "eth2", "fabric-%s")]
)
def test_libraries_use_the_interface_on_the_fabric(placement: str, interface: str, name: str) -> None:
    made = plan(ASKED, placement)
    found = made.main.environment
    assert found["NCCL_SOCKET_IFNAME"] == "=" + interface
    assert found["GLOO_SOCKET_IFNAME"] == found["UCX_NET_DEVICES"] == found["TP_SOCKET_IFNAME"] == interface
    assert found["OMPI_MCA_btl_tcp_if_include"] == made.network.fabric
    assert found["OMPI_MCA_oob_tcp_if_include"] == found["PRTE_MCA_prte_if_include"] == made.network.subnet
    assert made.network.fabric_name == name % made.network.name


def test_a_read_only_root_is_refused() -> None:
    with pytest.raises(InputError, match=r"^session_fabric: True: must be false with session_read_only_root"):
        request(fabric=True, read_only_root=True)
