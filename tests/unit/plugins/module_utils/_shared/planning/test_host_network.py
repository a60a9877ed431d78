# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sessions with ``session_network: host``: an agent for each container, ports, addresses, growth, policy."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from samples import agent, carried_out, frees, plan, request

from ansible_collections.cluster.compute.plugins.module_utils._agent.ssh.config_files import authority_line
from ansible_collections.cluster.compute.plugins.module_utils._agent.ssh.member_files import hosts_text
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents import validation
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import Plan, Port
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.report import AgentReport, HostNetwork
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import ComputeError, InputError
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.addresses import host_subnet
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.allocation import Allocation
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.placement import (
    Placement,
    Shortfall,
    host_places,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.policy import parse_policy
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.policy_rules import check_policy
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.resizing import (
    growth_demand,
    is_resize,
    resized,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.role_placement import place
from ansible_collections.cluster.compute.plugins.plugin_utils._session.agreement import check_agreement

HOST: dict[str, Any] = {"network": "host", "cpus": 1, "cluster_mode": "multi-node"}
ASKED = request(cluster_size=2, **HOST)


def on_net(name: str, number: int, **fields: Any) -> AgentReport:
    """An agent in no Swarm, with an address of its own."""
    return agent(name, swarm="", host_network=HostNetwork(f"192.0.2.{number}", f"ens{number}", ""), **fields)


A, B, C = on_net("a", 5), on_net("b", 6), on_net("c", 9)
HOSTS = host_places([A, B, C])
LISTENS = (Port("ssh", 30001, "127.0.0.1", 30001),)


def made(asked: Any = ASKED, names: str = "ab", **inputs: Any) -> Plan:
    return plan(asked, names, **{"hosts": HOSTS, "ports": LISTENS, "master_port": 30002, **inputs})


def test_each_container_is_on_an_agent_of_its_own_and_no_swarm_is_needed() -> None:
    placed = place(request(cluster_size=3, **HOST).demand(), [A, B, C], frees(A, B, C))
    assert isinstance(placed, Placement)
    assert sorted(placed.agents) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("agents", "reason"),
    [
        ((A, B), "session_network: host needs 3 agents, 2 are eligible"),
        ((A, B, agent("d")), "d has no IPv4 address for session_network host"),
        ((A, B, on_net("c", 9, cpus=0)), "c: needs 1 CPUs, 0 free"),
        (
            (A, B, on_net("c", 6)),
            "b has the address of another agent, which is not usable for session_network host; c has",
        ),
    ],
)
def test_what_is_missing_is_named(agents: tuple[AgentReport, ...], reason: str) -> None:
    short = place(request(cluster_size=3, **HOST).demand(), agents, frees(*agents))
    assert isinstance(short, Shortfall)
    assert reason in short.reason


def test_roles_share_no_agent() -> None:
    asked = request(**HOST, roles=[{"name": "ps"}, {"name": "worker", "size": 1}])
    placed = place(asked.demand(), [A, B, C], frees(A, B, C))
    assert isinstance(placed, Placement)
    assert len(set(placed.agents)) == asked.size == 3
    assert isinstance(place(asked.demand(), [A, B], frees(A, B)), Shortfall)


def test_ports_are_free_on_all_agents_of_the_session() -> None:
    apps = [{"name": "lab", "port": 8888}, {"name": "web", "port": 8000, "preferred_port": 9000}]
    asked = request(cluster_size=2, apps=apps, port_range="30000-30009", **HOST)
    agents = (replace(A, ports=(30000, 8888)), replace(B, ports=(30001,)), C)
    allocation = Allocation((), agents)
    ports = allocation.ports(asked, ["a", "b"])
    assert [(port.name, port.container_port, port.host_port) for port in ports] == [
        ("ssh", 30002, 30002),
        ("lab", 30003, 30003),
        ("web", 9000, 9000),
    ]
    assert allocation.master_port(asked, ["a", "b"], ports) == 30004
    # Another session keeps its distance also from containers that have stopped.
    first = made(asked, ports=ports, master_port=30004)
    stopped = carried_out(agents, first, states={"main1": "exited", "sub1": "exited"})
    second = Allocation([first], stopped).ports(asked, ["b", "c"])
    assert [port.host_port for port in second] == [30000, 8888, 9000]


def test_distant_agents_take_no_address_from_private_sessions() -> None:
    far = {"a": ("10.0.0.5", "ens1"), "b": ("10.250.0.5", "ens1")}
    first = made(hosts=far)
    assert first.network.subnet == "10.0.0.0/8"
    assert Allocation([first], [A, B]).subnet(request(cluster_size=2)).subnet == "10.201.0.0/27"


def test_the_plan_names_the_addresses_interfaces_and_ports_of_the_agents() -> None:
    both = made(replace(ASKED, apps=request(apps=[{"name": "lab", "port": 8888}]).apps),
                ports=(*LISTENS, Port("lab", 30005, "127.0.0.1", 30005)))  # fmt: skip
    assert both.addresses == (("main1", "192.0.2.5"), ("sub1", "192.0.2.6"))
    assert (both.network.driver, both.network.subnet) == ("host", "192.0.2.4/30")
    assert (both.network.ssh_port, both.network.master_port, both.network.mtu) == (30001, 30002, None)
    assert both.session.apps[0].port == 30005
    first, second = (one.environment for one in both.containers)
    assert (first["NCCL_SOCKET_IFNAME"], second["GLOO_SOCKET_IFNAME"]) == ("=ens5", "ens6")
    assert first["MASTER_PORT"] == "30002"
    assert json.loads(second["TF_CONFIG"])["cluster"] == {"worker": ["main1:30002", "sub1:30002"]}
    assert first["OMPI_MCA_btl_tcp_if_include"] == "192.0.2.5/32,192.0.2.6/32"
    assert both.main.labels["cluster.compute.session.host_ports"] == "30001,30002"


def test_files_name_the_hosts_of_the_session_and_no_other() -> None:
    """The subnet that contains distant hosts contains others, and even the loopback addresses."""
    distant = made(hosts={**HOSTS, "b": ("100.64.0.6", "ens6")})
    assert authority_line(distant, "KEY") == "@cert-authority main*,sub*,192.0.2.5,100.64.0.6 KEY"
    members = "192.0.2.5\tmain1\n100.64.0.6\tsub1\n"
    own = "127.0.0.1\tlocalhost\n192.0.2.1 registry\n"
    assert hosts_text(own + members + "192.0.2.9\tsub2\n", distant) == own + members


def test_a_container_stays_the_right_one_when_the_session_gets_another_host() -> None:
    specs = [made(names=names).main.labels["cluster.compute.container.spec"] for names in ("ab", "ac")]
    assert specs[0] == specs[1]


@pytest.mark.parametrize(
    ("numbers", "subnet"), [((5,), "192.0.2.4/31"), ((4,), "192.0.2.0/29"), ((5, 200), "192.0.2.0/24")]
)
def test_a_subnet_has_the_addresses_and_a_place_before_them(numbers: tuple[int, ...], subnet: str) -> None:
    assert host_subnet([f"192.0.2.{number}" for number in numbers]).subnet == subnet


@pytest.mark.parametrize(
    "wrong",
    [
        {"master_port": 22},
        {"ports": (Port("ssh", 22, "127.0.0.1", 30001),)},
        {"ports": (Port("ssh", 29999, "127.0.0.1", 29999),)},
        {"ports": ()},
        {"names": "aa"},
    ],
)
def test_the_head_chooses_agents_and_ports_within_the_request(wrong: dict[str, Any]) -> None:
    check_agreement(validation.plan(made().to_short_json(), "head"), ASKED, "abc", "head")
    with pytest.raises(ComputeError, match="is not what was requested"):
        check_agreement(made(**wrong), ASKED, "abc", "head")


def test_a_private_session_keeps_its_ports() -> None:
    asked = request(cluster_size=2, cluster_mode="multi-node")
    with pytest.raises(ComputeError, match="master_port is 80"):
        check_agreement(plan(asked, "ab", master_port=80), asked, "abc", "head")


@pytest.mark.parametrize("roles", [{}, {"roles": [{"name": "worker", "size": 1}]}])
def test_a_session_grows_to_agents_on_which_its_ports_are_free(roles: dict[str, Any]) -> None:
    before = made(request(**HOST, **({"roles": [{"name": "worker", "size": 1}]} if roles else {"cluster_size": 2})))
    bigger = {"roles": [{"name": "worker", "size": 2}]} if roles else {"cluster_size": 3}
    asked = request(**HOST, **bigger)
    used = replace(C, ports=(30002,))
    refused = place(growth_demand(asked, before, [A, B, used]), [A, B, used], frees(A, B, used))
    assert isinstance(refused, Shortfall)
    assert "c uses port 30002, at which the containers of the session listen" in refused.reason
    assert "b has a container of the session" in refused.reason
    placed = place(growth_demand(asked, before, [A, B, C]), [A, B, C], frees(A, B, C))
    assert isinstance(placed, Placement)
    after = resized(before, asked, placed, hosts=HOSTS)
    assert [one.address for one in after.containers] == ["192.0.2.5", "192.0.2.6", "192.0.2.9"]
    assert after.network.subnet == "192.0.2.0/28"
    assert (after.network.ssh_port, after.network.master_port) == (30001, 30002)
    check_agreement(after, asked, "abc", "head")
    smaller = resized(
        after, request(**HOST, **({"roles": [{"name": "worker", "size": 1}]} if roles else {"cluster_size": 2}))
    )
    assert smaller.addresses == before.addresses


def test_a_session_of_one_container_is_the_same_in_either_mode_and_can_grow() -> None:
    one = request(network="host", cpus=1)
    assert one.mode == "multi-node"
    assert one == request(**HOST) == request(**{**HOST, "cluster_mode": "single-node"})
    bigger = request(network="host", cpus=1, cluster_size=2)
    assert is_resize(one, bigger)
    placed = place(growth_demand(bigger, made(one, "a"), [A, B]), [A, B], frees(A, B))
    assert isinstance(placed, Placement)
    assert placed.agents == ("b",)


@pytest.mark.parametrize(
    ("variables", "rule"),
    [
        ({"per_agent": 2}, r"^session_per_agent: 2: must with session_network host be 1 or unset"),
        ({"roles": [{"name": "ps", "size": 2, "per_agent": 2}]}, r"^session_per_agent"),
        ({"fabric": True}, r"^session_fabric: True"),
        ({"network_encrypted": True}, r"^session_network_encrypted: True"),
        ({"read_only_root": True}, r"^session_read_only_root: True"),
        ({"on_lost": "relocate"}, r"^session_on_lost: 'relocate'"),
        ({"network": "bridge"}, r"^session_network: 'bridge'"),
    ],
)  # fmt: skip
def test_what_needs_a_private_network_is_refused(variables: dict[str, Any], rule: str) -> None:
    with pytest.raises(InputError, match=rule):
        request(**{**HOST, **variables})


def test_an_owner_with_limits_needs_a_permission() -> None:
    def policy(**limits: Any) -> Any:
        return parse_policy({"owners": {"alice": limits}})

    check_policy(policy(), ASKED)
    check_policy(policy(sessions=9, host_network=True), ASKED)
    check_policy(policy(sessions=9), request(cluster_size=2))
    for limits in ({"sessions": 9}, {"host_network": False}):
        with pytest.raises(InputError, match=r"^session_network: 'host': must be private"):
            check_policy(policy(**limits), ASKED)
    low = request(**HOST, apps=[{"name": "web", "port": 80}])
    with pytest.raises(InputError, match=r"^session_apps: 80"):
        check_policy(policy(host_network=True), low)
