# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What becomes of sessions whose agents no longer answer: decisions, new places, fences, and an agent that is back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from samples import agent, carried_out, context, observed, plan, request, with_place
from store_sessions import plan_of, row_of, running

from ansible_collections.cluster.compute.plugins.module_utils._head.listing import list_sessions
from ansible_collections.cluster.compute.plugins.module_utils._head.losses import decided, losses, note_agents, unfence
from ansible_collections.cluster.compute.plugins.module_utils._head.relocation import to_clean
from ansible_collections.cluster.compute.plugins.module_utils._head.scheduler import launch
from ansible_collections.cluster.compute.plugins.module_utils._head.session_record import SessionRecord, fenced_agents
from ansible_collections.cluster.compute.plugins.module_utils._head.store import Store
from ansible_collections.cluster.compute.plugins.module_utils._head.transitions import Change, make_change
from ansible_collections.cluster.compute.plugins.module_utils._shared.codec import Json
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.decision import FencedAgent, Holder
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import Plan
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.report import AgentReport
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import ConflictError
from ansible_collections.cluster.compute.plugins.module_utils._shared.exits import LOST
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.request import Request
from ansible_collections.cluster.compute.plugins.plugin_utils._session.agreement import check_agreement

A, B, C = (agent(name, cpus=2, node_id="node-" + name) for name in "abc")


def silent(one: AgentReport) -> AgentReport:
    return agent(one.name, 0, 0, reachable=False, swarm="")


def asked(**variables: Any) -> Request:
    usual = {"cluster_size": 3, "cluster_mode": "multi-node", "cpus": 1, "on_lost": "relocate", "lost_after": 60}
    return request(**{**usual, **variables})


@pytest.mark.parametrize(
    ("variables", "agents", "since", "row", "action"),
    [
        ({}, (A, silent(B)), {"b": 900.0}, {}, "relocate"),
        ({"on_lost": "end"}, (A, silent(B)), {"b": 900.0}, {}, "end"),
        ({"on_lost": "keep"}, (A, silent(B)), {"b": 900.0}, {}, ""),
        ({}, (A, silent(B)), {"b": 941.0}, {}, ""),
        ({}, (A, silent(B)), {"b": 940.0}, {}, "relocate"),
        ({}, (A, silent(B)), {}, {}, ""),
        ({}, (A, B), {"b": 900.0}, {}, ""),
        ({}, (A,), {"b": 900.0}, {}, ""),
        ({}, (A, B, silent(C)), {"c": 900.0}, {}, ""),
        ({}, (A, silent(B)), {"b": 900.0}, {"holder": {"pid": 1}, "lease": 1100.0}, ""),
        ({}, (A, silent(B)), {"b": 900.0}, {"holder": {"pid": 1}, "lease": 999.0}, "relocate"),
    ],
)
def test_what_becomes_of_a_session(
    variables: Json, agents: tuple[AgentReport, ...], since: dict[str, float], row: Json, action: str
) -> None:
    made = plan(asked(**variables), "aab")
    rows = [SessionRecord("id", "train", "alice", "default", state="RUNNING", plan=made, **row)]
    found = [(one.session.on_lost, gone) for _row, one, gone in decided(rows, agents, since, now=1000.0)]
    assert found == ([(action, ("b",))] if action else [])


def lost(
    store: Store, wanted: Request, *rest: AgentReport, now: float = 2000.0
) -> tuple[Plan, tuple[AgentReport, ...]]:
    """A session on a and b, of which b has been silent for long enough, and the reports now."""
    made = running(store, wanted, A, B)
    [up] = carried_out([A], made)
    reports = (up, silent(B), *rest)
    note_agents(store, carried_out([A, B], made), now - 100)
    note_agents(store, reports, now - 90)
    note_agents(store, reports, now)
    return made, reports


