# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The head's decisions over a real store: what a command finds, and what it is told to do."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from dataclasses import replace
from ipaddress import IPv4Network
from pathlib import Path

import pytest
from samples import GIB, agent, carried_out, context, exactly, request

from ansible_collections.cluster.compute.plugins.module_utils._core import states
from ansible_collections.cluster.compute.plugins.module_utils._core.constants import LABEL_LAUNCH
from ansible_collections.cluster.compute.plugins.module_utils._core.errors import ConflictError, InputError
from ansible_collections.cluster.compute.plugins.module_utils._core.model import Plan
from ansible_collections.cluster.compute.plugins.module_utils._core.reports import Agent
from ansible_collections.cluster.compute.plugins.module_utils._head.bookings import bookings
from ansible_collections.cluster.compute.plugins.module_utils._head.listing import list_sessions
from ansible_collections.cluster.compute.plugins.module_utils._head.scheduler import (
    Decision,
    adopt,
    launch,
    removable,
    show_session,
)
from ansible_collections.cluster.compute.plugins.module_utils._head.store import Row, Store
from ansible_collections.cluster.compute.plugins.module_utils._planning.queue import STRICT, Policy
from ansible_collections.cluster.compute.plugins.module_utils._planning.request import Request
from ansible_collections.cluster.compute.plugins.module_utils._ssh.config_files import ssh_port

FORK = multiprocessing.get_context("fork")
A, B = agent("a"), agent("b")
TRAIN = request(cluster_size=3)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(str(tmp_path / "state"))
    yield opened
    opened.close()


def running(store: Store, asked: Request, *agents: Agent, now: float = 1000.0) -> Plan:
    """A session that was launched, as the store knows it."""
    placed = launch(store, asked, context(*agents, now=now))
    assert placed.outcome == "placed"
    assert placed.plan is not None
    store.change(placed.session, states.RUNNING, now + 5, "every container is verified")
    return placed.plan


def the_row(store: Store, name: str = "train", owner: str = "alice") -> Row:
    row = store.find(name, owner)
    assert row is not None
    return row


def the_plan(outcome: Decision) -> Plan:
    assert outcome.plan is not None
    return outcome.plan


# Launch


def test_a_launch_is_placed_recorded_and_leased(store: Store) -> None:
    outcome = launch(store, TRAIN, context(A, now=1000.0, lease=600.0))
    plan = the_plan(outcome)
    assert (outcome.outcome, outcome.is_new, outcome.missing, outcome.remove) == ("placed", True, (), ())
    row = the_row(store)
    assert (row.id, row.state, row.lease, row.priority) == (plan.session.id, "PREPARING", 1600.0, 10)
    assert row.holder == {"host": "controller", "user": "alice", "pid": 42, "start": "1"}
    assert Plan.from_json(row.plan) == plan
    assert Request.from_json(row.request) == TRAIN
    assert [(note["after"], note["reason"]) for note in store.history(row.id)] == [
        ("PENDING", "requested"),
        ("SCHEDULED", "placed on a"),
        ("PREPARING", "launch %s" % plan.session.launch),
    ]
    assert show_session(row)["launch"] == plan.session.launch


def test_the_same_command_again_finds_it_running(store: Store) -> None:
    plan = running(store, TRAIN, A)
    there = carried_out([A], plan)
    before = the_row(store)
    outcome = launch(store, TRAIN, context(*there, now=2000.0))
    assert (outcome.outcome, outcome.plan, outcome.is_new) == ("running", plan, False)
    assert the_row(store) == before


@pytest.mark.parametrize("state", ["gone", "exited", "created"])
def test_a_container_that_is_not_up_is_brought_back(store: Store, state: str) -> None:
    plan = running(store, TRAIN, A)
    there = carried_out([A], plan, states={"sub1": state})
    outcome = launch(store, TRAIN, context(*there, now=2000.0))
    again = the_plan(outcome)
    assert (outcome.outcome, outcome.missing) == ("repair", ("sub1",))
    # Another launch, and nothing else: same names, identifiers, addresses, ports and digests.
    assert again.session.launch != plan.session.launch
    assert {one.labels[LABEL_LAUNCH] for one in again.containers} == {again.session.launch}
    assert again.network.labels[LABEL_LAUNCH] == again.session.launch
    assert relabelled(again, plan.session.launch) == plan
    assert the_row(store).state == "RUNNING"
    assert the_row(store).lease == 2600.0


