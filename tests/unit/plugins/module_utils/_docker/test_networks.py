# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Networks that an engine refuses to remove. The engine is a stand-in: no test can make a real one miscount its endpoints."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._core.constants import LABEL_SESSION
from ansible_collections.cluster.compute.plugins.module_utils._core.errors import EngineError
from ansible_collections.cluster.compute.plugins.module_utils._core.waiting import deadline_in
from ansible_collections.cluster.compute.plugins.module_utils._docker import networks

REFUSAL = "The engine could not remove network train: it has active endpoints; start the engine again."
NETWORK = {"Name": "train", "Id": "n1", "Scope": "local", "Labels": {LABEL_SESSION: "s"}}


class RefusingEngine:
    """An engine that refuses so many removals. Until ``leaves``, it lists a container on the network."""

    agent = "agent1"

    def __init__(self, refusals: int, leaves: int = 0, scope: str = "local", refusal: str = REFUSAL) -> None:
        self.refusal = refusal
        self.listed = {**NETWORK, "Scope": scope}
        self.refusals = refusals
        self.leaves = leaves
        self.tries = 0

    def networks(self, _session: str = "") -> list[dict[str, Any]]:
        return [self.listed]

    def info(self) -> dict[str, Any]:
        return {"Swarm": {"ControlAvailable": True}}

    def network(self, _identity: str) -> dict[str, Any]:
        return {**self.listed, "Containers": {"c1": {}} if self.tries <= self.leaves else {}}

    def remove_network(self, _identity: str, _name: str) -> None:
        self.tries += 1
        if self.tries <= self.refusals:
            raise EngineError(self.refusal, "agent1")


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(networks, "COUNTING", 0.3)


def removed(engine: RefusingEngine, seconds: float) -> dict[str, Any]:
    return networks.absent(engine, ["s"], deadline_in(seconds), False)  # type: ignore[arg-type]


def test_a_refusal_for_a_moment_is_waited_for() -> None:
    result = removed(RefusingEngine(refusals=2), 20)
    assert (result["removed"], result["left"], result["warnings"]) == (["train"], [], [])


def test_a_network_without_containers_that_the_engine_keeps_fails_no_end() -> None:
    engine = RefusingEngine(refusals=10**6)
    result = removed(engine, 3600)
    assert (result["changed"], result["removed"], result["left"]) == (False, [], ["train"])
    [warning] = result["warnings"]
    assert warning.startswith("agent1: the engine keeps network train, on which it lists no container")
    assert engine.tries < 20


def test_the_time_begins_when_the_last_container_has_left() -> None:
    result = removed(RefusingEngine(refusals=6, leaves=5), 20)
    assert result["removed"] == ["train"]


def test_a_network_with_a_container_is_an_error() -> None:
    with pytest.raises(EngineError, match="active endpoints"):
        removed(RefusingEngine(refusals=10**6, leaves=10**6), 1)


def test_of_a_shared_network_the_containers_on_other_agents_are_not_listed() -> None:
    with pytest.raises(EngineError, match="active endpoints"):
        removed(RefusingEngine(refusals=10**6, scope="swarm"), 1)


def test_a_network_that_the_swarm_keeps_for_an_agent_out_of_reach_is_named() -> None:
    """The agents answer the controller, but not each other."""
    engine = RefusingEngine(10**6, scope="swarm", refusal="network n1 is in use by task t1")
    result = removed(engine, 0.5)
    assert (result["left"], result["removed"]) == (["train"], [])
    [warning] = result["warnings"]
    assert warning.startswith("Network train stays: the Swarm counts a container of an agent on it")
    assert "check_agents.yml" in warning
