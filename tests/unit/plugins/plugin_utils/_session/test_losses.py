# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lost agents are fenced before sessions move, and cleaned when they are back, on a scripted play."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest
from conducted import conducted, options_of, reports_of
from samples import with_place

from ansible_collections.cluster.compute.plugins.module_utils._shared.codec import Json
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.decision import (
    FencedAgent,
    Loss,
    Upkeep,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import StateError
from ansible_collections.cluster.compute.plugins.plugin_utils._session.losses import clean_up, fence_nodes
from ansible_collections.cluster.compute.plugins.plugin_utils._session.reports import Reports

FIRST, SECOND, THIRD = (f"{number:08}-0000-4000-8000-000000000000" for number in range(3))
MANAGER = {"state": "active", "manager": True, "cluster_id": "c1"}
RUNS = {"id": "1", "session": "other", "labels": {"cluster.compute.session.mode": "multi-node"}}
LOCAL = {"id": "2", "session": "local", "labels": {"cluster.compute.session.mode": "single-node"}}
LOST = Loss(FIRST, "train", "alice", "relocate", "x", nodes={"b": "node-b"}, swarms={"b": "c1"}, shared=True)


def reports(**swarm: Any) -> Reports:
    return reports_of(
        [
            {"name": "a", "reachable": True, "engine": {"swarm": {**MANAGER, **swarm}}},
            {"name": "b", "reachable": True, "engine": {"swarm": {"state": "pending"}}, "containers": [RUNS, LOCAL]},
        ]
    )


BACK = {"b": FencedAgent((FIRST,), rejoins=True, swarm="c1")}


def cleaning(containers: Json, now: Mapping[str, FencedAgent] = BACK) -> Any:
    """A play whose head has the fences ``now`` when it is asked again."""
    described = {
        "swarm": {"cluster_id": "c1", "address": "192.0.2.1", "node_id": "new"},
        "tokens": {"worker": "SWMTKN", "manager": "no"},
    }
    script = {
        "containers": containers,
        "swarm": described,
        "queue.cleaned": {},
        "queue.fenced": Upkeep(fenced=now).to_json(),
    }
    return conducted(script, "a", "b", "c", inventory={"b": {"ansible_host": "192.0.2.2"}})


def test_an_agent_that_is_back_is_cleaned_before_it_joins_and_before_it_counts() -> None:
    play = cleaning({"changed": True})
    clean_up(play, reports(), BACK)
    assert [(host, step) for host, step, _args in play.asked] == [
        ("a", "queue.fenced"),
        ("b", "containers.absent"),
        ("b", "containers.stopped"),
        ("a", "swarm.describe"),
        ("b", "swarm.leave"),
        ("b", "swarm.join"),
        ("a", "queue.cleaned"),
    ]
    assert options_of(play, "containers.stopped") == [{"sessions": ["other"]}]
    joined = {"addresses": ["192.0.2.2"], "cluster": "c1", "remote": "192.0.2.1", "token": "SWMTKN"}
    assert options_of(play, "swarm.join") == [joined]
    assert options_of(play, "queue.cleaned") == [{"agent": "b", "sessions": [FIRST], "node": "new"}]


@pytest.mark.parametrize("swarm", [MANAGER, {"state": "active", "managers": ["node-a"]}])
def test_no_agent_leaves_its_swarm_because_the_store_says_so(swarm: Json) -> None:
    play, (a, b) = cleaning({"changed": True}), reports().agents
    found = Reports([a, with_place(b, **{**swarm, "cluster_id": "c1"})])
    clean_up(play, found, BACK)
    assert [step for _host, step, _args in play.asked] == ["queue.fenced", "containers.absent", "queue.cleaned"]


@pytest.mark.parametrize(
    ("now", "removed"), [({}, []), ({"b": FencedAgent((SECOND, THIRD), rejoins=False, swarm="c1")}, [[SECOND]])]
)
def test_a_session_that_another_controller_has_moved_back_meanwhile_keeps_its_containers(
    now: Mapping[str, FencedAgent], removed: list[list[str]]
) -> None:
    play = cleaning({"changed": True}, now)
    clean_up(play, reports(), {"b": FencedAgent((FIRST, SECOND), rejoins=True, swarm="c1")})
    assert [options["sessions"] for options in options_of(play, "containers.absent")] == removed
    assert options_of(play, "containers.stopped") == options_of(play, "swarm.leave") == []
    assert options_of(play, "queue.cleaned") == [{"agent": "b", "sessions": one, "node": ""} for one in removed]


def test_a_host_that_is_no_agent_of_the_play_is_left_alone() -> None:
    play = cleaning({"changed": True})
    clean_up(play, reports(), {"database": BACK["b"]})
    assert play.asked == []


def test_an_agent_that_cannot_be_cleaned_stays_fenced() -> None:
    play = cleaning({"failed": True, "msg": "b: the engine does not answer.", "failure": {"code": "engine"}})
    clean_up(play, reports(), BACK)
    assert [step for _host, step, _args in play.asked] == ["queue.fenced", "containers.absent"]
    assert "What sessions have left on b was not removed: b: the engine does not answer." in play.warnings[0]


def test_a_manager_that_answers_fences() -> None:
    play = conducted({"swarm.fence": {}}, "a", "b")
    fence_nodes(play, reports(), LOST)
    assert play.asked == [("a", "swarm.fence", {"nodes": {"b": "node-b"}, "swarm_id": "c1", "removes": True})]


def two_swarms() -> Reports:
    """Managers a and c of two Swarms, of which b was in that of c."""
    found = reports(cluster_id="other")
    return Reports([*found.agents, *reports_of([{"name": "c", "engine": {"swarm": MANAGER}}]).agents])


def test_only_the_swarm_of_a_lost_agent_says_that_it_is_lost() -> None:
    """A manager of another Swarm has never heard of the node, which may run."""
    play = conducted({"swarm.fence": {}}, "a", "b", "c")
    fence_nodes(play, two_swarms(), LOST)
    assert [host for host, _step, _options in play.asked] == ["c"]
    for lost, answering in ((LOST, reports(cluster_id="other")), (replace(LOST, swarms={"b": ""}), two_swarms())):
        with pytest.raises(StateError, match=r"^The managers that answer are of another Swarm than the lost host"):
            fence_nodes(play, answering, lost)
    # Of the only Swarm that there is, the manager says whether it has known the node.
    fence_nodes(play, reports(), replace(LOST, swarms={}))
    assert [(host, options["swarm_id"]) for host, _step, options in play.asked] == [("c", "c1"), ("a", "")]


def test_an_agent_joins_its_own_swarm_again() -> None:
    play = cleaning({"changed": True})
    clean_up(play, two_swarms(), BACK)
    assert [host for host, step, _args in play.asked if step == "swarm.describe"] == ["c"]
    play = cleaning({"changed": True})
    clean_up(play, reports(cluster_id="other"), BACK)
    assert "No manager of its Swarm answers: run `docker swarm leave --force` there" in play.warnings[0]


@pytest.mark.parametrize("shared", [True, False])
def test_without_a_manager_no_session_moves_unless_a_person_knows_that_its_containers_have_ended(shared: bool) -> None:
    """The agent may be out of reach for the controller alone, and its containers may still write."""
    play, loss = conducted({}, "a", "b"), replace(LOST, shared=shared)
    with pytest.raises(
        StateError, match=r"^No manager of a Swarm answers to confirm that the lost host is down"
    ) as caught:
        fence_nodes(play, reports(manager=False), loss)
    assert ("session_relocate_unfenced" in caught.value.message) is not shared
    # Addresses on an overlay belong to the Swarm, whatever a person knows.
    with pytest.raises(StateError) if shared else nullcontext():
        fence_nodes(play, reports(manager=False), loss, unfenced=True)
    assert play.asked == []