def relabelled(plan: Plan, to: str) -> Plan:
    document = plan.to_json()
    document["session"]["launch"] = to
    for labelled in [document["network"], *document["containers"]]:
        labelled["labels"][LABEL_LAUNCH] = to
    return Plan.from_json(document)


def test_a_repair_holds_off_others_until_its_lease_ends(store: Store) -> None:
    there = carried_out([A], running(store, TRAIN, A), states={"sub1": "gone"})
    assert launch(store, TRAIN, context(*there, now=2000.0)).outcome == "repair"
    held = launch(store, TRAIN, context(*there, now=2001.0))
    assert (held.outcome, held.reason) == ("held", "session train is being repaired by alice@controller (process 42)")
    assert launch(store, TRAIN, context(*there, now=2601.0)).outcome == "repair"


def test_a_container_on_a_lost_agent_is_not_put_elsewhere(store: Store) -> None:
    asked = request(cluster_size=5, cluster_mode="multi-node")
    there = carried_out([A, B], running(store, asked, A, B))
    lost = replace(there[1], reachable=False, reason="timed out", containers=())
    message = (
        "Session train is degraded: b cannot be reached; bring it back and run this again, or end the session with "
        "terminate.yml."
    )
    for agents in ((there[0], lost), (there[0],)):
        with pytest.raises(ConflictError, match=exactly(message)):
            launch(store, asked, context(*agents))


@pytest.mark.parametrize(
    ("state", "doing"), [("PREPARING", "launched"), ("TERMINATING", "ended")], ids=["launch", "end"]
)
def test_what_somebody_is_at_work_on_is_held(store: Store, state: str, doing: str) -> None:
    outcome = launch(store, TRAIN, context(A))
    if state == "TERMINATING":
        store.change(outcome.session, state, 1001.0, "ended by alice")
    held = launch(store, TRAIN, context(A, now=1002.0))
    assert (held.outcome, held.plan) == ("held", None)
    assert held.reason == "session train is being %s by alice@controller (process 42)" % doing


@pytest.mark.parametrize("how", ["lease", "takeover"])
def test_a_lost_launch_is_an_error_and_the_name_is_free(store: Store, how: str) -> None:
    lost = the_plan(launch(store, TRAIN, context(A, now=1000.0, lease=600.0)))
    left = carried_out([A], lost, states={"sub1": "gone", "sub2": "gone"})
    who = context(*left, now=1601.0) if how == "lease" else context(*left, now=1001.0, takeover=lost.session.launch)
    outcome = launch(store, TRAIN, who)
    plan = the_plan(outcome)
    assert outcome.outcome == "placed"
    assert outcome.remove == (lost.session.id,)
    assert plan.session.id != lost.session.id
    assert plan.network.subnet != lost.network.subnet
    row = store.need(lost.session.id)
    assert (row.state, row.reason) == ("ERROR", "its controller was lost while it was PREPARING")
    assert (row.holder, row.lease) == (None, 0.0)


def test_another_launch_cannot_be_taken_over(store: Store) -> None:
    launch(store, TRAIN, context(A))
    assert launch(store, TRAIN, context(A, takeover="some other launch")).outcome == "held"


def test_an_end_that_was_lost_is_finished_by_the_next_launch(store: Store) -> None:
    old = running(store, TRAIN, A)
    row = the_row(store)
    row.holder, row.lease = {"pid": 7}, 1100.0
    store.change(row, states.TERMINATING, 1050.0, "ended by bob")
    left = carried_out([A], old)
    outcome = launch(store, TRAIN, context(*left, now=1101.0))
    assert (outcome.outcome, outcome.remove) == ("placed", (old.session.id,))
    assert store.need(old.session.id).state == "TERMINATED"


def test_a_lost_launch_of_somebody_else_frees_its_room(store: Store) -> None:
    launch(store, request(name="other", cluster_size=4), context(A, now=1000.0))
    assert launch(store, TRAIN, context(A, now=1500.0)).outcome == "pending"
    assert launch(store, TRAIN, context(A, now=1601.0)).outcome == "placed"
    assert store.find("other", "alice") is None


