# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.swarm_plan import (
    Node,
    peers,
    plan_leave,
    plan_swarm,
    read_agents,
)


def bare(name: str, **more: Any) -> Node:
    return Node(name=name, address=f"192.0.2.{name[-1]}", **more)


def manager(name: str, cluster: str = "ours", **more: Any) -> Node:
    return bare(name, state="active", node_id=f"node-{name}", cluster_id=cluster, manager=True, **more)


def worker(name: str, of: str = "a1", cluster: str = "", **more: Any) -> Node:
    return bare(name, state="active", node_id=f"node-{name}", cluster_id=cluster, managers=(f"node-{of}",), **more)


@pytest.mark.parametrize(
    ("nodes", "lead", "cluster", "steps", "managers"),
    [
        ([bare("a1"), bare("a2")], "a1", "", {"a1": "init", "a2": "join"}, ["a1"]),
        ([bare("a2"), bare("a1")], "a1", "", {"a1": "init", "a2": "join"}, ["a1"]),
        ([bare("a1"), bare("a2", wanted=True)], "a1", "", {"a1": "init", "a2": "join"}, ["a1", "a2"]),
        ([manager("a1"), worker("a2")], "a1", "ours", {}, ["a1"]),
        ([manager("a1"), worker("a2", cluster="ours")], "a1", "ours", {}, ["a1"]),
        ([manager("a1"), bare("a2"), worker("a3")], "a1", "ours", {"a2": "join"}, ["a1"]),
        ([manager("a1"), worker("a2", wanted=True)], "a1", "ours", {"a2": "promote"}, ["a1", "a2"]),
        # A manager stays a manager, whether it is configured or not.
        ([manager("a1"), manager("a2")], "a1", "ours", {}, ["a1", "a2"]),
        # The head was reinstalled: it joins the Swarm that this collection created again.
        ([bare("a1"), manager("a2", ours=True), worker("a3", of="a2")], "a2", "ours", {"a1": "join"}, ["a1", "a2"]),
        # The head is a worker of a Swarm with another manager.
        ([worker("a1", of="a2"), manager("a2")], "a2", "ours", {"a1": "promote"}, ["a1", "a2"]),
    ],
)
def test_one_swarm_is_made_of_them(
    nodes: list[Node], lead: str, cluster: str, steps: dict[str, str], managers: list[str]
) -> None:
    plan = plan_swarm(nodes, "a1")
    assert (plan.lead, plan.cluster, plan.steps, plan.managers) == (lead, cluster, steps, tuple(managers))
    assert plan.refused == {}
    assert plan.address == f"192.0.2.{lead[-1]}"


def test_the_port_of_overlays_is_that_of_the_swarm_that_leads() -> None:
    """Only managers report it; without a Swarm it is the engine's default."""
    assert plan_swarm([bare("a1"), bare("a2")], "a1").port == 4789
    assert plan_swarm([worker("a1", of="a2"), manager("a2", data_path_port=7789), bare("a3")], "a1").port == 7789


@pytest.mark.parametrize(
    ("nodes", "ours"),
    [
        ([bare("a1"), bare("a2")], True),
        ([manager("a1", ours=True), bare("a2")], True),
        ([manager("a1"), bare("a2")], False),
        ([worker("a1", of="a2"), manager("a2")], False),
        ([worker("a1", of="a2"), manager("a2", ours=True)], True),
    ],
)
def test_a_swarm_that_is_not_ours_may_have_services(nodes: list[Node], ours: bool) -> None:
    assert plan_swarm(nodes, "a1").ours is ours


@pytest.mark.parametrize(
    ("nodes", "refused", "says"),
    [
        ([manager("a1"), manager("a2", "other")], "a2", "in another Swarm (other) than a1 (ours)"),
        (
            [manager("a1"), worker("a2", of="z9")],
            "a2",
            "a worker of a Swarm (unknown) that no agent of the inventory manages",
        ),
        ([bare("a1"), manager("a2", "other")], "a2", "in another Swarm (other) than a1 (none yet)"),
        (
            [worker("a1", of="z9", cluster="other"), bare("a2")],
            "a1",
            "a Swarm (other) that no agent of the inventory manages",
        ),
        ([manager("a1"), bare("a2", state="locked")], "a2", "in state locked"),
        ([manager("a1"), bare("a2", state="error")], "a2", "in state error"),
    ],
)
def test_who_is_elsewhere_is_refused_by_name(nodes: list[Node], refused: str, says: str) -> None:
    plan = plan_swarm(nodes, "a1")
    assert list(plan.refused) == [refused]
    assert plan.refused[refused].startswith(refused)
    assert says in plan.refused[refused]
    assert "docker swarm leave" in plan.refused[refused]
    assert refused not in plan.steps


def moved(node: Node, **more: Any) -> Node:
    """The Swarm knows .1 to .9 of this network, and the host has .9 and more."""
    address = f"192.0.2.9{node.name[-1]}"
    return replace(node, own=address, held=(address,), **more)


def seeing(node: Node, **seen: str) -> Node:
    return replace(node, seen={f"node-{name}": address for name, address in seen.items()})


LEAD = seeing(manager("a1"), a1="192.0.2.1", a2="192.0.2.2", a3="192.0.2.93")
LOST_LEAD = seeing(moved(manager("a1")), a1="192.0.2.1")


