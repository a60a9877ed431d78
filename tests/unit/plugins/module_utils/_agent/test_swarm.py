# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An engine that joins slowly, which a real engine does not do on demand."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest
from docker.errors import NotFound

from ansible_collections.cluster.compute.plugins.module_utils._agent import swarm
from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.client import AbsentError
from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.reports import EngineInfo
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.report import SwarmPlace
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import EngineError, StateError
from ansible_collections.cluster.compute.plugins.module_utils._shared.planning.swarm_plan import Membership, Node
from ansible_collections.cluster.compute.plugins.module_utils._steps import swarm as steps

SLOW = (
    "The engine of a2 could not join the Swarm of 192.0.2.1:2377: Timeout was reached before node joined. The attempt to join "
    'the swarm will continue in the background. Use the "docker info" command to see the current swarm status of your node.'
)


class Joining(swarm.SwarmEngine):
    """Returns these states in turn, then the last one."""

    def __init__(self, *states: str, refusal: str = "") -> None:
        self.states, self.refusal, self.agent = list(states), refusal, "a2"
        self.where = "The engine of a2"

    def info(self) -> EngineInfo:
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        return EngineInfo(swarm=SwarmPlace(state, "n2", "c"))

    def join(self, remotes: Any, token: str, address: str) -> None:
        if self.refusal:
            raise EngineError(self.refusal, "a2")


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(swarm, "PAUSE", 0.0)


def join(engine: Joining, seconds: float) -> str:
    return str(swarm.join_swarm(engine, "192.0.2.1", "token", "192.0.2.2", time.monotonic() + seconds).state)


def test_joining_waits_for_an_engine_that_continues_in_the_background() -> None:
    assert join(Joining("pending", "pending", "active", refusal=SLOW), 60) == "active"


def test_an_engine_that_never_joins_is_an_error() -> None:
    with pytest.raises(StateError, match="The engine of a2 is still pending in its Swarm; check that TCP 2377 is open"):
        join(Joining("pending", refusal=SLOW), 0)


def test_another_refusal_is_an_error_at_once() -> None:
    with pytest.raises(EngineError, match="invalid join token"):
        join(Joining("active", refusal="The engine of a2 could not join: invalid join token."), 60)


@pytest.mark.parametrize(
    ("states", "seconds", "settled"),
    [(("pending", "pending", "active"), 60, "active"), (("pending",), 0, "pending"), (("inactive",), 60, "inactive")],
)
def test_an_engine_that_has_just_started_gets_time(states: Any, seconds: float, settled: str) -> None:
    assert swarm.settled_membership(Joining(*states), time.monotonic() + seconds).state == settled


def test_a_node_that_another_command_removes_meanwhile_gets_no_role(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = iter([[{"ID": "n2", "Spec": {"Role": "worker"}}], []])

    def inspect_node(_identity: str) -> None:
        raise NotFound("404", explanation="node n2 not found")

    engine = swarm.SwarmEngine("unix:///nowhere", agent="a1")
    client = SimpleNamespace(nodes=lambda: next(listed), inspect_node=inspect_node)
    monkeypatch.setattr(engine, "_borrow", lambda: client)
    with pytest.raises(AbsentError, match="could not make node n2 a manager: node n2 not found"):
        swarm.set_node_roles(engine, ["n2"], "manager", time.monotonic() + 600, check=False)


def listed(node: str, state: str, name: str = "a2", address: str = "192.0.2.2") -> swarm.ListedNode:
    status = {"State": state, "Addr": address}
    return swarm.ListedNode.of(
        {"ID": node, "Spec": {"Role": "worker"}, "Description": {"Hostname": name}, "Status": status}
    )


@pytest.mark.parametrize(
    ("old", "removed"),
    [
        (listed("n1", "down"), ["n1"]),
        (listed("n1", "ready"), []),
        # Hosts may have one name, and an address may be that of a gateway.
        (listed("n1", "down", address="192.0.2.3"), []),
        (listed("n1", "down", name="a3"), []),
    ],
)
def test_what_a_host_was_before_it_left_is_removed(old: swarm.ListedNode, removed: list[str]) -> None:
    assert swarm.former_nodes({"n1": old, "n2": listed("n2", "ready")}, "n2") == removed
    assert swarm.former_nodes({"n1": old}, "n2") == []
    nowhere = {"n1": listed("n1", "down", address=""), "n2": listed("n2", "ready", address="")}
    assert swarm.former_nodes(nowhere, "n2") == []


NODES = {
    "n1": listed("n1", "ready", address="192.0.2.1"),
    "n2": listed("n2", "ready", address="192.0.2.92"),
    "n3": listed("n3", "down", address="192.0.2.3"),
}
NAMED = {"Names": ["/eve.train.sub1"], "Labels": {}}


class Member(Joining):
    """An engine of a Swarm with a session, whose list of nodes may be missing."""

    def nodes(self) -> dict[str, swarm.ListedNode]:
        if self.states == ["without a leader"]:
            raise EngineError("The swarm does not have a leader.", "a2")
        return NODES

    def network(self, name: str) -> None:
        assert name == "bridge"

    def containers(self, session: str = "", everyone: bool = False) -> list[Any]:
        assert not everyone
        return [NAMED]


@pytest.mark.parametrize(
    ("known", "is_local", "held", "busy"),
    [
        ("192.0.2.2", True, ["192.0.2.92", "198.18.0.2"], ["eve.train.sub1"]),
        ("192.0.2.92", True, [], []),
        # An engine elsewhere has other addresses than this host.
        ("192.0.2.2", False, [], []),
    ],
)
def test_where_an_engine_is_shows_whether_its_host_has_moved(
    known: str, is_local: bool, held: list[str], busy: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(swarm.host, "own_addresses", lambda: {"127.0.0.1", "192.0.2.92", "198.18.0.2"})
    place = Membership(state="active", address=known)
    found = swarm.node_of(Member("active"), place, ["192.0.2.92"], is_local=is_local)
    moved = {"held": tuple(held), "busy": tuple(busy)}
    assert found == Node(state="active", address=known, name="a2", own="192.0.2.92", **moved)


@pytest.mark.parametrize(
    ("state", "seen"), [("active", {"n1": "192.0.2.1", "n2": "192.0.2.92"}), ("without a leader", {})]
)
def test_a_manager_sees_the_nodes_that_are_ready(state: str, seen: dict[str, str]) -> None:
    place = Membership(state="active", address="127.0.0.1", manager=True)
    assert swarm.node_of(Member(state), place, [], is_local=True).seen == seen


@pytest.mark.parametrize(
    ("nodes", "known", "refusal"),
    [
        ({"n2": listed("n2", "down")}, "", ""),
        ({"n2": listed("n2", "ready")}, "c", "its node is ready"),
        ({}, "c", ""),
        ({}, "other", "its node is not in the list, which may be that of another Swarm"),
        ({}, "", "its node is not in the list, which may be that of another Swarm"),
    ],
)
def test_only_the_swarm_of_a_node_says_that_it_is_removed(nodes: Any, known: str, refusal: str) -> None:
    engine = Joining("active")
    engine.nodes = lambda: nodes  # type: ignore[method-assign]
    manager = SimpleNamespace(name="a1", connect=lambda _kind: engine, check=False)
    if not refusal:
        assert steps.fence(manager, {"a2": "n2"}, removes=False, swarm_id=known).changed is False  # type: ignore[arg-type]
        return
    with pytest.raises(StateError, match=refusal):
        steps.fence(manager, {"a2": "n2"}, removes=False, swarm_id=known)  # type: ignore[arg-type]