def test_the_containers_of_a_lost_agent_get_new_places_and_stay_what_they_are(store: Store) -> None:
    wanted = asked()
    made, reports = lost(store, wanted, C)
    [loss] = losses(store, reports, "alice", 2000.0)
    assert (loss.action, loss.nodes, loss.swarms) == ("relocate", {"b": "node-b"}, {"b": "swarm1"})
    assert loss.shared
    decision = launch(store, wanted, context(*reports, now=2000.0, relocates=True))
    moved = plan_of(decision)
    assert (decision.outcome, decision.moves, decision.missing) == ("repair", (("sub2", "b", "c"),), ("sub2",))
    assert [one.agent for one in moved.containers] == ["a", "a", "c"]
    assert (
        moved.containers[:2]
        == tuple(
            replace(one, labels=found.labels) for one, found in zip(made.containers, moved.containers, strict=True)
        )[:2]
    )
    same = ("id", "name", "hostname", "address", "environment", "local_rank", "role", "rank")
    assert all(getattr(moved.containers[2], name) == getattr(made.containers[2], name) for name in same)
    specs = [one.labels["cluster.compute.container.spec"] for one in (*made.containers, *moved.containers)]
    assert specs[:2] == specs[3:5]
    check_agreement(moved, wanted, ["a", "b", "c"], "a")
    row = row_of(store)
    assert row.reason == (
        "relocated, because b has not answered for 1 min: sub2 is made again on c; what it had stored in its own files is gone"
    )
    assert fenced_agents(store.fences(), row.id) == ["b"]
    assert launch(store, wanted, context(*reports, now=2001.0)).outcome == "held", "another controller makes it now"


def test_without_room_nothing_changes_and_the_reason_is_shown(store: Store) -> None:
    wanted = asked(cluster_size=4)
    made, reports = lost(store, wanted, agent("c", cpus=1, node_id="node-c"))
    [loss] = losses(store, reports, "alice", 2000.0)
    assert loss.action == "stay"
    reason = (
        "not relocated: b has not answered for 1 min, and no other agent has room for sub3: a: needs 1 CPUs, 0 free"
    )
    assert loss.reason.startswith(reason)
    with pytest.raises(ConflictError, match="b cannot be reached"):
        launch(store, wanted, context(*reports, now=2000.0, relocates=True))
    [listed] = list_sessions([row_of(store)], reports)
    assert (listed.degraded, fenced_agents(store.fences(), made.session.id)) == (("sub2", "sub3"), [])


def test_main1_gets_a_port_of_its_new_agent(store: Store) -> None:
    wanted = asked(cluster_size=4, agents=["a", "b"])
    made = running(store, wanted, A, B)
    [up] = carried_out([B], made)
    reports = (silent(A), up, replace(C, ports=(30000,)))
    note_agents(store, reports, 1900.0)
    losses(store, reports, "alice", 2000.0)
    moved = plan_of(launch(store, wanted, context(*reports, now=2000.0, relocates=True)))
    assert [one.agent for one in moved.containers] == ["c", "c", "b", "b"]
    assert [port.host_port for port in moved.main.ports] == [30001]
    assert moved.main.address == made.main.address


def test_a_session_on_one_agent_moves_as_a_whole(store: Store) -> None:
    wanted = asked(cluster_size=2, cluster_mode="single-node")
    made = running(store, wanted, B)
    reports = (agent("a", cpus=1), silent(B), C)
    note_agents(store, reports, 1900.0)
    [loss] = losses(store, reports, "alice", 2000.0)
    assert (loss.action, loss.shared) == ("relocate", False)
    moved = plan_of(launch(store, wanted, context(*reports, now=2000.0, relocates=True)))
    assert [one.agent for one in moved.containers] == ["c", "c"]
    assert [one.address for one in moved.containers] == [one.address for one in made.containers]


def test_an_agent_that_is_back_is_cleaned_and_does_not_count_before(store: Store) -> None:
    wanted = asked()
    made, reports = lost(store, wanted, C)
    losses(store, reports, "alice", 2000.0)
    moved = plan_of(launch(store, wanted, context(*reports, now=2000.0, relocates=True)))
    old = observed(made.containers[2], made.session.id, "exited")
    back = replace(B.in_swarm(""), containers=(old,))
    now = (*carried_out([A, C], moved), back)
    [listed] = list_sessions([row_of(store)], now)
    assert listed.degraded == ()
    assert to_clean(store.fences(), store.swarms(), reports) == {}
    assert to_clean(store.fences(), store.swarms(), now) == {
        "b": FencedAgent((made.session.id,), rejoins=True, swarm="swarm1")
    }
    assert to_clean(store.fences(), store.swarms(), (back.in_swarm("swarm1"),))["b"].rejoins is False
    unfence(store, "b", [made.session.id])
    assert (to_clean(store.fences(), store.swarms(), now), fenced_agents(store.fences(), made.session.id)) == ({}, [])


