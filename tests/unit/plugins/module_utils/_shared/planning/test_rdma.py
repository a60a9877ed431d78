# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sessions with ``session_rdma``: where they go, and which devices their libraries use."""

from __future__ import annotations

from dataclasses import replace

import pytest
from samples import agent, frees, plan, request, with_capacity

from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.report import (
    AgentReport,
    Fabric,
    HostNetwork,
    RdmaPort,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import ComputeError
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.node_loss import moved_plan, new_places
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.placement import (
    Placement,
    Shortfall,
    free_of,
    place,
    usable_ports,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.plan import with_user_environment
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.resizing import growth_demand, resized
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.role_placement import (
    place as place_roles,
)
from ansible_collections.cluster.compute.plugins.plugin_utils._session.agreement import check_agreement


def with_ports(name: str, *ports: tuple[str, str, bool], **fields: object) -> AgentReport:
    return agent(name, swarm="", rdma_ports=tuple(RdmaPort(*port) for port in ports), **fields)


INFINIBAND = with_ports("ib", ("mlx5_0:1", "InfiniBand", True), ("mlx5_1:1", "InfiniBand", True))
ROCE = with_ports("roce", ("mlx5_0:1", "Ethernet", True))
ASKED = request(rdma=True, cluster_size=2, cpus=1)


def test_a_session_goes_to_the_agents_with_infiniband() -> None:
    agents = [ROCE, INFINIBAND]
    placed = place(ASKED.demand(), agents, frees(*agents))
    assert isinstance(placed, Placement)
    assert placed.agents == ("ib", "ib")
    assert place(request(cluster_size=2).demand(), [ROCE], frees(ROCE)) != placed


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (
            ROCE,
            "roce has no port for session_rdma: mlx5_0:1 is RoCE, which works only with session_fabric or session_network: host",
        ),
        (with_ports("a", ("mlx5_0:1", "InfiniBand", False)), "a has no port for session_rdma: mlx5_0:1 is not active"),
        (agent("a"), "a has no RDMA device for session_rdma"),
        (replace(INFINIBAND, paths={"/dev/infiniband": False}), "ib has no /dev/infiniband for session_rdma"),
    ],
)
def test_a_session_that_no_agent_can_serve_is_refused_with_the_reason(found: AgentReport, reason: str) -> None:
    answer = place(ASKED.demand(), [found], frees(found))
    assert answer == Shortfall("no agent can hold it: " + reason, is_final=True)


def on_fabric(*ports: tuple[str, str, bool, bool]) -> AgentReport:
    return agent("roce", swarm="", rdma_ports=tuple(RdmaPort(*port) for port in ports), fabric=Fabric("ens2", ""))


OVER_FABRIC = request(rdma=True, fabric=True, cluster_size=2, cpus=1)
ROCE_PORT = ("mlx5_0:1", "Ethernet", True, True)


def test_roce_needs_the_fabric_of_its_own_interface() -> None:
    found = on_fabric(ROCE_PORT, ("mlx5_1:1", "Ethernet", True, False))
    placed = place(OVER_FABRIC.demand(), [found], frees(found))
    assert isinstance(placed, Placement)
    assert usable_ports(found, True, False) == ("mlx5_0:1",)
    private = place(ASKED.demand(), [found], frees(found))
    reason = "roce has no port for session_rdma: mlx5_0:1, mlx5_1:1 is RoCE, which works only with session_fabric or session_network: host"
    assert private == Shortfall("no agent can hold it: " + reason, is_final=True)


def on_host(*ports: tuple[str, bool, bool, bool], fabric: str = "") -> AgentReport:
    """An agent with RoCE ports, given by their name and whether they are active, on its fabric, and have a GID of it."""
    listed = tuple(RdmaPort(name, "Ethernet", *states) for name, *states in ports)
    own = HostNetwork("192.0.2.5", "ens1", "")
    return agent("roce", swarm="", rdma_ports=listed, fabric=Fabric(fabric, "no link"), host_network=own)


