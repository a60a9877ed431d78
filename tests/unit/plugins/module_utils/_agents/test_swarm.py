# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An engine that takes its time to join: what it says meanwhile cannot be had from a real one at will."""

from __future__ import annotations

import time
from typing import Any

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._agents import swarm
from ansible_collections.cluster.compute.plugins.module_utils._core.errors import EngineError, StateError

SLOW = (
    "The engine of a2 could not join the Swarm of 192.0.2.1:2377: Timeout was reached before node joined. The attempt to join "
    'the swarm will continue in the background. Use the "docker info" command to see the current swarm status of your node.'
)


class Joining(swarm.SwarmEngine):
    """Is in these states, one at each look, the last one for ever."""

    def __init__(self, *states: str, refusal: str = "") -> None:
        self.states, self.refusal, self.agent = list(states), refusal, "a2"
        self.where = "The engine of a2"

    def info(self) -> dict[str, Any]:
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        return {"Swarm": {"LocalNodeState": state, "NodeID": "n2", "Cluster": {"ID": "c"}}}

    def join(self, remotes: Any, token: str, address: str) -> None:
        if self.refusal:
            raise EngineError(self.refusal, "a2")


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(swarm, "PAUSE", 0.0)


def join(engine: Joining, seconds: float) -> str:
    return str(swarm.join(engine, "192.0.2.1", "token", "192.0.2.2", time.monotonic() + seconds)["state"])


def test_an_engine_that_goes_on_joining_is_waited_for() -> None:
    assert join(Joining("pending", "pending", "active", refusal=SLOW), 60) == "active"


def test_one_that_never_joins_is_told() -> None:
    with pytest.raises(StateError, match="The engine of a2 is still pending in its Swarm; see that TCP 2377 is open"):
        join(Joining("pending", refusal=SLOW), 0)


def test_another_refusal_is_told_at_once() -> None:
    with pytest.raises(EngineError, match="invalid join token"):
        join(Joining("active", refusal="The engine of a2 could not join: invalid join token."), 60)


@pytest.mark.parametrize(
    ("states", "seconds", "settled"),
    [(("pending", "pending", "active"), 60, "active"), (("pending",), 0, "pending"), (("inactive",), 60, "inactive")],
)
def test_an_engine_that_has_just_begun_to_run_is_given_time(states: Any, seconds: float, settled: str) -> None:
    assert swarm.settled(Joining(*states), time.monotonic() + seconds)["state"] == settled
