# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sessions of a lost store: adopted from their labels, repaired, and forgotten."""

from __future__ import annotations

from dataclasses import replace

import pytest
from samples import agent, carried_out, context, exactly, plan, request, seen_with, with_capacity
from store_sessions import plan_of, relabelled, row_of, running

from ansible_collections.cluster.compute.plugins.module_utils._head.adoption import adopted_rows, rebuilt_plan
from ansible_collections.cluster.compute.plugins.module_utils._head.listing import list_sessions
from ansible_collections.cluster.compute.plugins.module_utils._head.maintenance import adopt, removable
from ansible_collections.cluster.compute.plugins.module_utils._head.scheduler import launch
from ansible_collections.cluster.compute.plugins.module_utils._head.store import Store
from ansible_collections.cluster.compute.plugins.module_utils._shared import states
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.decision import Holder
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.report import (
    AgentReport,
    HostNetwork,
    ObservedContainer,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import ConflictError, InputError
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.policy import parse_policy
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.request import Request

A, B = agent("a"), agent("b")
TRAIN = request(cluster_size=3)


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
    pytest.param(
        request(
            cluster_mode="multi-node",
            roles=[{"name": "ps", "size": 2, "cpus": 0.5, "image": "own:1"}, {"name": "w", "gpus": 1}],
        ),
        (with_capacity(A, millicpus=1000), GPUS),
        id="with roles",
    ),
    pytest.param(
        request(network="host", cluster_mode="multi-node", apps=[{"name": "web", "port": 8000}], roles=[{"name": "w"}]),
        (
            replace(A, host_network=HostNetwork("192.0.2.5", "ens1", ""), ports=(8000,)),
            replace(B, host_network=HostNetwork("192.0.2.6", "ens2", "")),
        ),
        id="on the network of the hosts",
    ),
]


@pytest.mark.parametrize(("asked", "agents"), ADOPTED)
def test_a_running_session_is_adopted_with_the_very_same_plan(
    store: Store, lost_store: Store, asked: Request, agents: tuple[AgentReport, ...]
) -> None:
    # Another session exists first, so that no value is the default.
    running(store, request(name="first", owner="bob"), agents[0])
    plan = running(store, asked, *agents)
    there = carried_out(agents, plan)
    decision = launch(lost_store, asked, context(*there, now=9000.0))
    assert decision.outcome == "running"
    assert decision.plan == plan
    row = row_of(lost_store)
    assert (row.id, row.state, row.created, row.resource_group) == (plan.session.id, "RUNNING", 500.0, "default")
    assert [note.reason for note in lost_store.history(row.id)] == ["adopted from its labels"]
    assert row.plan == plan


def test_the_folders_of_the_policy_stay_with_a_session(store: Store, lost_store: Store) -> None:
    """PID 1 of its containers waits for their check at each start, whatever the policy says now."""
    host = replace(A, paths={"/pool/x": True})
    asked = request(mounts=[{"source": "/pool/x", "target": "/x"}])
    placed = launch(store, asked, context(host, site=parse_policy({"default": {"mounts": ["/pool/"]}})))
    assert placed.plan is not None
    assert placed.plan.session.permitted_folders == ("/pool",)
    adopted = launch(lost_store, asked, context(*carried_out((host,), placed.plan), now=9000.0))
    assert adopted.plan == placed.plan


@pytest.mark.parametrize(("asked", "agents"), ADOPTED)
@pytest.mark.parametrize("rank", [0, 1])
def test_an_adopted_session_is_repaired_to_the_same_plan(
    store: Store, lost_store: Store, asked: Request, agents: tuple[AgentReport, ...], rank: int
) -> None:
    if asked.size == 1:
        return
    plan = running(store, asked, *agents)
    lost = [plan.containers[rank].hostname]
    there = carried_out(agents, plan, states=dict.fromkeys(lost, "gone"))
    decision = launch(lost_store, asked, context(*there, now=9000.0))
    assert (decision.outcome, list(decision.missing)) == ("repair", lost)
    assert relabelled(plan_of(decision), plan.session.launch) == plan