ON_HOST = request(rdma=True, network="host", cpus=1)
RAILS = [("mlx5_0:1", True, True, True), ("mlx5_1:1", True, False, True), ("mlx5_2:1", True, False, False)]


@pytest.mark.parametrize(("fabric", "expected"), [("", ("mlx5_0:1", "mlx5_1:1")), ("ens2", ("mlx5_0:1",))])
def test_on_the_network_of_the_hosts_roce_works_through_the_ports_with_their_addresses(
    fabric: str, expected: tuple[str, ...]
) -> None:
    """An agent_fabric, if there is one, is the interface for training. What keeps other networks off it is no matter."""
    found = on_host(*RAILS, fabric=fabric)
    placed = place(ON_HOST.demand(), [found], frees(found))
    assert isinstance(placed, Placement)
    assert usable_ports(found, False, True) == expected


def test_a_session_on_the_network_of_the_hosts_leaves_out_agents_whose_ports_do_not_work() -> None:
    agents = [
        replace(on_host(RAILS[number]), name=name, host_network=HostNetwork("192.0.2.%d" % number, "ens1", ""))
        for number, name in ((0, "a"), (2, "b"), (1, "c"))
    ]
    asked = request(rdma=True, network="host", cpus=1, cluster_size=2)
    placed = place_roles(asked.demand(), agents, frees(*agents))
    assert isinstance(placed, Placement)
    assert set(placed.agents) == {"a", "c"}
    answer = place_roles(asked.demand(), agents[:2], frees(*agents[:2]))
    reason = "session_network: host needs 2 agents, 1 is eligible; b has no port for session_rdma: mlx5_2:1 has no RoCE v2 GID for an IPv4 address of the host"
    assert answer == Shortfall(reason)


@pytest.mark.parametrize(
    ("ports", "fabric", "reason"),
    [
        ([RAILS[2]], "", "mlx5_2:1 has no RoCE v2 GID for an IPv4 address of the host"),
        ([RAILS[1], RAILS[2]], "ens2", "mlx5_1:1, mlx5_2:1 is RoCE, and not on ens2, its agent_fabric"),
        ([("mlx5_0:1", False, False, True), RAILS[2]], "", "mlx5_0:1 is not active, mlx5_2:1 has no RoCE v2 GID for an IPv4 address of the host"),
    ],
)  # fmt: skip
def test_a_host_whose_roce_does_not_work_is_refused_with_the_reason(
    ports: list[tuple[str, bool, bool, bool]], fabric: str, reason: str
) -> None:
    found = on_host(*ports, fabric=fabric)
    answer = place(ON_HOST.demand(), [found], frees(found))
    assert answer == Shortfall(f"no agent can hold it: roce has no port for session_rdma: {reason}", is_final=True)


@pytest.mark.parametrize(
    ("ports", "reason"),
    [
        ([("mlx5_1:1", "Ethernet", True, False)], "mlx5_1:1 is RoCE, and not on ens2, its agent_fabric"),
        ([("mlx5_0:1", "Ethernet", False, True)], "mlx5_0:1 is not active"),
    ],
)
def test_a_fabric_without_an_rdma_port_is_refused(ports: list[tuple[str, str, bool, bool]], reason: str) -> None:
    found = on_fabric(*ports)
    answer = place(OVER_FABRIC.demand(), [found], frees(found))
    assert answer == Shortfall(f"no agent can hold it: roce has no port for session_rdma: {reason}", is_final=True)


def test_infiniband_is_used_before_roce() -> None:
    """A queue pair connects two ports of the same kind."""
    found = on_fabric(ROCE_PORT, ("mlx5_1:1", "InfiniBand", True, False))
    assert usable_ports(found, True, False) == ("mlx5_1:1",)


