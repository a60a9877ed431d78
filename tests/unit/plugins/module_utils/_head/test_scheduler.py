# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The decision about a launch, over a real store: place, repair, hold or refuse."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Network
from pathlib import Path

import pytest
from samples import SESSION, agent, carried_out, context, exactly, request, with_apps
from store_sessions import plan_of, relabelled, row_of, running

from ansible_collections.cluster.compute.plugins.module_utils._agent.ssh.config_files import ssh_port
from ansible_collections.cluster.compute.plugins.module_utils._head.scheduler import launch
from ansible_collections.cluster.compute.plugins.module_utils._head.store import Store
from ansible_collections.cluster.compute.plugins.module_utils._shared import label, states
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.decision import Holder
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.report import EngineNetwork, RdmaPort
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import (
    ConflictError,
    EngineError,
    InputError,
    NotFoundError,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.policy import QueueRules, SitePolicy

A, B = agent("a"), agent("b")
TRAIN = request(cluster_size=3)


def test_a_launch_is_placed_recorded_and_leased(store: Store) -> None:
    decision = launch(store, TRAIN, context(A, now=1000.0, lease=600.0))
    plan = plan_of(decision)
    assert (decision.outcome, decision.is_new, decision.missing, decision.remove) == ("placed", True, (), ())
    row = row_of(store)
    assert (row.id, row.state, row.lease, row.priority) == (plan.session.id, "PREPARING", 1600.0, 10)
    assert row.holder == Holder(host="controller", user="alice", pid=42, start="1")
    assert row.plan == plan
    assert row.request == TRAIN
    assert [(note.after, note.reason) for note in store.history(row.id)] == [
        ("PENDING", "requested"),
        ("SCHEDULED", "placed on a"),
        ("PREPARING", "its containers are being created"),
    ]
    assert row.launch == plan.session.launch


def test_the_same_command_again_finds_it_running(store: Store) -> None:
    plan = running(store, TRAIN, A)
    there = carried_out([A], plan)
    before = row_of(store)
    decision = launch(store, TRAIN, context(*there, now=2000.0))
    assert (decision.outcome, decision.plan, decision.is_new) == ("running", plan, False)
    assert decision.failed_apps == ()
    states = [{"name": state, "state": state, "exit_code": 3} for state in ("failed", "restarting", "ready")]
    assert launch(store, TRAIN, context(*with_apps(there, *states))).failed_apps == ("failed",)
    assert row_of(store) == before


@pytest.mark.parametrize("state", ["gone", "exited", "created"])
def test_a_container_that_is_not_up_is_brought_back(store: Store, state: str) -> None:
    plan = running(store, TRAIN, A)
    there = carried_out([A], plan, states={"sub1": state})
    decision = launch(store, TRAIN, context(*there, now=2000.0))
    again = plan_of(decision)
    assert (decision.outcome, decision.missing) == ("repair", ("sub1",))
    # Another launch, and nothing else: same names, identifiers, addresses, ports and digests.
    assert again.session.launch != plan.session.launch
    assert {one.labels[label.LAUNCH] for one in again.containers} == {again.session.launch}
    assert again.network.labels[label.LAUNCH] == again.session.launch
    assert relabelled(again, plan.session.launch) == plan
    assert row_of(store).state == "RUNNING"
    assert row_of(store).lease == 2600.0


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
        "terminate.yml; or make it smaller by what that host has. session_on_lost of this session is keep: nothing else moves or "
        "ends it."
    )
    for agents in ((there[0], lost), (there[0],)):
        with pytest.raises(ConflictError, match=exactly(message)):
            launch(store, asked, context(*agents))


def test_a_session_gets_smaller_by_what_a_lost_agent_has(store: Store) -> None:
    asked = request(cluster_size=5, cluster_mode="multi-node")
    before = running(store, asked, A, B)
    there = carried_out([A, B], before)
    lost = replace(there[1], reachable=False, reason="timed out", containers=())
    left = [one.hostname for one in before.containers if one.agent == "a"]
    with pytest.raises(ConflictError, match="b cannot be reached"):
        launch(store, request(cluster_size=len(left) + 1, cluster_mode="multi-node"), context(there[0], lost))
    smaller = launch(store, request(cluster_size=len(left), cluster_mode="multi-node"), context(there[0], lost))
    assert (smaller.outcome, smaller.missing, smaller.removed) == ("repair", (), ())
    assert smaller.plan is not None
    assert [one.hostname for one in smaller.plan.containers] == left
    # What that host has left is removed when it is back.
    back = launch(store, request(cluster_size=len(left), cluster_mode="multi-node"), context(*there, now=9000.0))
    assert [agent for _name, agent in back.removed] == ["b"] * (5 - len(left))


