# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a container needs before it can be started, and trying again without going on for ever."""

from __future__ import annotations

import time
from typing import Any

import pytest
from engine_lab import Shape

from ansible_collections.cluster.compute.plugins.module_utils._engine import UnreachableError
from ansible_collections.cluster.compute.plugins.module_utils._errors import EngineError, StateError
from ansible_collections.cluster.compute.plugins.module_utils._launch import decide
from ansible_collections.cluster.compute.plugins.module_utils._removal import deadline_in, persist

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
    assert decide(PLAN.main, listed(state, launch), "now", "agent1") == action


@pytest.mark.parametrize("state", ["running", "exited"])
def test_another_spec_is_refused(state: str) -> None:
    other = listed(state, "before", **{"cluster.compute.container.spec": "other"})
    with pytest.raises(StateError, match="main1: on agent1 it was made from another plan"):
        decide(PLAN.main, other, "now", "agent1")


class Stubborn:
    """Refuses a number of times."""

    def __init__(self, times: int, error: Exception) -> None:
        self.times, self.error, self.calls = times, error, 0

    def __call__(self) -> None:
        self.calls += 1
        if self.calls <= self.times:
            raise self.error


def test_persist_until_it_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda _seconds: None)
    call = Stubborn(3, EngineError("busy"))
    persist(call, deadline_in(60))
    assert call.calls == 4


def test_persist_ends_with_the_last_error() -> None:
    call = Stubborn(100, EngineError("busy"))
    with pytest.raises(EngineError, match="busy"):
        persist(call, deadline_in(0))
    assert call.calls == 1


def test_an_engine_that_is_gone_is_not_tried_again() -> None:
    call = Stubborn(100, UnreachableError("gone"))
    with pytest.raises(UnreachableError):
        persist(call, deadline_in(60))
    assert call.calls == 1