def test_a_session_over_several_agents_has_ports_of_one_kind() -> None:
    """A queue pair connects two ports of the same kind."""
    roce, infiniband = (
        with_capacity(agent, millicpus=cpus).in_swarm("home")
        for agent, cpus in ((on_fabric(ROCE_PORT), 2000), (replace(INFINIBAND, fabric=Fabric("ens2", "")), 1000))
    )
    other = replace(roce, name="other")
    asked = request(rdma=True, fabric=True, cluster_size=3, cpus=1, cluster_mode="multi-node")
    placed = place(asked.demand(), [infiniband, roce, other], frees(infiniband, roce, other))
    assert isinstance(placed, Placement)
    assert set(placed.agents) == {"roce", "other"}
    answer = place(asked.demand(), [infiniband, roce], frees(infiniband, roce))
    reason = "some agents have InfiniBand and others RoCE for session_rdma: no kind of port has room for all containers"
    assert answer == Shortfall(reason)


MIXED = [
    replace(with_capacity(one, millicpus=1000).in_swarm("home"), name=name, fabric=Fabric("ens2", ""))
    for name, one in (("a", on_fabric(ROCE_PORT)), ("b", INFINIBAND), ("c", on_fabric(ROCE_PORT)))
]
MULTI = {"rdma": True, "fabric": True, "cpus": 1, "cluster_mode": "multi-node"}


@pytest.mark.parametrize(("agents", "expected"), [(MIXED[:2], None), (MIXED, {"a", "c"})])
def test_all_roles_have_ports_of_one_kind(agents: list[AgentReport], expected: set[str] | None) -> None:
    asked = request(**MULTI, roles=[{"name": "worker", "size": 1}])
    placed = place_roles(asked.demand(), agents, frees(*agents))
    assert (set(placed.agents) if isinstance(placed, Placement) else None) == expected


@pytest.mark.parametrize("main", ["a", "b"])
def test_a_session_grows_to_agents_with_ports_of_its_kind(main: str) -> None:
    before = plan(request(**MULTI, cluster_size=2), [main, "lost"])
    demand = growth_demand(request(**MULTI, cluster_size=3), before, MIXED)
    assert demand.agents == {"a": ("a", "c"), "b": ("b",)}[main]


@pytest.mark.parametrize(("staying", "expected"), [("a", "c"), ("b", None)])
def test_a_container_moves_to_an_agent_with_ports_of_the_kind_of_the_others(staying: str, expected: str | None) -> None:
    asked = request(**MULTI, cluster_size=2, on_lost="relocate")
    made = plan(asked, [staying, "lost"])
    agents = [one for one in MIXED if one.name in (staying, expected or "a")]
    free = {
        **frees(*agents),
        staying: free_of(next(one for one in agents if one.name == staying), [made.main.resources]),
    }
    moved = new_places(asked, made, ["lost"], [*agents, agent("lost", reachable=False)], free, ())
    assert (moved["sub1"][0] if not isinstance(moved, Shortfall) else None) == expected


def test_libraries_use_the_address_of_their_container_on_the_fabric() -> None:
    made = plan(OVER_FABRIC, "ab", rdma_ports={"a": ("mlx5_0:1",), "b": ("mlx5_0:1",)}, fabric="10.201.9.0/27")
    assert made.network.fabric
    for container in made.containers:
        assert container.environment["NCCL_IB_ADDR_RANGE"] == made.network.on_fabric(container.address) + "/32"
        assert container.environment["UCX_NET_DEVICES"] == "mlx5_0:1"
    without = plan(ASKED, "ab", rdma_ports={"a": ("mlx5_0:1",), "b": ("mlx5_0:1",)})
    assert "NCCL_IB_ADDR_RANGE" not in without.main.environment


def test_a_session_waits_for_an_agent_that_does_not_answer() -> None:
    lost = AgentReport("lost", reachable=False, reason="timed out")
    answer = place(ASKED.demand(), [ROCE, lost], frees(ROCE, lost))
    assert isinstance(answer, Shortfall)
    assert not answer.is_final