def test_a_refusal_says_what_becomes_of_a_session_on_a_lost_agent(store: Store) -> None:
    asked = request(cluster_size=5, cluster_mode="multi-node", on_lost="end", lost_after=60)
    there = carried_out([A, B], running(store, asked, A, B))
    lost = replace(there[1], reachable=False, reason="timed out", containers=())
    with pytest.raises(ConflictError, match="session_on_lost is end: a pass over the queue ends it after 60 s without"):
        launch(store, asked, context(there[0], lost))


@pytest.mark.parametrize(
    ("state", "doing"), [("PREPARING", "launched"), ("TERMINATING", "ended")], ids=["launch", "end"]
)
def test_a_session_that_a_controller_works_on_is_held(store: Store, state: str, doing: str) -> None:
    decision = launch(store, TRAIN, context(A))
    if state == "TERMINATING":
        store.change(store.need(decision.session.id), state, 1001.0, "ended by alice")
    held = launch(store, TRAIN, context(A, now=1002.0))
    assert (held.outcome, held.plan) == ("held", None)
    assert held.reason == "session train is being %s by alice@controller (process 42)" % doing


@pytest.mark.parametrize("how", ["lease", "takeover"])
def test_a_lost_launch_is_an_error_and_the_name_is_free(store: Store, how: str) -> None:
    lost = plan_of(launch(store, TRAIN, context(A, now=1000.0, lease=600.0)))
    left = carried_out([A], lost, states={"sub1": "gone", "sub2": "gone"})
    who = context(*left, now=1601.0) if how == "lease" else context(*left, now=1001.0, takeover=lost.session.launch)
    decision = launch(store, TRAIN, who)
    plan = plan_of(decision)
    assert decision.outcome == "placed"
    assert decision.remove == (lost.session.id,)
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
    row = row_of(store)
    row = replace(row, holder=Holder(pid=7), lease=1100.0)
    row = store.change(row, states.TERMINATING, 1050.0, "ended by bob")
    left = carried_out([A], old)
    decision = launch(store, TRAIN, context(*left, now=1101.0))
    assert (decision.outcome, decision.remove) == ("placed", (old.session.id,))
    assert store.need(old.session.id).state == "TERMINATED"


def test_a_lost_launch_of_another_controller_frees_its_room(store: Store) -> None:
    launch(store, request(name="other", cluster_size=4), context(A, now=1000.0))
    assert launch(store, TRAIN, context(A, now=1500.0)).outcome == "pending"
    assert launch(store, TRAIN, context(A, now=1601.0)).outcome == "placed"
    assert store.find("other", "alice") is None


def test_a_folder_of_another_live_session_is_refused(store: Store) -> None:
    """bob's session has the folder of that name on the controller that alice launches from."""
    running(store, request(owner="bob"), A)
    message = (
        "session_name: 'train': the controller's directory of that name belongs to a session of bob; choose another name, or "
        "set session_artifacts to another directory."
    )
    with pytest.raises(InputError, match=exactly(message)):
        launch(store, TRAIN, context(A, kept=row_of(store, owner="bob").id))
    assert store.find("train", "alice") is None


def test_a_queued_session_whose_folder_another_session_has_taken_is_given_up(store: Store) -> None:
    launch(store, TRAIN, context(agent("a", cpus=1)))
    running(store, request(owner="bob", cluster_size=1), A)
    decision = launch(store, TRAIN, context(A, B, kept=row_of(store, owner="bob").id))
    assert (decision.outcome, decision.session.state) == ("failed", "ERROR")
    assert "belongs to a session of bob" in decision.reason


def test_a_folder_of_a_session_of_another_head_is_refused(store: Store) -> None:
    with pytest.raises(InputError, match="belongs to session 0000, which this head does not know"):
        launch(store, TRAIN, context(A, kept="0000"))


def test_a_folder_of_a_session_that_has_ended_is_no_matter(store: Store) -> None:
    running(store, TRAIN, A)
    row = row_of(store)
    row = store.change(row, states.TERMINATING, 1010.0, "asked for")
    row = store.change(row, states.TERMINATED, 1020.0, "done")
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
        "session_name: train: is used by a %s session with other settings (size, millicpus): end that session with "
        "terminate.yml, or choose another name." % state
    ).replace(": train:", ": 'train':")
    with pytest.raises(InputError, match=exactly(message)):
        launch(store, request(cluster_size=2, cpus=2), context(A))


def test_names_of_two_owners_do_not_meet(store: Store) -> None:
    first = plan_of(launch(store, request(), context(A)))
    second = plan_of(launch(store, request(owner="bob"), context(A)))
    assert first.session.id != second.session.id
    assert first.main.name != second.main.name