def test_a_fenced_agent_gets_nothing_of_the_session_before_it_is_clean(store: Store) -> None:
    wanted = asked(cluster_size=2, per_agent=1)
    first = running(store, wanted, A, B)
    assert first.agents == ["a", "b"]
    store.execute("INSERT INTO fence VALUES ('c', ?, 'node-c')", (first.session.id,))
    [up] = carried_out([A], first)
    reports = (up, silent(B), C)
    note_agents(store, reports, 1900.0)
    assert [one.action for one in losses(store, reports, "alice", 2000.0)] == ["stay"]
    unfence(store, "c", [first.session.id])
    assert [one.action for one in losses(store, reports, "alice", 2000.0)] == ["relocate"]


def test_an_agent_is_silent_since_the_first_pass_without_an_answer(store: Store) -> None:
    note_agents(store, [A, silent(B)], 10.0)
    note_agents(store, [A, silent(B)], 20.0)
    assert store.snapshot(context()).silent == {"b": 10.0}
    # The clock was set back: no session waits until it has caught up.
    note_agents(store, [A, silent(B)], 5.0)
    assert store.snapshot(context()).silent == {"b": 5.0}
    note_agents(store, [A, B], 30.0)
    assert store.snapshot(context()).silent == {}


def test_an_end_has_the_lost_agent_as_its_reason(store: Store) -> None:
    made, reports = lost(store, asked(on_lost="end"))
    [loss] = losses(store, reports, "alice", 2000.0)
    holder = Holder(user="alice")
    change = Change(made.session.id, "", "", LOST + loss.reason, "", 2000.0, 600.0, agents=reports, holder=holder)
    make_change(store, "terminating", change)
    _before, row = make_change(store, "terminated", replace(change, reason="", reached=("a",)))
    assert row is not None
    assert row.reason == (
        "ended: agent lost: b has not answered for 1 min; not reached: b; what it holds is removed when it is back"
    )


def test_only_a_pass_moves_a_session(store: Store) -> None:
    """A launch has not made sure that the Swarm has lost the agent."""
    wanted = asked()
    made, reports = lost(store, wanted, C)
    with pytest.raises(ConflictError, match="b cannot be reached"):
        launch(store, wanted, context(*reports, now=2000.0))
    assert row_of(store).plan == made


def test_a_session_moves_only_from_agents_that_its_pass_has_found_lost(store: Store) -> None:
    """The Swarm was asked about these alone. Another agent can have been silent for long enough by the time of the move."""
    wanted = asked(cluster_size=4, per_agent=2)
    made, reports = lost(store, wanted, C, agent("d", cpus=2, node_id="node-d"))
    assert [loss.nodes for loss in losses(store, reports, "alice", 2000.0)] == [{"b": "node-b"}]
    later = (silent(A), *reports[1:])
    note_agents(store, later, 1900.0)
    with pytest.raises(ConflictError, match="a cannot be reached"), store.transaction():
        launch(store, wanted, context(*later, now=2000.0, relocates=True))
    assert row_of(store).plan == made
    losses(store, later, "alice", 2000.0)
    assert plan_of(launch(store, wanted, context(*later, now=2000.0, relocates=True))).agents == ["c", "d"]


def test_a_launch_and_a_return_note_the_node_that_the_swarm_must_have_lost(store: Store) -> None:
    """A former node of an agent is no longer in the list of nodes, which says nothing about the present node."""

    def nodes() -> dict[str, str]:
        return dict(store.query("SELECT name, node FROM agent"))

    running(store, asked(), A, with_place(B, node_id="former"))
    assert nodes() == {"a": "node-a", "b": "former"}
    unfence(store, "b", [], "node-b")
    assert nodes()["b"] == "node-b"
    launch(store, request(name="other"), context(A, with_place(B, node_id="newer"), C, now=3000.0))
    assert nodes() == {"a": "node-a", "b": "newer", "c": "node-c"}


def test_the_swarm_of_a_node_stays_known(store: Store) -> None:
    """A worker knows its Swarm by a manager that answers. Another Swarm gives the agent another node."""

    def swarms() -> dict[str, str]:
        return dict(store.query("SELECT id, swarm FROM node"))

    note_agents(store, [B], 10.0)
    note_agents(store, [B.in_swarm("")], 20.0)
    launch(store, request(name="other"), context(with_place(B, node_id="newer", cluster_id=""), now=30.0))
    assert swarms() == {"node-b": "swarm1"}
    launch(store, request(name="third"), context(with_place(B, node_id="newer", cluster_id="swarm2"), now=40.0))
    assert swarms() == {"node-b": "swarm1", "newer": "swarm2"}