def test_a_folder_of_another_live_session_is_refused(store: Store) -> None:
    """bob's session has the folder of that name on the controller that alice launches from."""
    running(store, request(owner="bob"), A)
    message = (
        "session_name: 'train': the controller's folder of that name is that of a session of bob: choose another name, or "
        "another folder as session_artifacts."
    )
    with pytest.raises(InputError, match=exactly(message)):
        launch(store, TRAIN, context(A, kept=the_row(store, owner="bob").id))
    assert store.find("train", "alice") is None


def test_a_queued_session_whose_folder_another_has_by_now_is_given_up(store: Store) -> None:
    launch(store, TRAIN, context(agent("a", cpus=1)))
    running(store, request(owner="bob", cluster_size=1), A)
    outcome = launch(store, TRAIN, context(A, B, kept=the_row(store, owner="bob").id))
    assert (outcome.outcome, outcome.session.state) == ("failed", "ERROR")
    assert "is that of a session of bob" in outcome.reason


def test_a_folder_of_a_session_of_another_head_is_refused(store: Store) -> None:
    with pytest.raises(InputError, match="is that of session 0000, which this head does not know"):
        launch(store, TRAIN, context(A, kept="0000"))


def test_a_folder_of_a_session_that_has_ended_is_no_matter(store: Store) -> None:
    running(store, TRAIN, A)
    row = the_row(store)
    store.change(row, states.TERMINATING, 1010.0, "asked for")
    store.change(row, states.TERMINATED, 1020.0, "done")
    assert launch(store, TRAIN, context(A, kept=row.id)).outcome == "placed"


def test_a_session_that_runs_keeps_its_folder(store: Store) -> None:
    plan = running(store, TRAIN, A)
    there = carried_out([A], plan)
    assert launch(store, TRAIN, context(*there, kept=plan.session.id)).outcome == "running"


@pytest.mark.parametrize("state", ["RUNNING", "PENDING"])
def test_a_name_in_use_with_other_settings_is_refused(store: Store, state: str) -> None:
    if state == "RUNNING":
        running(store, TRAIN, A)
    else:
        launch(store, TRAIN, context(agent("a", cpus=1)))
    message = (
        "session_name: train: the name is in use by a %s session with other settings (size, millicpus): end it with "
        "terminate.yml, or take another name." % state
    ).replace(": train:", ": 'train':")
    with pytest.raises(InputError, match=exactly(message)):
        launch(store, request(cluster_size=2, cpus=2), context(A))


def test_names_of_two_owners_do_not_meet(store: Store) -> None:
    first = the_plan(launch(store, request(), context(A)))
    second = the_plan(launch(store, request(owner="bob"), context(A)))
    assert first.session.id != second.session.id
    assert first.main.name != second.main.name


# Folders


def test_a_folder_that_is_not_there_is_refused_and_nothing_is_recorded(store: Store) -> None:
    asked = request(mounts=[{"source": "/data", "target": "/data"}])
    message = "session_mounts: '/data': the folder must be there; it is not on a."
    with pytest.raises(InputError, match=exactly(message)), store.transaction():
        launch(store, asked, context(replace(A, paths={"/data": False})))
    assert store.states() == {}
    assert launch(store, asked, context(replace(A, paths={"/data": True}))).outcome == "placed"


# Addresses


def test_sessions_side_by_side_share_nothing(store: Store) -> None:
    plans = [the_plan(launch(store, request(name="job-%d" % n, cpus=0.5), context(A))) for n in range(6)]
    subnets = [IPv4Network(plan.network.subnet) for plan in plans]
    assert not any(a.overlaps(b) for n, a in enumerate(subnets) for b in subnets[:n])
    assert [ssh_port(plan).host_port for plan in plans] == list(range(30000, 30006))


def test_addresses_stay_clear_of_what_the_agents_report(store: Store) -> None:
    busy = replace(B, routes=("10.201.0.0/24",), subnets=("10.201.1.0/27",))
    taken = replace(A, ports=(30000, 30001))
    plan = the_plan(launch(store, request(agents=["a"]), context(taken, busy)))
    assert plan.network.subnet == "10.201.1.32/27"
    assert ssh_port(plan).host_port == 30002