def test_what_lost_containers_held_is_given_once(store: Store, lost_store: Store) -> None:
    """Missing containers get new devices and CPUs: free ones, each for a single container."""
    asked = request(cluster_size=3, gpus=1, cpu_pinning=True)
    plan = running(store, asked, GPUS)
    other = running(store, request(name="other", gpus=1), *carried_out([GPUS], plan))
    there = carried_out([GPUS], plan, other, states={"sub1": "gone", "sub2": "gone"})
    again = plan_of(launch(lost_store, asked, context(*there, now=9000.0)))
    gpus = [gpu.id for one in again.containers for gpu in one.resources.gpus]
    assert sorted([*gpus, *(gpu.id for gpu in other.main.resources.gpus)]) == ["g-0", "g-1", "g-2", "g-3"]
    cpusets = [one.resources.cpuset for one in again.containers]
    assert len(set(cpusets)) == 3
    assert "" not in cpusets


def test_a_lost_container_without_room_is_refused(store: Store, lost_store: Store) -> None:
    asked = request(cluster_size=2, gpus=0.5)
    shared = agent("g", gpus=[replace(GPUS.capacity.gpus[0], shares=2.0)])
    there = carried_out([shared], running(store, asked, shared), states={"sub1": "gone"})
    smaller = with_capacity(there[0], millicpus=1000)
    message = (
        "Session train has lost sub1, and g has no room for it any more (needs 1 CPUs, 0 free): free some room, or end the "
        "session with terminate.yml."
    )
    with pytest.raises(ConflictError, match=exactly(message)):
        launch(lost_store, asked, context(smaller))


def test_an_adopted_session_of_another_request_is_refused(store: Store, lost_store: Store) -> None:
    there = carried_out([A], running(store, TRAIN, A))
    message = (
        "session_name: 'train': is used by a running session with other settings: end that session with "
        "terminate.yml, or choose another name."
    )
    with pytest.raises(InputError, match=exactly(message)):
        launch(lost_store, replace(TRAIN, memory=TRAIN.memory * 2), context(*there))


def test_an_adopted_session_whose_agents_are_lost_is_refused(store: Store, lost_store: Store) -> None:
    (there,) = carried_out([A], running(store, TRAIN, A))
    adopt(lost_store, [there], 1000.0)
    silent = replace(there, reachable=False, containers=())
    with pytest.raises(ConflictError, match="is known from its labels alone, and no agent that answers has"):
        launch(lost_store, TRAIN, context(silent))


def test_adopting_again_changes_nothing(store: Store, lost_store: Store) -> None:
    there = carried_out([A], running(store, TRAIN, A))
    adopt(lost_store, there, 1000.0)
    before = lost_store.select(None, None, ended=True)
    adopt(lost_store, there, 2000.0)
    assert lost_store.select(None, None, ended=True) == before
    adopt(store, there, 1000.0)
    assert len(store.live()) == 1


def test_an_adopted_session_that_is_no_longer_seen_is_forgotten_and_never_removed(
    store: Store, lost_store: Store
) -> None:
    there = carried_out([A], running(store, TRAIN, A))
    adopt(lost_store, there, 1000.0)
    silent = replace(A, reachable=False)
    adopt(lost_store, [silent], 1000.0)
    assert len(lost_store.live()) == 1
    # An inventory without its agent is no evidence about the session.
    adopt(lost_store, [B], 1000.0)
    assert lost_store.states() == {}
    assert removable(lost_store, there) == ()
    adopt(lost_store, there, 1000.0)
    assert len(lost_store.live()) == 1


@pytest.mark.parametrize("state", ["exited", "paused", "dead", "apart"])
def test_a_session_that_has_stopped_is_adopted_and_repaired(store: Store, lost_store: Store, state: str) -> None:
    """After a restart of its hosts, its resources are still known, so it can be repaired or terminated."""
    plan = running(store, TRAIN, A)
    stopped = carried_out([A], plan, states=dict.fromkeys(["main1", "sub1", "sub2"], state))
    adopt(lost_store, stopped, 1000.0)
    [listed] = list_sessions([row_of(lost_store)], stopped)
    assert (listed.state, listed.degraded) == ("RUNNING", () if state == "paused" else ("main1", "sub1", "sub2"))
    decision = launch(lost_store, TRAIN, context(*stopped, now=9000.0))
    assert (decision.outcome, decision.missing) == ("repair", ("main1", "sub1", "sub2"))
    assert relabelled(plan_of(decision), plan.session.launch) == plan


