# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Networks that an engine refuses to remove. The engine is a stand-in: no test can make a real one miscount its endpoints."""

from __future__ import annotations

from typing import Any

import pytest
from samples import plan, request

from ansible_collections.cluster.compute.plugins.module_utils._agent.engine import networks
from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.reports import EngineInfo
from ansible_collections.cluster.compute.plugins.module_utils._shared import label
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import Plan, Port
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.report import SwarmPlace
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import EngineError, TakenError
from ansible_collections.cluster.compute.plugins.module_utils._shared.waiting import deadline_in

REFUSAL = "The engine could not remove network train: it has active endpoints; start the engine again."
NETWORK = {"Name": "train", "Id": "n1", "Scope": "local", "Labels": {label.SESSION: "s"}}


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

    def info(self) -> EngineInfo:
        return EngineInfo(swarm=SwarmPlace(manager=True))

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
    return networks.remove_network(engine, ["s"], deadline_in(seconds), False)  # type: ignore[arg-type]


class Listening:
    """An engine with a container of the session, or without one."""

    agent = "a"

    def __init__(self, *states: str) -> None:
        self.states = states

    def containers(self, _session: str) -> list[dict[str, Any]]:
        return [{"State": state} for state in self.states]


def check_ports(made: Plan, port: int, *states: str) -> None:
    networks.check_host_ports(Listening(*states), made, {port, 22})  # type: ignore[arg-type]


@pytest.mark.parametrize("port", [30001, 30002, 8888])
def test_a_port_that_something_else_has_taken_is_refused_before_a_container_exists(port: int) -> None:
    ports = (Port("ssh", 30001, "127.0.0.1", 30001), Port("lab", 8888, "127.0.0.1", 8888))
    made = plan(request(network="host"), "a", ports=ports, master_port=30002, hosts={"a": ("192.0.2.5", "ens1")})
    with pytest.raises(TakenError, match="On a something else listens at port %d, which session train needs" % port):
        check_ports(made, port, "exited")
    check_ports(made, port, "running")
    check_ports(made, port, "paused")
    check_ports(made, 9999)


def test_the_network_of_the_hosts_is_not_made() -> None:
    made = plan(request(network="host"), "a", hosts={"a": ("192.0.2.5", "ens1")})
    result = networks.create_network(Listening(), made, False)  # type: ignore[arg-type]
    assert (result.changed, result.network["driver"]) == (False, "host")


def test_a_refusal_for_a_moment_is_waited_for() -> None:
    result = removed(RefusingEngine(refusals=2), 20)
    assert (result.removed, result.left, result.warnings) == (("train",), (), ())


def test_a_network_without_containers_that_the_engine_keeps_fails_no_end() -> None:
    engine = RefusingEngine(refusals=10**6)
    result = removed(engine, 3600)
    assert (result.changed, result.removed, result.left) == (False, (), ("train",))
    [warning] = result.warnings
    assert warning.startswith("agent1: the engine keeps network train, on which it lists no container")
    assert engine.tries < 20


def test_the_time_begins_when_the_last_container_has_left() -> None:
    result = removed(RefusingEngine(refusals=6, leaves=5), 20)
    assert result.removed == ("train",)


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
    assert (result.left, result.removed) == (("train",), ())
    [warning] = result.warnings
    assert warning.startswith("Network train stays: the Swarm counts a container of an agent on it")
    assert "check_agents.yml" in warning