def test_apps_are_published_beside_ssh_on_main1_only(store: Store) -> None:
    apps = [
        {"name": "jupyter", "port": 8888, "preferred_port": 8888, "public": True},
        {"name": "web", "port": 80, "preferred_port": 8888},
    ]
    plan = the_plan(launch(store, request(cluster_size=2, apps=apps), context(replace(A, publish="0.0.0.0"))))
    assert [(port.name, port.container_port, port.host_ip, port.host_port) for port in plan.main.ports] == [
        ("ssh", 22, "0.0.0.0", 30000),
        ("jupyter", 8888, "0.0.0.0", 8888),
        ("web", 80, "127.0.0.1", 30001),
    ]
    assert plan.containers[1].ports == ()


def test_the_ports_of_a_main_that_is_down_stay_its_own(store: Store) -> None:
    plan = running(store, TRAIN, A)
    down = carried_out([A], plan, states={"main1": "exited"})
    lost = Store(str(Path(store._path).parent.parent / "another"))
    other = the_plan(launch(lost, request(name="other"), context(*down)))
    lost.close()
    assert ssh_port(other).host_port == ssh_port(plan).host_port + 1


@pytest.mark.parametrize(
    ("variables", "fields", "message"),
    [
        ({"port_range": "30000-30000"}, {"ports": (30000,)}, "No port is free in 30000-30000"),
        ({"network_pool": ["10.9.0.0/27"]}, {"routes": ("10.0.0.0/8",)}, "No free /27 is left in the address pool"),
    ],
)
def test_exhausted_pools_are_told_and_nothing_is_recorded(
    store: Store, variables: dict[str, object], fields: dict[str, object], message: str
) -> None:
    with pytest.raises(ConflictError, match=message), store.transaction():
        launch(store, request(**variables), context(replace(A, **fields)))  # type: ignore[arg-type]
    assert store.states() == {}


FOLDER = request(mounts=[{"source": "/data", "target": "/data"}])


def test_a_queued_session_without_its_folder_ends_and_holds_nobody_back(store: Store) -> None:
    launch(store, FOLDER, context(agent("a", cpus=0)))
    launch(store, request(name="behind", cluster_size=4), context(agent("a", cpus=0), now=1001.0))
    there = replace(A, paths={"/data": False})
    with store.transaction():
        outcome = launch(store, FOLDER, context(there, now=1100.0))
    sentence = "session_mounts: '/data': the folder must be there; it is not on a."
    assert (outcome.outcome, outcome.reason, outcome.is_new) == ("failed", sentence, False)
    row = store.need(outcome.session.id)
    assert (row.state, row.reason) == ("ERROR", sentence)
    assert launch(store, request(name="behind", cluster_size=4), context(there, now=1101.0)).outcome == "placed"


@pytest.mark.parametrize(
    ("variables", "fields", "reason"),
    [
        (
            {"port_range": "30000-30000"},
            {"ports": (30000,)},
            "No port is free in 30000-30000: end sessions, or widen session_port_range",
        ),
        (
            {"network_pool": ["10.9.0.0/27"]},
            {"routes": ("10.9.0.0/24",)},
            "No free /27 is left in the address pool 10.9.0.0/27: end sessions, or widen session_network_pool",
        ),
    ],
    ids=["ports", "subnets"],
)
def test_a_queued_session_waits_for_ports_and_subnets_and_keeps_no_room(
    store: Store, variables: dict[str, object], fields: dict[str, object], reason: str
) -> None:
    asked, other = request(**variables), request(name="behind", cluster_size=4)
    launch(store, asked, context(agent("a", cpus=0)))
    launch(store, other, context(agent("a", cpus=0), now=1001.0))
    taken = replace(A, **fields)  # type: ignore[arg-type]
    with store.transaction():
        waits = launch(store, asked, context(taken, now=1100.0))
    assert (waits.outcome, waits.reason, the_row(store).reason) == ("pending", reason, reason)
    assert launch(store, other, context(taken, now=1101.0)).outcome == "placed"
    store.change(the_row(store, "behind"), states.ERROR, 1102.0, "failed")
    assert launch(store, asked, context(A, now=1103.0)).outcome == "placed"


# Waiting


