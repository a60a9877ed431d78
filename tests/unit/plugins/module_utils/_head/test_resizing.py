# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Another size for a session that runs: what the head decides, books and undoes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from samples import agent, carried_out, context, exactly, observed, request
from store_sessions import plan_of, row_of, running

from ansible_collections.cluster.compute.plugins.module_utils._head.scheduler import launch
from ansible_collections.cluster.compute.plugins.module_utils._head.store import Store
from ansible_collections.cluster.compute.plugins.module_utils._head.transitions import Change, make_change
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import Plan
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.report import AgentReport, HostNetwork
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import (
    ConflictError,
    InputError,
    StateError,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.policy import Policy, parse_policy
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.request import Request

A = agent("a", cpus=8)
THREE, FIVE, TWO = (request(cluster_size=size) for size in (3, 5, 2))


def ends(store: Store, plan: Plan, state: str, reason: str = "") -> None:
    """The controller of this plan reports how its launch has ended."""
    change = Change(plan.session.id, "", "", reason, "", 1100.0, 0.0, launch=plan.session.launch)
    make_change(store, state, change)


def up(plan: Plan) -> tuple[AgentReport, ...]:
    return carried_out([A], plan)


def booked(store: Store) -> list[int]:
    """The CPUs that the ledger has as held now."""
    return [one.millicpus // 1000 for one in store.holdings() if one.ended is None]


def test_a_growth_is_booked_before_it_is_made(store: Store) -> None:
    before = running(store, THREE, A)
    grown = launch(store, FIVE, context(*up(before), now=1010.0))
    assert (grown.outcome, grown.former_size, grown.missing, grown.removed) == ("repair", 3, (), ())
    assert [one.agent for one in plan_of(grown).containers] == ["a"] * 5
    assert plan_of(grown).session.launch != before.session.launch
    assert store.history(grown.session.id)[-1].reason == "the size was changed from 3 to 5"
    # Neither another session nor the same command of another controller gets the room.
    late = launch(store, request(name="late", cluster_size=4), context(*up(before), now=1011.0))
    assert late.outcome == "pending"
    assert launch(store, FIVE, context(*up(before), now=1011.0)).outcome == "held"
    ends(store, plan_of(grown), "running")
    row = row_of(store)
    assert (row.holder, row.request, row.plan) == (None, FIVE, grown.plan)
    assert booked(store) == [5]
    assert launch(store, FIVE, context(*up(plan_of(grown)), now=1200.0)).outcome == "running"


def test_a_growth_that_fails_leaves_the_former_session(store: Store) -> None:
    before = running(store, THREE, A)
    grown = plan_of(launch(store, FIVE, context(*up(before), now=1010.0)))
    ends(store, grown, "failed", "sub4 does not start")
    row = row_of(store)
    assert row.plan
    assert (row.state, row.holder, row.request, row.reason) == ("RUNNING", None, THREE, "sub4 does not start")
    assert [(one.id, one.address) for one in row.plan.containers] == [
        (one.id, one.address) for one in before.containers
    ]
    assert booked(store) == [3]
    assert launch(store, THREE, context(*up(before), now=1200.0)).outcome == "running"


@pytest.mark.parametrize(("size", "removed"), [(5, ()), (4, (("sub4", "a"),)), (3, (("sub3", "a"), ("sub4", "a")))])
def test_a_growth_whose_controller_is_lost_is_completed_or_undone(
    store: Store, size: int, removed: tuple[tuple[str, str], ...]
) -> None:
    before = running(store, THREE, A)
    grown = plan_of(launch(store, FIVE, context(*up(before), now=1010.0)))
    again = launch(store, replace(THREE, size=size), context(*up(grown), now=9000.0))
    assert (again.outcome, again.former_size, again.missing, again.removed) == ("repair", 3, (), removed)
    assert len(plan_of(again).containers) == size
    # The former size is that before the first attempt.
    ends(store, plan_of(again), "failed", "why")
    assert row_of(store).request == THREE


def test_a_controller_that_ended_before_it_updated_the_files_is_followed_up(store: Store) -> None:
    before = running(store, THREE, A)
    grown = plan_of(launch(store, FIVE, context(*up(before), now=1010.0)))
    held = launch(store, FIVE, context(*up(grown), now=1020.0))
    assert held.outcome == "held"
    again = launch(store, FIVE, context(*up(grown), now=1021.0, takeover=held.session.launch))
    assert (again.outcome, again.missing, again.former_size) == ("repair", (), 3)


def test_the_last_containers_leave_and_stay_booked_until_they_are_gone(store: Store) -> None:
    before = running(store, THREE, A)
    shrunk = launch(store, TWO, context(*up(before), now=1010.0))
    assert (shrunk.outcome, shrunk.former_size, shrunk.removed) == ("repair", 3, (("sub2", "a"),))
    assert [one.hostname for one in plan_of(shrunk).containers] == ["main1", "sub1"]
    other = request(name="other", cluster_size=6)
    assert launch(store, other, context(*up(before), now=1011.0)).outcome == "pending"
    # A removal that fails is repeated by the next command.
    ends(store, plan_of(shrunk), "failed", "sub2 does not end")
    again = launch(store, TWO, context(*up(before), now=1200.0))
    assert (again.outcome, again.removed) == ("repair", (("sub2", "a"),))
    ends(store, plan_of(again), "running")
    assert launch(store, TWO, context(*up(plan_of(again)), now=1300.0)).outcome == "running"
    assert booked(store) == [2]


@pytest.mark.parametrize("state", ["none yet", "exited"])
def test_a_session_on_the_network_of_hosts_grows_to_no_port_that_another_keeps(store: Store, state: str) -> None:
    a, b, c = (
        replace(agent(name), host_network=HostNetwork(f"192.0.2.{number}", "ens1", ""))
        for number, name in enumerate("abc", 5)
    )
    on_host = {"network": "host", "cluster_mode": "multi-node"}
    other = request(name="other", agents=["b"], agents_policy="strict", **on_host)
    # Nothing listens at its ports, either before its start or after its end.
    kept = plan_of(launch(store, other, context(b))) if state == "none yet" else running(store, other, b)
    there = carried_out([b], kept, states={"main1": state})[0] if state == "exited" else b
    before = running(store, request(agents=["a"], agents_policy="preferred", **on_host), a)
    seen = carried_out([a], before)[0]
    bigger = request(cluster_size=2, agents=["a"], agents_policy="preferred", **on_host)
    with pytest.raises(StateError, match="b uses port 30000 and 30001, at which the containers of the session listen"):
        launch(store, bigger, context(seen, there, now=1010.0))
    grown = plan_of(launch(store, bigger, context(seen, there, c, now=1010.0)))
    assert [one.agent for one in grown.containers] == ["a", "c"]


def spread() -> tuple[AgentReport, ...]:
    """Agents of a Swarm with room for one container each."""
    return tuple(agent(name, cpus=1) for name in "abcd")


def test_what_an_interrupted_change_has_left_elsewhere_is_removed_before_its_container_is_made(store: Store) -> None:
    asked = replace(THREE, mode="multi-node")
    before = running(store, asked, *spread())
    ends(
        store,
        plan_of(launch(store, asked.with_sizes([2]), context(*carried_out(spread(), before), now=1010.0))),
        "failed",
    )
    found = [replace(one, schedulable=one.name != "c") for one in carried_out(spread(), before)]
    again = launch(store, asked, context(*found, now=1200.0))
    assert [one.agent for one in plan_of(again).containers] == ["a", "b", "d"]
    assert (again.outcome, again.added, again.removed) == ("repair", ("sub2",), (("sub2", "c"),))


def test_what_an_interrupted_change_has_left_in_another_form_is_removed(store: Store) -> None:
    """On its agent, the added container gets an address that the former one did not have."""
    before = running(store, FIVE, A)
    ends(store, plan_of(launch(store, THREE, context(*up(before), now=1010.0))), "failed")
    [observing] = up(before)
    moved = replace(observing.containers[3], spec="another")
    containers = (*observing.containers[:3], moved, observing.containers[4])
    again = launch(store, FIVE, context(replace(observing, containers=containers), now=1200.0))
    assert (again.added, again.removed) == (("sub3", "sub4"), (("sub3", "a"),))


def test_what_an_interrupted_change_has_left_takes_no_room_from_the_same_session(store: Store) -> None:
    asked = request(cluster_size=8)
    before = running(store, asked, A)
    ends(store, plan_of(launch(store, asked.with_sizes([7]), context(*up(before), now=1010.0))), "failed")
    again = launch(store, asked, context(*up(before), now=1200.0))
    # It is the same container as before, so it stays.
    assert (again.outcome, again.added, again.removed) == ("repair", ("sub7",), ())


def test_a_session_of_the_queue_that_comes_first_keeps_its_room(store: Store) -> None:
    before = running(store, THREE, A)
    strict = Policy("strict")
    waits = request(name="waits", cluster_size=8)
    assert launch(store, waits, context(*up(before), now=1005.0, policy=strict)).outcome == "pending"
    with pytest.raises(StateError, match="Session train keeps its 3 containers: waits behind waits, which comes first"):
        launch(store, FIVE, context(*up(before), now=1010.0, policy=strict))


def test_no_room_is_an_error_that_changes_nothing(store: Store) -> None:
    before = running(store, THREE, A)
    message = (
        "Session train keeps its 3 containers: a: needs 6 CPUs, 5 free. Its network is a bridge, which ends at a; to use "
        "other agents, too, end the session, and launch it with session_cluster_size 9 and session_cluster_mode multi-node."
    )
    with pytest.raises(StateError, match=exactly(message)), store.transaction():
        launch(store, request(cluster_size=9), context(*up(before), agent("b", cpus=64), now=1010.0))
    assert (row_of(store).plan, row_of(store).holder) == (before, None)


def test_policy_and_quotas_count_the_difference(store: Store) -> None:
    site = parse_policy({"default": {"sessions": 1, "containers": 5}})
    before = running(store, THREE, A)
    assert launch(store, FIVE, context(*up(before), site=site, now=1010.0)).outcome == "repair"
    with pytest.raises(InputError, match="the policy of this site permits alice 5 at a time"):
        launch(store, request(cluster_size=6), context(*up(before), site=site, now=9000.0))


def test_a_quota_that_others_use_refuses_a_growth(store: Store) -> None:
    site = parse_policy({"default": {"containers": 5}})
    before = running(store, THREE, A)
    other = running(store, request(name="other"), *up(before))
    there = carried_out([A], before, other)
    message = "alice has 1 of the 5 containers that the policy of this site permits, and it needs 5"
    with pytest.raises(StateError, match=exactly(f"Session train keeps its 3 containers: {message}.")):
        launch(store, FIVE, context(*there, site=site, now=1010.0))


@pytest.mark.parametrize(
    ("of_session", "grown"),
    [
        ({"cluster_size": 2, "per_agent": 1}, {"cluster_size": 3, "per_agent": 1}),
        (
            {"roles": [{"name": "worker", "size": 2, "per_agent": 1}]},
            {"roles": [{"name": "worker", "size": 3, "per_agent": 1}]},
        ),
    ],
)
def test_a_growth_beyond_the_containers_that_an_agent_may_have_says_so(
    store: Store, of_session: dict[str, object], grown: dict[str, object]
) -> None:
    agents = (A, agent("b", cpus=8))
    before = running(store, request(cluster_mode="multi-node", **of_session), *agents)
    limit = "already has 1 of its containers, and the limit per agent is 1"
    reason = f"a: {limit}; b: {limit}; "
    asked = request(cluster_mode="multi-node", **grown)
    with pytest.raises(StateError, match=reason + "together they hold 0 of 1 containers"):
        launch(store, asked, context(*carried_out(agents, before), now=1010.0))


def test_every_agent_of_a_session_that_grows_must_answer(store: Store) -> None:
    asked = request(cluster_size=3, cluster_mode="multi-node", per_agent=2)
    agents = (A, agent("b", cpus=8))
    before = running(store, asked, *agents)
    there = carried_out(agents, before)
    silent = (there[0], replace(there[1], reachable=False, containers=()))
    with pytest.raises(ConflictError, match="b cannot be reached"):
        launch(store, replace(asked, size=4), context(*silent, now=1010.0))


def test_a_stranger_with_the_label_of_the_session_is_removed(store: Store) -> None:
    before = running(store, THREE, A)
    [there] = up(before)
    ghost = replace(observed(before.containers[2], before.session.id), id="0b7f5a3e-58a1-4f0b-9f35-6a4f2d8f3a11")
    with_ghost = replace(there, containers=(*there.containers, replace(ghost, hostname="sub7")))
    decision = launch(store, THREE, context(with_ghost, now=1010.0))
    assert (decision.outcome, decision.removed, decision.former_size) == ("repair", (("sub7", "a"),), 0)


@pytest.mark.parametrize("wanted", [TWO, THREE, FIVE])
def test_a_lost_store_knows_the_size_by_the_labels(store: Store, lost_store: Store, wanted: object) -> None:
    """The containers that stay have the labels of the former size, those that were added the labels of the new one."""
    before = running(store, THREE, A)
    grown = plan_of(launch(store, FIVE, context(*up(before), now=1010.0)))
    [there] = up(grown)
    labels = {one.id: dict(one.labels) for one in before.containers}
    mixed = [
        observed(replace(one, labels=labels.get(one.id, one.labels)), before.session.id, created=500.0 + one.rank)
        for one in grown.containers
    ]
    assert isinstance(wanted, type(THREE))
    decision = launch(lost_store, wanted, context(replace(there, containers=tuple(mixed)), now=1200.0))
    assert len(plan_of(decision).containers) == wanted.size
    assert decision.outcome == ("running" if wanted == FIVE else "repair")
    assert decision.missing == ()
    for old, new in zip(grown.containers, plan_of(decision).containers, strict=False):
        assert (new.address, new.labels["cluster.compute.container.spec"]) == (
            old.address, old.labels["cluster.compute.container.spec"])  # fmt: skip


def of_roles(ps: int, worker: int, **variables: object) -> Request:
    worker_rules = {"name": "worker", "size": worker, "after": ["ps"], **variables}
    return request(cluster_mode="multi-node", roles=[{"name": "ps", "size": ps}, worker_rules])


def places(plan: Plan) -> dict[str, tuple[str, str]]:
    return {one.hostname: (one.address, one.labels["cluster.compute.container.spec"]) for one in plan.containers}


def test_a_role_before_others_grows_and_fails_and_shrinks(store: Store) -> None:
    """Nothing of the containers that stay moves, and what fails to grow has its former sizes."""
    before = running(store, of_roles(1, 2), A)
    wider = of_roles(2, 2)
    grown = launch(store, wider, context(*up(before), now=1010.0))
    assert (grown.outcome, grown.former_size, grown.added, grown.removed) == ("repair", 4, ("ps2",), ())
    assert grown.missing == ()
    after = places(plan_of(grown))
    assert list(after) == ["main1", "ps1", "ps2", "worker1", "worker2"]
    assert {name: after[name] for name in places(before)} == places(before)
    assert store.history(grown.session.id)[-1].reason == "the size of role ps was changed from 1 to 2"
    ends(store, plan_of(grown), "failed", "ps2 does not start")
    assert (row_of(store).request, places(row_of(store).plan or before)) == (of_roles(1, 2), places(before))
    again = plan_of(launch(store, wider, context(*up(before), now=1200.0)))
    ends(store, again, "running")
    assert booked(store) == [5]
    assert launch(store, wider, context(*up(again), now=1300.0)).outcome == "running"
    shrunk = launch(store, of_roles(2, 1), context(*up(again), now=1400.0))
    assert (shrunk.outcome, shrunk.added, shrunk.removed) == ("repair", (), (("worker2", "a"),))


def test_one_role_grows_while_another_shrinks(store: Store) -> None:
    """The sum is the same. If the growth fails, what has left stays away."""
    before = running(store, of_roles(1, 2), A)
    changed = launch(store, of_roles(2, 1), context(*up(before), now=1010.0))
    assert (changed.outcome, changed.added, changed.removed) == ("repair", ("ps2",), (("worker2", "a"),))
    assert not set(places(before).values()) & {places(plan_of(changed))["ps2"]}
    ends(store, plan_of(changed), "failed", "ps2 does not start")
    assert row_of(store).request == of_roles(1, 1)


def test_a_role_without_room_or_quota_leaves_the_session_as_it_is(store: Store) -> None:
    before = running(store, of_roles(1, 2), A)
    with pytest.raises(
        StateError, match=r"keeps its 4 containers: role worker: a: needs 5 CPUs, 4 free.* with these sizes and"
    ):
        launch(store, of_roles(1, 7), context(*up(before), now=1010.0))
    site = parse_policy({"default": {"containers": 5}})
    with pytest.raises(InputError, match="the policy of this site permits alice 5 at a time"):
        launch(store, of_roles(2, 3), context(*up(before), site=site, now=1010.0))
    with pytest.raises(InputError, match=r"settings \(size, roles, of which only the size can change\)"):
        launch(store, of_roles(1, 3, cpus=2), context(*up(before), now=1010.0))
    assert (row_of(store).plan, row_of(store).holder) == (before, None)


@pytest.mark.parametrize("wanted", [of_roles(1, 2), of_roles(2, 2), of_roles(2, 1)])
def test_a_lost_store_knows_sizes_and_addresses_of_roles(store: Store, lost_store: Store, wanted: Request) -> None:
    before = running(store, of_roles(1, 2), A)
    grown = plan_of(launch(store, of_roles(2, 2), context(*up(before), now=1010.0)))
    [there] = up(grown)
    labels = {one.id: dict(one.labels) for one in before.containers}
    mixed = [
        observed(
            replace(one, labels=labels.get(one.id, one.labels)),
            before.session.id,
            created=500.0 + (one.id not in labels),
        )
        for one in grown.containers
    ]
    decision = launch(lost_store, wanted, context(replace(there, containers=tuple(mixed)), now=1200.0))
    assert decision.outcome == ("running" if wanted == of_roles(2, 2) else "repair")
    assert (decision.missing, decision.added) == ((), ())
    found = places(plan_of(decision))
    assert found == {name: place for name, place in places(grown).items() if name in found}
    assert len(found) == wanted.size


@pytest.mark.parametrize("label", ["first", "slots"])
def test_labels_whose_sizes_do_not_fit_are_of_another_request(store: Store, lost_store: Store, label: str) -> None:
    before = running(store, of_roles(1, 2), A)
    text = {"first": "1,1", "slots": "[[0],[1],[2]]"}[label]
    labelled = [
        replace(one, labels={**one.labels, f"cluster.compute.session.{label}": text}) for one in before.containers
    ]
    there = up(replace(before, containers=tuple(labelled)))
    with pytest.raises(InputError, match="is used by a running session with other settings"):
        launch(lost_store, of_roles(1, 2), context(*there, now=1200.0))


def test_a_session_with_roles_of_an_earlier_release_is_adopted(store: Store, lost_store: Store) -> None:
    before = running(store, of_roles(1, 2), A)
    labels = [{name: text for name, text in one.labels.items() if "slots" not in name} for one in before.containers]
    old = tuple(replace(one, labels=found) for one, found in zip(before.containers, labels, strict=True))
    there = up(replace(before, containers=old))
    assert launch(lost_store, of_roles(1, 2), context(*there, now=1200.0)).plan == before