def test_libraries_use_the_ports_that_work_in_the_container() -> None:
    """With the interface of the session's network, UCX and Open MPI would use TCP and say nothing."""
    made = plan(ASKED, "ab", rdma_ports={"a": ("mlx5_0:1", "mlx5_1:1"), "b": ("ibp1s0:1",)})
    first, second = (container.environment for container in made.containers)
    assert (first["UCX_NET_DEVICES"], first["NCCL_IB_HCA"]) == ("mlx5_0:1,mlx5_1:1", "=mlx5_0:1,mlx5_1:1")
    assert (second["UCX_NET_DEVICES"], second["NCCL_IB_HCA"]) == ("ibp1s0:1", "=ibp1s0:1")
    assert first["NCCL_SOCKET_IFNAME"] == "=eth0"
    usual = plan(request(cluster_size=2, cpus=1), "ab").main.environment
    assert (usual["UCX_NET_DEVICES"], "NCCL_IB_HCA" in usual) == ("eth0", False)
    mine = with_user_environment(made, [{"UCX_NET_DEVICES": "mlx5_1:1"}, {}])
    assert mine.main.environment["UCX_NET_DEVICES"] == "mlx5_1:1"


def test_a_port_that_goes_down_later_leaves_the_containers_as_they_are() -> None:
    before = plan(ASKED, "aa", rdma_ports={"a": ("mlx5_0:1", "mlx5_1:1")})
    after = plan(ASKED, "aa", rdma_ports={"a": ("mlx5_0:1",)})
    label = "cluster.compute.container.spec"
    assert [one.labels[label] for one in before.containers] == [one.labels[label] for one in after.containers]


def test_the_controller_accepts_the_ports_that_the_head_has_chosen() -> None:
    ports = {"a": ("mlx5_0:1", "mlx5_1:1"), "b": ("ibp1s0:1",)}
    private, both = (request(rdma=True, cluster_size=2, cluster_mode="multi-node", fabric=has) for has in (False, True))
    for asked, made in (
        (private, plan(private, "ab", rdma_ports=ports)),
        (both, plan(both, "ab", rdma_ports=ports, fabric="10.201.9.0/27")),
    ):
        check_agreement(made, asked, ("a", "b"), "head1")
        for name, text in (("UCX_NET_DEVICES", "mlx5_0:1"), ("NCCL_IB_HCA", "=mlx5_0:1,mlx5_1:1 \nLD_PRELOAD=x")):
            main = replace(made.main, environment={**made.main.environment, name: text})
            with pytest.raises(ComputeError, match=r"main1\.environment\."):
                check_agreement(replace(made, containers=(main, *made.containers[1:])), asked, ("a", "b"), "head1")


def test_a_session_that_goes_back_to_its_former_size_keeps_its_ports() -> None:
    made = plan(request(rdma=True, cluster_size=3, cpus=1), "aaa", rdma_ports={"a": ("mlx5_0:1",)})
    assert resized(made, ASKED).main.environment["NCCL_IB_HCA"] == "=mlx5_0:1"


def test_a_container_that_moves_to_an_agent_of_the_session_uses_the_ports_of_those_that_stay() -> None:
    """The variables of these name them, and the controller makes the plan again with one set for each agent."""
    asked = request(rdma=True, cluster_size=2, cpus=1, cluster_mode="multi-node")
    made = plan(asked, "ab", rdma_ports={"a": ("mlx5_0:1", "mlx5_1:1"), "b": ("ibp1s0:1",)})
    there = [with_ports("a", ("mlx5_0:1", "InfiniBand", True), ("mlx5_1:1", "InfiniBand", False)), agent("b")]
    moved = moved_plan(made, asked, {"sub1": ("a", made.containers[1].resources)}, made.main.ports, there, {})
    assert [one.agent for one in moved.containers] == ["a", "a"]
    check_agreement(moved, asked, ("a", "b"), "head1")
