# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""TERM goes to all containers before the first wait, and containers that stay are returned. None waits for one that hangs."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._agent.engine import removal
from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.client import LateError
from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.removal import (
    ChangeLog,
    Removal,
    end_programs,
    grace_of,
    stop_containers,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared import label
from ansible_collections.cluster.compute.plugins.module_utils._shared.constants import GRACE
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import ConflictError, StateError

MOST_REQUESTS = 20


class FakeEngine:
    """An engine whose containers end when they are listed for the second time, except the stubborn ones."""

    agent = "agent1"

    def __init__(self, containers: list[dict[str, Any]], stubborn: tuple[str, ...] = ()) -> None:
        self.held = containers
        self.stubborn = stubborn
        self.requests: list[str] = []

    def hasty(self, _seconds: int) -> FakeEngine:
        return self

    def stop(self, identity: str, _grace: int, _subject: str) -> None:
        self.requests.append("KILL " + identity)
        if identity == "hung":
            raise LateError("it does not answer")

    def terminate(self, identity: str, _subject: str) -> None:
        self.requests.append("TERM " + identity)
        if identity == "gone":
            raise ConflictError("it is not running")
        if identity == "hung":
            raise LateError("it does not answer")

    def unpause(self, identity: str, _subject: str) -> None:
        self.requests.append("unpause " + identity)

    def containers(self, session: str = "") -> list[dict[str, Any]]:
        self.requests.append("list " + session)
        assert len(self.requests) < MOST_REQUESTS, self.requests
        if len([request for request in self.requests if request.startswith("list")]) > 1:
            self.held = [one if one["Id"] in self.stubborn else {**one, "State": "exited"} for one in self.held]
        return self.held


def listed(identity: str, state: str = "running", session: str = "s", **labels: str) -> dict[str, Any]:
    return {"Id": identity, "State": state, "Names": ["/" + identity], "Labels": {label.SESSION: session, **labels}}


def test_all_containers_receive_term_before_the_first_wait() -> None:
    engine = FakeEngine([listed("a"), listed("b", "paused"), listed("c", "exited"), listed("gone")])
    assert end_programs(engine, engine.held) == ([], [])  # type: ignore[arg-type]
    assert sorted(engine.requests[:4]) == ["TERM a", "TERM b", "TERM gone", "unpause b"]
    assert engine.requests[4:] == ["list s", "list s"]


def test_a_container_that_still_runs_is_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removal, "STOP_MARGIN", 0)
    own = {label.GRACE: "0"}
    engine = FakeEngine([listed("a", **own), listed("b", session="t", **own)], ("b",))
    left, hung = end_programs(engine, engine.held)  # type: ignore[arg-type]
    assert ([one["Id"] for one in left], hung) == (["a", "b"], [])
    assert engine.requests[-1] == "list "


def test_a_container_about_which_a_busy_engine_answers_late_has_its_grace() -> None:
    engine = FakeEngine([listed("a"), listed("hung")])
    assert end_programs(engine, engine.held) == ([], [])  # type: ignore[arg-type]
    assert engine.requests[2:] == ["list s", "list s"]


def test_a_container_that_does_not_end_after_a_late_answer_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removal, "STOP_MARGIN", 0)
    own = {label.GRACE: "0"}
    engine = FakeEngine([listed("a", **own), listed("hung", **own)], ("a", "hung"))
    left, hung = end_programs(engine, engine.held)  # type: ignore[arg-type]
    assert ([one["Id"] for one in left], [one["Id"] for one in hung]) == (["a"], ["hung"])


def test_a_stop_names_a_container_that_hangs_and_kills_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removal, "STOP_MARGIN", 0)
    own = {label.GRACE: "0"}
    engine, outcome = FakeEngine([listed("a", **own), listed("hung", **own)], ("a", "hung")), ChangeLog({})
    with pytest.raises(StateError, match="hung: on agent1 the container hangs, and the engine"):
        stop_containers(engine, engine.held, outcome, check=False)  # type: ignore[arg-type]
    assert sorted(engine.requests[-2:]) == ["KILL a", "KILL hung"]


def test_no_request_for_containers_that_have_ended() -> None:
    engine = FakeEngine([listed("a", "exited"), listed("b", "created")])
    assert end_programs(engine, engine.held) == ([], [])  # type: ignore[arg-type]
    assert engine.requests == []


@pytest.mark.parametrize(
    ("text", "grace"),
    [
        ("30", 30),
        ("0", 0),
        ("", GRACE),
        ("-1", GRACE),
        ("\u00b2", GRACE),
        ("1e9", GRACE),
        ("9" * 30, GRACE),
        ("3600", 3600),
        ("3601", GRACE),
    ],
)
def test_the_grace_of_a_container_is_that_of_its_label(text: str, grace: int) -> None:
    assert grace_of(listed("a", **{label.GRACE: text})) == grace


def test_a_container_without_the_label_has_the_default() -> None:
    assert grace_of({"Labels": None}) == GRACE


@pytest.mark.parametrize(("most", "seconds"), [({"s": 7}, 7), ({"s": 900}, 600), ({"other": 7}, 600), ({}, 600)])
def test_a_label_makes_no_end_longer_than_the_plan_of_the_session(
    most: dict[str, int], seconds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every member of the engine's group can label a container with the session of another."""
    waits: list[float] = []
    monkeypatch.setattr(removal, "wait_until", lambda is_over, deadline, **_more: waits.append(deadline) or is_over())
    monkeypatch.setattr(removal, "deadline_in", lambda seconds: seconds)
    engine = Owners([listed("a", session="s", **{label.GRACE: "5"}), listed("b", session="s", **{label.GRACE: "600"})])
    end_programs(engine, engine.held, most)  # type: ignore[arg-type]
    assert waits == [seconds + removal.STOP_MARGIN]


class Owners(FakeEngine):
    """An engine with sessions of two owners."""

    def stop(self, identity: str, grace: int, subject: str) -> None:
        super().stop(identity, grace, subject)
        self.held = [{**one, "State": "exited"} if one["Id"] == identity else one for one in self.held]

    def volumes(self) -> list[dict[str, Any]]:
        return []

    def remove(self, identity: str, _subject: str, _deadline: float = 0.0) -> None:
        self.requests.append("remove " + identity)
        self.held = [one for one in self.held if one["Id"] != identity]


@pytest.mark.parametrize("ending", [True, False])
def test_no_command_waits_for_the_programs_of_a_session_that_is_over(
    ending: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its end and its grace are over. The command is about another session, which has its grace."""
    waits: list[float] = []
    monkeypatch.setattr(removal, "wait_until", lambda is_over, deadline, **_more: waits.append(deadline) or is_over())
    monkeypatch.setattr(removal, "deadline_in", lambda seconds: seconds)
    left = [listed("x", session="over", **{label.GRACE: "3600"}), listed("y", "exited", session="over")]
    engine = Owners([*([listed("a", session="s", **{label.GRACE: "5"})] if ending else []), *left])
    done = Removal(engine, ["s", "over"], "", 1, over=frozenset({"over"})).carry_out(check=False)  # type: ignore[arg-type]
    assert (done.failure, engine.held) == (None, [])
    asked = [one for one in engine.requests if one.split()[0] in ("TERM", "KILL")]
    assert asked == (["KILL x", "TERM a"] if ending else ["KILL x"])
    assert waits[:1] == ([5 + removal.STOP_MARGIN] if ending else [])