def test_a_session_waits_and_is_placed_once_it_fits(store: Store) -> None:
    small = agent("a", cpus=2)
    first = launch(store, TRAIN, context(small))
    assert (first.outcome, first.reason, first.is_new) == ("pending", "a: needs 3 CPUs, 2 free", True)
    assert (the_row(store).state, the_row(store).reason) == ("PENDING", first.reason)
    second = launch(store, TRAIN, context(small, now=1100.0))
    assert (second.outcome, second.is_new, second.session.id) == ("pending", False, first.session.id)
    third = launch(store, TRAIN, context(A, now=1200.0))
    assert (third.outcome, third.is_new, third.session.id) == ("placed", False, first.session.id)
    assert [note["after"] for note in store.history(first.session.id)] == ["PENDING", "SCHEDULED", "PREPARING"]


def test_how_a_waiting_session_is_launched_is_what_was_asked_last(store: Store) -> None:
    launch(store, request(bootstrap_timeout=1200), context(agent("a", cpus=0)))
    assert launch(store, request(bootstrap_timeout=600), context(agent("a", cpus=0))).outcome == "pending"
    [listed] = list_sessions([the_row(store)], [])
    assert listed["request"]["bootstrap_timeout"] == 600


def test_the_queue_keeps_its_order_and_room(store: Store) -> None:
    full = context(agent("a", cpus=0))
    for number, (name, size) in enumerate([("big-job", 3), ("small-job", 2)]):
        assert (
            launch(store, request(name=name, cluster_size=size), replace(full, now=1000.0 + number)).outcome
            == "pending"
        )
    # Four CPUs: the first keeps its three, although the second comes by before it.
    second = request(name="small-job", cluster_size=2)
    waits = launch(store, second, context(A, now=1010.0))
    kept = "a: needs 2 CPUs, 1 free (room is kept for big-job, before it in the queue; schedule.yml launches what fits)"
    assert (waits.outcome, waits.reason) == ("pending", kept)
    assert launch(store, request(name="big-job", cluster_size=3), context(A, now=1011.0)).outcome == "placed"
    assert launch(store, second, context(A, now=1012.0)).outcome == "pending"
    assert launch(store, second, context(agent("a", cpus=5), now=1013.0)).outcome == "placed"


@pytest.mark.parametrize(
    ("policy", "now", "outcome"),
    [
        (Policy(), 1100.0, "placed"),
        (Policy(), 5000.0, "pending"),
        (Policy(age_bound=10000), 5000.0, "placed"),
        (Policy(STRICT), 1100.0, "pending"),
    ],
    ids=["backfill", "past the age bound", "not past it", "strict"],
)
def test_backfill(store: Store, policy: Policy, now: float, outcome: str) -> None:
    running(store, request(name="busy", cluster_size=2), A)
    assert launch(store, request(name="big-job", cluster_size=4), context(A)).outcome == "pending"
    mine = launch(store, request(name="small-job"), context(A, now=now, policy=policy))
    assert mine.outcome == outcome
    if outcome == "pending":
        assert mine.reason == "waits behind big-job, whose turn is first: a: needs 4 CPUs, 2 free"


def test_priority_goes_first(store: Store) -> None:
    none = agent("a", cpus=0)
    launch(store, request(name="early", cluster_size=4), context(none, now=1000.0))
    urgent = request(name="urgent", cluster_size=4, priority=50)
    launch(store, urgent, context(none, now=1001.0))
    assert launch(store, request(name="early", cluster_size=4), context(A, now=1002.0)).outcome == "pending"
    assert launch(store, urgent, context(A, now=1003.0)).outcome == "placed"


# Bookings


def test_bookings_join_engines_and_store_without_counting_twice(store: Store) -> None:
    plan = running(store, TRAIN, A)
    there = carried_out([A, B], plan, states={"sub2": "gone"})
    waiting = the_plan(launch(store, request(name="other"), context(*there)))
    assert waiting.agents == ["a"]
    booked = bookings(store, there)
    assert sum(one.millicpus for one in booked["a"]) == 4000
    assert booked["b"] == []