@pytest.mark.parametrize(
    ("place", "state"),
    [
        ({"network": "", "address": ""}, "detached"),
        ({"address": "10.9.9.9"}, "detached"),
        ({"published": []}, "unpublished"),
    ],
)
def test_a_session_that_has_lost_its_place_on_the_network_is_adopted_and_repaired(
    store: Store, lost_store: Store, place: dict[str, object], state: str
) -> None:
    """Its host has left the Swarm, or someone has disconnected it: until its plan is known again, it runs."""
    made = running(store, TRAIN, A)
    [there] = carried_out([A], made)
    right = {one.id: {"network": made.network.name, "address": one.address} for one in made.containers}
    ports = [port.host_port for port in made.main.ports]
    lost = [seen_with(one, **{**right[one.id], "published": ports, **place}) for one in there.containers]
    report = replace(there, containers=tuple(lost))
    with lost_store.transaction():
        adopt(lost_store, [report], 8000.0)
    [listed] = list_sessions([row_of(lost_store)], [report])
    assert (listed.name, listed.state, len(listed.containers)) == (TRAIN.name, "RUNNING", 3)
    decision = launch(lost_store, TRAIN, context(report, now=9000.0))
    assert decision.outcome == "repair"
    assert relabelled(plan_of(decision), made.session.launch) == made
    [listed] = list_sessions([row_of(lost_store)], [report])
    assert listed.containers[0].state == state
    assert "main1" in listed.degraded


def test_what_has_not_run_or_tells_no_plan_is_not_adopted(store: Store, lost_store: Store) -> None:
    plan = running(store, TRAIN, A)
    fresh = carried_out([A], plan, states=dict.fromkeys(["main1", "sub1", "sub2"], "created"))
    adopt(lost_store, fresh, 1000.0)
    (there,) = carried_out([A], plan)
    strange = [seen_with(one, labels={}) for one in there.containers]
    adopt(lost_store, [replace(there, containers=tuple(strange))], 1000.0)
    assert lost_store.states() == {}


def test_a_name_that_is_taken_meanwhile_is_not_adopted_over(store: Store, lost_store: Store) -> None:
    there = carried_out([A], running(store, TRAIN, A))
    mine = launch(lost_store, TRAIN, context(B)).session.id
    adopt(lost_store, there, 1000.0)
    assert lost_store.states() == {mine: "PREPARING"}


def test_a_lost_end_of_an_adopted_session_can_be_taken_over(store: Store, lost_store: Store) -> None:
    there = carried_out([A], running(store, TRAIN, A))
    adopt(lost_store, there, 1000.0)
    row = row_of(lost_store)
    row = replace(row, holder=Holder(pid=7), lease=5000.0)
    row = lost_store.change(row, states.TERMINATING, 1001.0, "ended by alice")
    held = launch(lost_store, TRAIN, context(*there, now=1002.0))
    assert held.outcome == "held"
    taken = launch(lost_store, TRAIN, context(*there, now=1003.0, takeover=held.session.launch))
    assert (taken.outcome, taken.remove) == ("placed", (row.id,))


def without_label(container: ObservedContainer, name: str, text: str = "") -> ObservedContainer:
    labels = {**container.labels, "cluster.compute.session." + name: text}
    return seen_with(container, labels=labels)


@pytest.mark.parametrize("name", ["placement", "mode", "subnet"])
def test_a_container_that_another_user_has_labelled_does_not_stop_the_list(lost_store: Store, name: str) -> None:
    (there,) = carried_out((A,), plan(TRAIN, "aaa"))
    forged = replace(without_label(there.containers[1], name), id="forged")
    agents = (replace(there, containers=(forged, *there.containers)),)
    rows = adopted_rows(agents, set())
    assert [entry.size for entry in list_sessions(rows, agents)] == [3]
    assert rebuilt_plan(rows[0], TRAIN, agents, {}, []).session.size == 3


@pytest.mark.parametrize(("name", "text"), [("placement", '[["a",1]]'), ("subnet", "10.201.0.0/32")])
def test_labels_that_describe_another_session_are_refused(name: str, text: str) -> None:
    (there,) = carried_out((A,), plan(TRAIN, "aaa"))
    agents = (replace(there, containers=(without_label(there.containers[0], name, text),)),)
    with pytest.raises((ConflictError, InputError), match=r"terminate\.yml"):
        rebuilt_plan(adopted_rows(agents, set())[0], TRAIN, agents, {}, [])


def test_a_session_of_agents_that_have_other_names_now_says_which_of_them_are_missing(lost_store: Store) -> None:
    asked = request(cluster_size=2, cluster_mode="multi-node")
    renamed = [replace(one, name=f"new-{one.name}") for one in carried_out((A, B), plan(asked, "ab"))]
    adopt(lost_store, renamed, 1000.0)
    with pytest.raises(ConflictError, match="Session train is degraded: a, b cannot be reached; bring it back"):
        launch(lost_store, asked, context(*renamed))