@pytest.mark.parametrize(
    ("nodes", "steps"),
    [
        ([LEAD, worker("a2"), moved(worker("a3"))], {"a3": "rejoin"}),
        ([LEAD, moved(worker("a3", wanted=True))], {"a3": "rejoin"}),
        # Its managers see it at an address that is translated on the way, so it needs none of its own.
        ([seeing(manager("a1"), a3="203.0.113.3"), moved(worker("a3"))], {}),
        ([seeing(moved(manager("a1")), a1="203.0.113.1", a2="192.0.2.2"), worker("a2")], {}),
        # It is down for its managers: another cause, which the doctor names.
        ([seeing(manager("a1")), moved(worker("a3"))], {}),
        # Without others, nothing shows that nobody reaches it.
        ([LOST_LEAD], {}),
        ([LOST_LEAD, manager("a3", "other")], {}),
    ],
)
def test_a_host_with_another_address_than_its_swarm_knows_joins_again(nodes: list[Node], steps: dict[str, str]) -> None:
    plan = plan_swarm(nodes, "a1")
    assert plan.steps == steps
    assert "a3" not in plan.refused or nodes[-1].cluster_id == "other"


def test_firewalls_open_for_the_address_with_which_a_host_joins_again() -> None:
    nodes = [LEAD, moved(worker("a3")), replace(moved(worker("a2")), held=())]
    steps = plan_swarm(nodes, "a1").steps
    assert peers(nodes, steps)["a1"] == ["192.0.2.93", "192.0.2.2"]
    assert peers(nodes)["a1"] == ["192.0.2.3", "192.0.2.2"]


@pytest.mark.parametrize(
    ("nodes", "refused", "says"),
    [
        (
            [LEAD, moved(worker("a3"), busy=("eve.train.sub1", "eve.train.sub2"))],
            "a3",
            "a3 has another address than its Swarm knows (192.0.2.3): it must leave and join again, which would cut off the containers "
            "of sessions there (eve.train.sub1, eve.train.sub2). End these sessions with terminate.yml, then run",
        ),
        (
            [LEAD, moved(manager("a3"))],
            "a3",
            "(but 192.0.2.93). Give it that address again, or make it a worker (on a1: `",
        ),
        (
            [LOST_LEAD, worker("a2")],
            "a1",
            "a1 is a manager of its Swarm, which has it at 192.0.2.1; this host does not have that address any more (but 192.0.2.91). "
            "Give it that address again; if it is gone for good, make a new Swarm: ",
        ),
        # The head has moved, and another manager leads.
        (
            [seeing(moved(manager("a1")), a1="192.0.2.91", a2="192.0.2.2"), manager("a2")],
            "a1",
            "make it a worker (on a2: `docker node demote node-a1`), and run provision_agents.yml.",
        ),
    ],
)
def test_a_host_that_cannot_join_again_is_refused_with_what_to_do(nodes: list[Node], refused: str, says: str) -> None:
    plan = plan_swarm(nodes, "a1")
    assert list(plan.refused) == [refused]
    assert says in plan.refused[refused]
    assert plan.steps == {}


def test_nobody_joins_a_manager_that_nobody_reaches() -> None:
    assert plan_swarm([LOST_LEAD, worker("a2"), bare("a3")], "a1").steps == {}


@pytest.mark.parametrize("cluster", ["", "dead"])
def test_each_worker_of_a_swarm_whose_managers_are_lost_is_refused(cluster: str) -> None:
    """Not only the one that would lead: the others would stay in the Swarm without managers."""
    lost = [worker(name, of="z9", cluster=cluster) for name in ("a2", "a3")]
    for nodes in (lost, [bare("a1"), *lost], [manager("a1"), *lost]):
        refused = plan_swarm(nodes, nodes[0].name).refused
        assert list(refused) == ["a2", "a3"]
        for name, why in refused.items():
            assert why.startswith(f"{name} is a worker of a Swarm ({cluster or 'unknown'}) that no agent")
            assert "run `docker swarm leave` on that host" in why
            assert "run provision_agents.yml again" in why


@pytest.mark.parametrize(
    ("leaving", "staying", "keepers", "refused"),
    [
        ([worker("a3")], [manager("a1"), worker("a2")], {"a3": "a1"}, []),
        ([manager("a2")], [manager("a1"), worker("a3")], {"a2": "a1"}, []),
        ([manager("a1")], [worker("a2", cluster="ours")], {}, ["a1"]),
        ([manager("a1"), worker("a2")], [], {}, []),
        ([bare("a2")], [manager("a1")], {}, []),
        ([manager("a1")], [manager("a2", "other")], {}, []),
    ],
)
def test_a_manager_that_stays_lets_them_go(
    leaving: list[Node], staying: list[Node], keepers: dict[str, str], refused: list[str]
) -> None:
    plan = plan_leave(leaving, staying, ())
    assert plan.keepers == keepers
    assert list(plan.refused) == refused


def test_a_worker_whose_certificate_is_not_to_be_read_is_known_by_its_managers() -> None:
    def report(name: str, **swarm: Any) -> dict[str, Any]:
        return {"name": name, "engine": {"swarm": {"state": "active", "node_id": f"node-{name}", **swarm}}}

    agents = read_agents(
        [
            report("a1", cluster_id="ours", manager=True),
            report("a2", managers=["node-a1"]),
            report("a3", managers=["node-z9"]),
            {"name": "a4", "reachable": False},
        ]
    )
    assert [agent.swarm for agent in agents] == ["ours", "ours", "", ""]


def test_an_engine_under_two_names_joins_no_swarm_of_its_own() -> None:
    """The head keeps its name. What is not known of an engine is like no other's."""
    nodes = [bare("a2", identity="1"), bare("a1", identity="1"), bare("a3", identity="2"), bare("a4"), bare("a5")]
    plan = plan_swarm(nodes, "a1")
    assert plan.refused == {"a2": "a2: a1 and a2 are the same engine: remove one of them from the inventory."}
    # Also where both are members already.
    again = plan_swarm([manager("a1", identity="1"), manager("a2", identity="1")], "a1")
    assert list(again.refused) == ["a2"]
