# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps of the check on a real engine: the report on a host, and the datagrams that pass its firewall."""

from __future__ import annotations

import os
import secrets
import subprocess
from collections.abc import Iterator
from typing import Any

import docker
import pytest
from engine_lab import run_module

from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.client import Engine
from ansible_collections.cluster.compute.plugins.module_utils._agent.examination import lasting_body, start_lasting
from ansible_collections.cluster.compute.plugins.module_utils._agent.port_probe import start_listener
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents import validation
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.examination import (
    Examination,
    Probe,
    Unreached,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import EngineError
from ansible_collections.cluster.compute.plugins.module_utils._shared.waiting import deadline_in, wait_until

REFERENCE = "cluster-compute/reference:1"
# Addresses of the loopback network that nothing else uses.
CLOSED = "127.0.77.78"
OPEN = "127.0.77.77"
RULE = ["INPUT", "-p", "udp", "--dport", "4789", "-d", CLOSED, "-j", "DROP"]


@pytest.fixture(scope="module", autouse=True)
def reference(engine_host: str) -> None:
    """The listener is made from the reference image."""
    client = docker.APIClient(base_url=engine_host, version="auto")
    if not client.images(REFERENCE):
        pytest.skip("no agent to test on: provision_agents.yml makes the reference image")


@pytest.fixture
def firewall() -> Iterator[None]:
    if os.geteuid() != 0:
        pytest.skip("only root can close a port")
    subprocess.run(["iptables", "-I", *RULE], check=True)
    try:
        yield
    finally:
        subprocess.run(["iptables", "-D", *RULE], check=True)


def step(name: str, agent: str, engine_host: str, **params: Any) -> dict[str, Any]:
    """The result of a step of the doctor. Also in check mode, it works: it removes what it starts."""
    call = {"call": f"doctor.{name}", "params": params, "agent": agent, "docker_host": engine_host}
    return run_module("agent_step", check=True, **call)


def probe(result: dict[str, Any]) -> Probe:
    return validation.arrived(Probe, result, "answer", "me")


def agent(name: str, address: str) -> dict[str, Any]:
    return {"name": name, "address": address, "mtu": 1500, "member": False}


def containers(engine_host: str, mark: str) -> list[Any]:
    client = docker.APIClient(base_url=engine_host, version="auto")
    found: list[Any] = client.containers(all=True, filters={"label": [f"cluster.compute.check={mark}"]})
    return found


def datagrams_received(engine_host: str, address: str, port: int = 4789) -> list[tuple[str, ...]]:
    """The datagrams that this host receives at one of its addresses."""
    mark = secrets.token_hex(6)
    started = step("listen", "receiver", engine_host, mark=mark)
    assert probe(started).listened, started
    try:
        agents = [agent("sender", "127.0.0.1"), agent("receiver", address)]
        sent = probe(step("send", "sender", engine_host, agents=agents, mark=mark, port=port))
        assert (sent.sent, sent.contained, sent.connected) == (True, True, {})
    finally:
        heard = step("hear", "receiver", engine_host, mark=mark)
    assert containers(engine_host, mark) == []
    assert probe(step("hear", "receiver", engine_host, mark=mark)).received == ()
    return sorted(probe(heard).received or ())


def test_a_host_is_examined(engine_host: str) -> None:
    result = step("examine", "me", engine_host, addresses=[], several=True)
    found = validation.arrived(Examination, result.get("report"), "report", "me")
    assert found.engine.image is True
    assert found.engine.disk_free > 0
    assert "CPU quota" in found.engine.cgroups
    assert found.esp in (True, False)
    assert result["changed"] is False


def test_an_engine_that_does_not_exist_is_a_report() -> None:
    result = step("examine", "me", "unix:///nowhere.sock", addresses=[], several=False)
    found = validation.arrived(Unreached, result.get("unreached"), "report", "me")
    assert "does not answer at unix:///nowhere.sock" in found.reason


def test_an_open_port_receives_all_datagrams(engine_host: str) -> None:
    assert datagrams_received(engine_host, OPEN) == [("sender", "full"), ("sender", "gossip"), ("sender", "vxlan")]


@pytest.mark.usefixtures("firewall")
def test_a_closed_port_receives_none(engine_host: str) -> None:
    assert datagrams_received(engine_host, CLOSED) == [("sender", "gossip")]
    assert ("sender", "vxlan") in datagrams_received(engine_host, CLOSED, port=7789), "of another Swarm"


def test_a_listener_that_nothing_removes_ends_and_is_removed_by_its_engine(engine_host: str) -> None:
    engine, mark = Engine(engine_host, agent="me"), secrets.token_hex(6)
    start_listener(engine, mark, 1)
    assert wait_until(lambda: not containers(engine_host, mark), deadline_in(30))


def test_a_container_that_fails_says_why_and_is_removed(engine_host: str) -> None:
    engine, mark = Engine(engine_host, agent="me"), secrets.token_hex(6)
    name = f"cluster-compute-check-test-{mark}"
    with pytest.raises(EngineError, match=r"^me: it does not listen: .*no such port failed; check that the reference"):
        start_lasting(
            engine, name, lasting_body("raise SystemExit('no such port')", [], "none", mark), "it does not listen"
        )
    assert containers(engine_host, mark) == []