def test_a_folder_that_is_not_there_is_refused_and_nothing_is_recorded(store: Store) -> None:
    asked = request(mounts=[{"source": "/data", "target": "/data"}])
    message = (
        "session_mounts: '/data': must exist on every agent of the session; it does not exist or does not answer on a."
    )
    with pytest.raises(InputError, match=exactly(message)), store.transaction():
        launch(store, asked, context(replace(A, paths={"/data": False})))
    assert store.states() == {}
    assert launch(store, asked, context(replace(A, paths={"/data": True}))).outcome == "placed"


def test_a_session_with_rdma_waits_while_agents_have_roce_and_uses_infiniband(store: Store) -> None:
    roce = replace(A, rdma_ports=(RdmaPort("mlx5_0:1", "Ethernet", True),))
    reason = "a has no port for session_rdma: mlx5_0:1 is RoCE, which works only with session_fabric or session_network: host"
    waits = launch(store, request(rdma=True), context(roce))
    assert (waits.outcome, waits.reason) == (
        "pending",
        f"no host can hold this as they are: {reason}; add a host or ask for less",
    )
    infiniband = replace(A, rdma_ports=(RdmaPort("mlx5_0:1", "InfiniBand", True),))
    made = plan_of(launch(store, request(rdma=True), context(infiniband)))
    assert made.main.environment["UCX_NET_DEVICES"] == "mlx5_0:1"


def test_a_policy_refuses_what_the_agents_could_never_hold(store: Store) -> None:
    site = SitePolicy(queue=QueueRules(refuse_impossible=True))
    with pytest.raises(EngineError, match="could not hold it even without other sessions"), store.transaction():
        launch(store, request(cpus=5), context(A, site=site))
    assert store.states() == {}
    assert launch(store, request(cpus=5), context(A)).outcome == "pending"


def test_sessions_side_by_side_share_nothing(store: Store) -> None:
    plans = [plan_of(launch(store, request(name="job-%d" % n, cpus=0.5), context(A))) for n in range(6)]
    subnets = [IPv4Network(plan.network.subnet) for plan in plans]
    assert not any(a.overlaps(b) for n, a in enumerate(subnets) for b in subnets[:n])
    assert [ssh_port(plan).host_port for plan in plans] == list(range(30000, 30006))


def test_addresses_stay_clear_of_what_the_agents_report(store: Store) -> None:
    busy = replace(B, routes=("10.201.0.0/24",), networks=(EngineNetwork(subnets=("10.201.1.0/27",)),))
    taken = replace(A, ports=(30000, 30001), needed_addresses=("10.201.1.40",))
    plan = plan_of(launch(store, request(agents=["a"]), context(taken, busy)))
    assert plan.network.subnet == "10.201.1.64/27"
    assert ssh_port(plan).host_port == 30002


def test_apps_are_published_beside_ssh_on_main1_only(store: Store) -> None:
    apps = [
        {"name": "jupyter", "port": 8888, "preferred_port": 8888, "public": True},
        {"name": "web", "port": 80, "preferred_port": 8888},
        {"name": "first", "port": 81, "preferred_port": 30000},
    ]
    plan = plan_of(launch(store, request(cluster_size=2, apps=apps), context(replace(A, publish="0.0.0.0"))))
    assert [(port.name, port.container_port, port.host_ip, port.host_port) for port in plan.main.ports] == [
        ("ssh", 22, "0.0.0.0", 30001),
        ("jupyter", 8888, "0.0.0.0", 8888),
        ("web", 80, "127.0.0.1", 30002),
        ("first", 81, "127.0.0.1", 30000),
    ]
    assert plan.containers[1].ports == ()


def test_the_ports_of_a_main_that_is_down_stay_its_own(store: Store) -> None:
    plan = running(store, TRAIN, A)
    down = carried_out([A], plan, states={"main1": "exited"})
    lost = Store(str(Path(store._path).parent.parent / "another"))
    other = plan_of(launch(lost, request(name="other"), context(*down)))
    lost.close()
    assert ssh_port(other).host_port == ssh_port(plan).host_port + 1


@pytest.mark.parametrize(
    ("variables", "fields", "message"),
    [
        ({"port_range": "30000-30000"}, {"ports": (30000,)}, "No port is free in 30000-30000"),
        ({"network_pool": ["10.9.0.0/27"]}, {"routes": ("10.0.0.0/8",)}, "No free /27 is left in the address pool"),
    ],
)
def test_exhausted_pools_are_refused_and_nothing_is_recorded(
    store: Store, variables: dict[str, object], fields: dict[str, object], message: str
) -> None:
    with pytest.raises(ConflictError, match=message), store.transaction():
        launch(store, request(**variables), context(replace(A, **fields)))  # type: ignore[arg-type]
    assert store.states() == {}


def test_a_session_that_is_forgotten_before_its_turn_is_not_made_again(store: Store) -> None:
    with pytest.raises(NotFoundError, match=f"There is no session {SESSION}"):
        launch(store, TRAIN, context(A, queued=SESSION))
    assert store.states() == {}
