# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The required state of a container before its start, and retries that end."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from engine_lab import Shape

from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.client import (
    Engine,
    UnreachableError,
    container_entries,
)
from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.connection import persist
from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.containers import (
    AgentContainers,
    refusal,
    required_action,
)
from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.payloads import AgentSettings
from ansible_collections.cluster.compute.plugins.module_utils._shared import label
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import Mount
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.step_documents import Action
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import (
    ConflictError,
    EngineError,
    StateError,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.waiting import deadline_in

PLAN = Shape(launch="now").plan()

DECISIONS = [
    (None, None, "created"),
    ("running", "now", ""),
    ("running", "before", ""),
    ("created", "now", ""),
    ("created", "before", "recreated"),
    ("exited", "before", ""),
    ("exited", "now", ""),
    ("paused", "before", ""),
    ("dead", "now", "recreated"),
    ("removing", "before", "recreated"),
]


def listed(state: str | None, launch: str | None, **labels: str) -> dict[str, Any] | None:
    if state is None:
        return None
    own = {**PLAN.main.labels, "cluster.compute.launch": launch, **labels}
    return {"Id": "e1", "Names": ["/x"], "State": state, "Labels": own}


@pytest.mark.parametrize(("state", "launch", "action"), DECISIONS)
def test_decide(state: str | None, launch: str | None, action: str) -> None:
    assert required_action(PLAN.main, listed(state, launch), "now", "agent1") == action


@pytest.mark.parametrize("state", ["running", "exited"])
def test_another_spec_is_refused(state: str) -> None:
    other = listed(state, "before", **{"cluster.compute.container.spec": "other"})
    with pytest.raises(StateError, match="main1: on agent1 the container was created from another plan"):
        required_action(PLAN.main, other, "now", "agent1")


class Counting(Engine):
    """An engine in memory that counts its requests; ``ends`` is how a container ends that does not keep running."""

    def __init__(self, ends: dict[str, Any] | None = None) -> None:
        self.states = {one.id: "created" for one in PLAN.containers}
        self.ends = ends
        self.names: dict[str, str] = {}
        self.asked: Counter[str] = Counter()

    def containers(self, session: str = "", everyone: bool = False) -> list[dict[str, Any]]:
        self.asked["list"] += 1
        return [
            {
                "Id": one.id,
                "Names": ["/" + self.names.get(one.id, one.name)],
                "State": self.states[one.id],
                "Labels": dict(one.labels),
            }
            for one in PLAN.containers
            if one.id in self.states
        ]

    def rename(self, identity: str, name: str, subject: str = "") -> None:
        self.names[identity] = name

    def start(self, identity: str, subject: str = "") -> None:
        self.asked["start"] += 1
        self.states[identity] = "exited" if self.ends and subject == "sub1" else "running"

    def inspect(self, identity: str, subject: str = "") -> dict[str, Any] | None:
        self.asked["inspect"] += 1
        return {"State": {"Status": self.states[identity], **(self.ends or {})}}

    def has_path(self, identity: str, path: str, subject: str = "") -> bool:
        self.asked["path"] += 1
        return True

    def logs(self, *_arguments: Any, **_options: Any) -> str:
        raise EngineError("the driver keeps none.")


def launched(engine: Counting, bootstrap: str = "") -> AgentContainers:
    plan = replace(PLAN, session=replace(PLAN.session, bootstrap=bootstrap))
    return AgentContainers(engine, plan, "agent1", deadline=deadline_in(10))


@pytest.mark.parametrize(("bootstrap", "paths"), [("", 0), ("prepare", 3)])
def test_containers_that_run_are_told_by_the_list_alone(bootstrap: str, paths: int) -> None:
    engine = Counting()
    outcome = launched(engine, bootstrap).started()
    assert [one.state for one in outcome.containers] == ["running"] * 3
    assert (engine.asked["start"], engine.asked["inspect"], engine.asked["path"]) == (3, 0, paths)


@pytest.mark.parametrize("state", ["running", "exited"])
def test_a_container_that_was_renamed_gets_its_name_again(state: str) -> None:
    engine = Counting()
    engine.states = dict.fromkeys(engine.states, state)
    engine.names = {PLAN.main.id: "mine"}
    outcome = launched(engine).started()
    assert Action(PLAN.main.name, "renamed") in outcome.actions
    assert (engine.names, outcome.containers[0].engine_name) == ({PLAN.main.id: PLAN.main.name}, PLAN.main.name)


@pytest.mark.parametrize(
    ("ends", "why"),
    [
        ({"ExitCode": 3}, "ended with exit code 3"),
        ({"ExitCode": 137, "OOMKilled": True}, "was killed because memory ran out"),
    ],
)
def test_why_one_ended_is_told_also_without_its_log(ends: dict[str, Any], why: str) -> None:
    engine = Counting(ends)
    with pytest.raises(EngineError) as caught:
        launched(engine).started()
    assert caught.value.message == (
        f"sub1: on agent1 the container {why} right after its start; its last lines: they cannot be read (the driver keeps none)."
    )
    # The end of the launch reads the log of the container, and then removes it.
    assert engine.states[PLAN.containers[1].id] == "exited"


def test_how_one_ended_is_asked_for() -> None:
    engine = Counting({"ExitCode": 137, "OOMKilled": True})
    engine.states = dict.fromkeys(engine.states, "running")
    engine.states[PLAN.containers[1].id] = "exited"
    entries = container_entries(engine, engine.containers())
    assert [(one.state, one.oom_killed) for one in entries] == [
        ("running", False),
        ("exited", True),
        ("running", False),
    ]
    assert engine.asked["inspect"] == 1


class Stubborn:
    """Refuses a number of times."""

    def __init__(self, times: int, error: Exception) -> None:
        self.times, self.error, self.calls = times, error, 0

    def __call__(self) -> None:
        self.calls += 1
        if self.calls <= self.times:
            raise self.error


def test_a_refused_call_is_repeated_until_it_succeeds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda _seconds: None)
    call = Stubborn(3, EngineError("busy"))
    persist(call, deadline_in(60))
    assert call.calls == 4