def test_what_an_unknown_session_holds_is_booked(store: Store, tmp_path: Path) -> None:
    elsewhere = Store(str(tmp_path / "elsewhere"))
    plan = running(elsewhere, TRAIN, A)
    elsewhere.close()
    there = carried_out([A], plan, states=dict.fromkeys(["main1", "sub1", "sub2"], "created"))
    waits = launch(store, request(name="other", cluster_size=2), context(*there))
    assert (waits.outcome, waits.reason) == ("pending", "a: needs 2 CPUs, 1 free")


def test_what_an_ended_session_still_holds_is_not_booked_but_removed(store: Store) -> None:
    plan = running(store, request(cluster_size=4), A)
    there = carried_out([A], plan)
    row = the_row(store)
    store.change(row, states.TERMINATING, 1100.0, "")
    store.change(row, states.TERMINATED, 1101.0, "")
    outcome = launch(store, request(name="other", cluster_size=4), context(*there))
    assert (outcome.outcome, outcome.remove) == ("placed", (plan.session.id,))


def test_a_network_alone_is_a_leftover(store: Store) -> None:
    plan = the_plan(launch(store, TRAIN, context(A)))
    (left,) = carried_out([A], plan, states=dict.fromkeys(["main1", "sub1", "sub2"], "gone"))
    assert left.containers == ()
    assert removable(store, [left]) == ()
    store.change(the_row(store), states.ERROR, 1001.0, "failed")
    assert removable(store, [left, B]) == (plan.session.id,)
    assert removable(store, [B]) == ()


def test_nothing_of_an_unknown_session_is_removed(store: Store, tmp_path: Path) -> None:
    elsewhere = Store(str(tmp_path / "elsewhere"))
    there = carried_out([A], running(elsewhere, TRAIN, A))
    elsewhere.close()
    assert removable(store, there) == ()


# The store is lost


@pytest.fixture
def lost_store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(str(tmp_path / "new"))
    yield opened
    opened.close()


GPUS = agent("g", cpus=8, gpus=["g-0", "g-1", "g-2", "g-3"])
ADOPTED = [
    pytest.param(TRAIN, (A,), id="on one agent"),
    pytest.param(request(cluster_size=6, cluster_mode="multi-node"), (A, replace(B, mtu=1400)), id="on two"),
    pytest.param(
        request(cluster_size=2, gpus=1, cpus=2, cpu_pinning=True, apps=[{"name": "web", "port": 80}]),
        (GPUS,),
        id="with devices, pinned CPUs and an app",
    ),
    pytest.param(
        request(mounts=[{"source": "nas:/x", "target": "/x", "type": "nfs"}], environment={"A": "<% rank %>"}),
        (A,),
        id="with folders and variables",
    ),
]


@pytest.mark.parametrize(("asked", "agents"), ADOPTED)
def test_a_running_session_is_adopted_with_the_very_same_plan(
    store: Store, lost_store: Store, asked: Request, agents: tuple[Agent, ...]
) -> None:
    # Something else was there first, so that nothing is the default.
    running(store, request(name="first", owner="bob"), agents[0])
    plan = running(store, asked, *agents)
    there = carried_out(agents, plan)
    outcome = launch(lost_store, asked, context(*there, now=9000.0))
    assert outcome.outcome == "running"
    assert outcome.plan == plan
    row = the_row(lost_store)
    assert (row.id, row.state, row.created, row.resource_group) == (plan.session.id, "RUNNING", 500.0, "default")
    assert [note["reason"] for note in lost_store.history(row.id)] == ["adopted from its labels"]
    assert Plan.from_json(row.plan) == plan


@pytest.mark.parametrize(("asked", "agents"), ADOPTED)
@pytest.mark.parametrize("lost", [["main1"], ["sub1"]], ids=["main1", "sub1"])
def test_an_adopted_session_is_repaired_to_the_same_plan(
    store: Store, lost_store: Store, asked: Request, agents: tuple[Agent, ...], lost: list[str]
) -> None:
    if asked.size == 1:
        return
    plan = running(store, asked, *agents)
    there = carried_out(agents, plan, states=dict.fromkeys(lost, "gone"))
    outcome = launch(lost_store, asked, context(*there, now=9000.0))
    assert (outcome.outcome, list(outcome.missing)) == ("repair", lost)
    assert relabelled(the_plan(outcome), plan.session.launch) == plan


