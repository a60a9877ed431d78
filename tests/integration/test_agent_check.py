# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The check's own parts on a real engine: what a host is found to be, and who is heard through its firewall."""

from __future__ import annotations

import os
import secrets
import subprocess
from collections.abc import Iterator
from typing import Any

import docker
import pytest
from engine_lab import run_module

REFERENCE = "cluster-compute/reference:1"
# Of the loopback network, and nobody else's.
SHUT = "127.0.77.78"
OPEN = "127.0.77.77"
RULE = ["INPUT", "-p", "udp", "--dport", "4789", "-d", SHUT, "-j", "DROP"]


@pytest.fixture(scope="module", autouse=True)
def reference(engine_host: str) -> None:
    """The listener is made from the reference image."""
    client = docker.APIClient(base_url=engine_host, version="auto")
    if not client.images(REFERENCE):
        pytest.skip("no agent to test on: provision_agents.yml makes the reference image")


@pytest.fixture
def firewall() -> Iterator[None]:
    if os.geteuid() != 0:
        pytest.skip("only root may shut a port")
    subprocess.run(["iptables", "-I", *RULE], check=True)
    try:
        yield
    finally:
        subprocess.run(["iptables", "-D", *RULE], check=True)


def agent(name: str, address: str) -> dict[str, Any]:
    return {"name": name, "address": address, "mtu": 1500, "swarm": {"state": "inactive"}}


def heard(engine_host: str, address: str) -> list[list[str]]:
    """What this host hears that was sent to one of its addresses."""
    mark = secrets.token_hex(6)
    common = {"docker_host": engine_host, "mark": mark}
    opened = run_module("agent_check", state="opened", name="receiver", **common)
    assert opened.get("probe") == {"listened": True}, opened
    try:
        agents = [agent("sender", "127.0.0.1"), agent("receiver", address)]
        probed = run_module("agent_check", state="probed", name="sender", agents=agents, **common)
        assert probed["probe"] == {"sent": True, "connected": {}}
    finally:
        closed = run_module("agent_check", state="closed", name="receiver", **common)
    assert run_module("agent_check", state="closed", name="receiver", **common)["probe"] == {"heard": []}
    found: list[list[str]] = closed["probe"]["heard"]
    return sorted(found)


def test_a_host_is_examined(engine_host: str) -> None:
    result = run_module("agent_check", name="me", docker_host=engine_host, several=True, check=True)
    report = result["report"]
    assert report["reachable"] is True
    assert report["image"] is True
    assert report["disk_free"] > 0
    assert report["cgroups"]["CPU quota"] is True
    assert report["esp"] in (True, False)
    assert result["changed"] is False


def test_an_engine_that_is_not_there_is_a_report() -> None:
    report = run_module("agent_check", name="me", docker_host="unix:///nowhere.sock")["report"]
    assert report["reachable"] is False
    assert "does not answer at unix:///nowhere.sock" in report["reason"]


def test_everything_is_heard(engine_host: str) -> None:
    assert heard(engine_host, OPEN) == [["sender", "4789/udp"], ["sender", "7946/udp"], ["sender", "full"]]


@pytest.mark.usefixtures("firewall")
def test_a_shut_port_is_not(engine_host: str) -> None:
    assert heard(engine_host, SHUT) == [["sender", "7946/udp"]]