def test_a_refused_call_raises_its_last_error_at_the_deadline() -> None:
    call = Stubborn(100, EngineError("busy"))
    with pytest.raises(EngineError, match="busy"):
        persist(call, deadline_in(0))
    assert call.calls == 1


def test_an_engine_that_is_gone_is_not_tried_again() -> None:
    call = Stubborn(100, UnreachableError("gone"))
    with pytest.raises(UnreachableError):
        persist(call, deadline_in(60))
    assert call.calls == 1


PLAIN = Mount("data", "/data", "volume")

OPTIONS = {"type": "tmpfs", "device": "tmpfs"}
OWNER = "cluster.compute.session.owner"


def volume(labels: dict[str, str] | None = None, **fields: Any) -> dict[str, Any]:
    return {"Driver": "local", "Labels": labels, "Options": None, **fields}


@pytest.mark.parametrize(
    ("found", "options"),
    [
        (volume(), {}),
        (volume({"a": "label"}), {}),
        (volume(Options={"type": "nfs"}), {}),
        (volume(Driver="other"), {}),
        (volume(Options=OPTIONS), OPTIONS),
        (volume({OWNER: "alice"}, Options=OPTIONS), OPTIONS),
    ],
)
def test_a_volume_of_a_user_and_a_shared_volume_of_an_owner_may_be_mounted(
    found: dict[str, Any], options: dict[str, str]
) -> None:
    assert refusal(Mount("data", "/data", "volume", "rw", options), found, "alice", "runtime") == ""


@pytest.mark.parametrize(
    ("source", "found", "options", "reason"),
    [
        ("runtime", volume(), {}, "belongs to the collection"),
        ("other", volume({"cluster.compute.runtime": "1"}), {}, "belongs to the collection"),
        ("data", volume({OWNER: "bob"}), {}, "belongs to a session of owner bob"),
        ("data", volume({OWNER: "bob"}, Options=OPTIONS), OPTIONS, "belongs to a session of owner bob"),
        ("data", volume(), OPTIONS, "exists with another driver or other options"),
        ("data", volume(Options={**OPTIONS, "o": "ro"}), OPTIONS, "exists with another driver or other options"),
        ("data", volume(Driver="other", Options=OPTIONS), OPTIONS, "exists with another driver or other options"),
    ],
)
def test_other_volumes_are_refused(source: str, found: dict[str, Any], options: dict[str, str], reason: str) -> None:
    assert refusal(Mount(source, "/data", "volume", "rw", options), found, "alice", "runtime").startswith(reason)


@pytest.mark.parametrize(
    ("labels", "is_own"), [(None, False), ({"a": "label"}, False), ({OWNER: "alice"}, True), ({OWNER: "bob"}, False)]
)
def test_a_policy_can_permit_only_the_volumes_of_sessions_of_the_owner(
    labels: dict[str, str] | None, is_own: bool
) -> None:
    reason = refusal(PLAIN, volume(labels), "alice", "runtime", own_only=True)
    assert (reason == "") == is_own, reason
    if not labels:
        assert reason.startswith("was not created by a session of alice")


@pytest.mark.parametrize(
    ("session", "began", "said"),
    [
        (
            PLAN.session.name,
            PLAN.session.began + 60,
            "of a newer session of this name, which the store does not know: do not remove it",
        ),
        (PLAN.session.name, PLAN.session.began - 60, "which does not belong to this session; remove or rename it"),
        ("other", PLAN.session.began + 60, "which does not belong to this session; remove or rename it"),
    ],
)
def test_a_newer_session_of_the_same_name_is_not_to_be_removed(session: str, began: float, said: str) -> None:
    """As after a copy of the store was restored that is older than that session."""
    main = PLAN.main
    changed = {
        label.SESSION: "1b2c3d4e-0000-4000-8000-000000000001",
        label.NAME: session,
        label.BEGAN: str(began),
    }

    class Holding(Counting):
        def create(self, name: str, _body: Any, _subject: str = "") -> str:
            raise ConflictError(f"{name} is in use")

        def inspect(self, _identity: str, _subject: str = "") -> dict[str, Any]:
            return {"Id": "e" * 64, "Name": "/" + main.name, "Config": {"Labels": {**main.labels, **changed}}}

    with pytest.raises(ConflictError, match=said):
        launched(Holding())._create(main, AgentSettings())