def test_what_lost_containers_held_is_given_once(store: Store, lost_store: Store) -> None:
    """Devices and CPUs of containers that are gone are chosen again: free ones, and each for one container only."""
    asked = request(cluster_size=3, gpus=1, cpu_pinning=True)
    plan = running(store, asked, GPUS)
    other = running(store, request(name="other", gpus=1), *carried_out([GPUS], plan))
    there = carried_out([GPUS], plan, other, states={"sub1": "gone", "sub2": "gone"})
    again = the_plan(launch(lost_store, asked, context(*there, now=9000.0)))
    gpus = [gpu.id for one in again.containers for gpu in one.resources.gpus]
    assert sorted([*gpus, *(gpu.id for gpu in other.main.resources.gpus)]) == ["g-0", "g-1", "g-2", "g-3"]
    cpusets = [one.resources.cpuset for one in again.containers]
    assert len(set(cpusets)) == 3
    assert "" not in cpusets


def test_a_lost_container_without_room_is_told(store: Store, lost_store: Store) -> None:
    asked = request(cluster_size=2, gpus=0.5)
    shared = agent("g", gpus=[replace(GPUS.gpus[0], shares=2.0)])
    there = carried_out([shared], running(store, asked, shared), states={"sub1": "gone"})
    smaller = replace(there[0], millicpus=1000)
    message = (
        "Session train has lost sub1, and g has no room for it any more (needs 1 CPUs, 0 free): make room, or end the "
        "session with terminate.yml."
    )
    with pytest.raises(ConflictError, match=exactly(message)):
        launch(lost_store, asked, context(smaller))


def test_an_adopted_session_of_another_request_is_refused(store: Store, lost_store: Store) -> None:
    there = carried_out([A], running(store, TRAIN, A))
    message = (
        "session_name: 'train': the name is in use by a running session with other settings: end it with "
        "terminate.yml, or take another name."
    )
    with pytest.raises(InputError, match=exactly(message)):
        launch(lost_store, request(cluster_size=2), context(*there))


def test_an_adopted_session_whose_agents_are_lost_is_told(store: Store, lost_store: Store) -> None:
    (there,) = carried_out([A], running(store, TRAIN, A))
    adopt(lost_store, context(there))
    silent = replace(there, reachable=False, containers=())
    with pytest.raises(ConflictError, match="is known from its labels alone, and no agent that answers has"):
        launch(lost_store, TRAIN, context(silent))


def test_adopting_again_changes_nothing(store: Store, lost_store: Store) -> None:
    there = carried_out([A], running(store, TRAIN, A))
    adopt(lost_store, context(*there))
    before = lost_store.select(None, None, ended=True)
    adopt(lost_store, context(*there, now=2000.0))
    assert lost_store.select(None, None, ended=True) == before
    adopt(store, context(*there))
    assert len(store.live()) == 1


def test_an_adopted_session_that_is_no_longer_seen_is_forgotten_and_never_removed(
    store: Store, lost_store: Store
) -> None:
    there = carried_out([A], running(store, TRAIN, A))
    adopt(lost_store, context(*there))
    silent = replace(A, reachable=False)
    adopt(lost_store, context(silent))
    assert len(lost_store.live()) == 1
    # Another inventory does not have its agent: that says nothing about the session.
    adopt(lost_store, context(B))
    assert lost_store.states() == {}
    assert removable(lost_store, there) == ()
    adopt(lost_store, context(*there))
    assert len(lost_store.live()) == 1


@pytest.mark.parametrize("state", ["exited", "paused", "dead"])
def test_a_session_that_has_stopped_is_adopted_and_repaired(store: Store, lost_store: Store, state: str) -> None:
    """Its hosts were rebooted: what it holds is not held for ever by nobody."""
    plan = running(store, TRAIN, A)
    stopped = carried_out([A], plan, states=dict.fromkeys(["main1", "sub1", "sub2"], state))
    adopt(lost_store, context(*stopped))
    [listed] = list_sessions([the_row(lost_store)], stopped)
    assert (listed["state"], listed["degraded"]) == ("RUNNING", ["main1", "sub1", "sub2"])
    outcome = launch(lost_store, TRAIN, context(*stopped, now=9000.0))
    assert (outcome.outcome, outcome.missing) == ("repair", ("main1", "sub1", "sub2"))
    assert relabelled(the_plan(outcome), plan.session.launch) == plan


def test_what_has_not_run_or_tells_no_plan_is_not_adopted(store: Store, lost_store: Store) -> None:
    plan = running(store, TRAIN, A)
    fresh = carried_out([A], plan, states=dict.fromkeys(["main1", "sub1", "sub2"], "created"))
    adopt(lost_store, context(*fresh))
    (there,) = carried_out([A], plan)
    strange = [replace(one, data={**one.data, "labels": {}}) for one in there.containers]
    adopt(lost_store, context(replace(there, containers=tuple(strange))))
    assert lost_store.states() == {}


def test_a_name_that_is_taken_meanwhile_is_not_adopted_over(store: Store, lost_store: Store) -> None:
    there = carried_out([A], running(store, TRAIN, A))
    mine = launch(lost_store, TRAIN, context(B)).session.id
    adopt(lost_store, context(*there))
    assert lost_store.states() == {mine: "PREPARING"}


def test_a_lost_end_of_an_adopted_session_can_be_taken_over(store: Store, lost_store: Store) -> None:
    there = carried_out([A], running(store, TRAIN, A))
    adopt(lost_store, context(*there))
    row = the_row(lost_store)
    row.holder, row.lease = {"pid": 7}, 5000.0
    lost_store.change(row, states.TERMINATING, 1001.0, "ended by alice")
    held = launch(lost_store, TRAIN, context(*there, now=1002.0))
    assert held.outcome == "held"
    taken = launch(lost_store, TRAIN, context(*there, now=1003.0, takeover=show_session(held.session)["launch"]))
    assert (taken.outcome, taken.remove) == ("placed", (row.id,))


# Everybody at once


def _schedule(folder: str, number: int) -> None:
    store = Store(folder)
    agents = [agent("a", cpus=4, gpus=["a-0", "a-1", "a-2", "a-3"]), agent("b", cpus=2, gpus=["b-0", "b-1"])]
    with store.transaction():
        launch(
            store, request(name="job-%02d" % number, gpus=1, cpu_pinning=True), context(*agents, now=1000.0 + number)
        )
    store.close()


def test_ten_at_once_for_room_for_six(tmp_path: Path) -> None:
    folder = str(tmp_path / "state")
    processes = [FORK.Process(target=_schedule, args=(folder, number)) for number in range(10)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0] * 10
    store = Store(folder)
    placed = [Plan.from_json(row.plan) for row in store.live() if row.state == "PREPARING"]
    waiting = [row for row in store.live() if row.state == "PENDING"]
    store.close()
    assert (len(placed), len(waiting)) == (6, 4)
    assert sorted(plan.main.agent for plan in placed) == ["a"] * 4 + ["b"] * 2
    gpus = [gpu.id for plan in placed for gpu in plan.main.resources.gpus]
    assert len(set(gpus)) == len(gpus) == 6
    cpus = {(plan.main.agent, plan.main.resources.cpuset) for plan in placed}
    assert len(cpus) == 6
    assert len({plan.network.subnet for plan in placed}) == 6
    assert len({(plan.main.agent, ssh_port(plan).host_port) for plan in placed}) == 6


@pytest.mark.parametrize("has_store", [False, True])
def test_check_mode_decides_the_same_and_changes_nothing(tmp_path: Path, has_store: bool) -> None:
    folder = tmp_path / "state"
    if has_store:
        Store(str(folder)).close()
    before = {path.name: path.read_bytes() for path in folder.glob("*")}
    store = Store(str(folder), read_only=True)
    with store.transaction(keep=False):
        outcome = launch(store, TRAIN, context(A, check=True))
        assert (outcome.outcome, outcome.is_new) == ("placed", True)
        assert len(the_plan(outcome).containers) == 3
    store.close()
    assert {path.name: path.read_bytes() for path in folder.glob("*")} == before
    assert folder.exists() == has_store


def test_memory_counts_like_cpus(store: Store) -> None:
    waits = launch(store, request(memory="10g", cluster_size=2), context(agent("a", memory=16 * GIB)))
    assert waits.reason == "a: needs 20g memory, 16g free"
