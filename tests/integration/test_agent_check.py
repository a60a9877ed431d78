# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The modules of the check on a real engine: the report on a host, and the datagrams that pass its firewall."""

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


def agent(name: str, address: str) -> dict[str, Any]:
    return {"name": name, "address": address, "mtu": 1500, "member": False}


def datagrams_received(engine_host: str, address: str, **more: Any) -> list[list[str]]:
    """The datagrams that this host receives at one of its addresses."""
    mark = secrets.token_hex(6)
    common = {"docker_host": engine_host, "mark": mark}
    started = run_module("port_listener", name="receiver", **common)
    assert started.get("probe") == {"listened": True}, started
    assert started["changed"] is True
    assert run_module("port_listener", name="receiver", **common)["changed"] is False
    try:
        agents = [agent("sender", "127.0.0.1"), agent("receiver", address)]
        probed = run_module("port_probe", name="sender", agents=agents, docker_host=engine_host, mark=mark, **more)
        assert probed["probe"] == {"sent": True, "contained": True, "connected": {}}
    finally:
        would = run_module("port_listener", state="absent", name="receiver", check=True, **common)
        assert (would["changed"], would["probe"]) == (True, {"received": []})
        stopped = run_module("port_listener", state="absent", name="receiver", **common)
    again = run_module("port_listener", state="absent", name="receiver", **common)
    assert (again["changed"], again["probe"]) == (False, {"received": []})
    found: list[list[str]] = stopped["probe"]["received"]
    return sorted(found)


def test_a_host_is_examined(engine_host: str) -> None:
    result = run_module("agent_examination_info", name="me", docker_host=engine_host, several=True, check=True)
    report = result["report"]
    assert report["reachable"] is True
    assert report["image"] is True
    assert report["disk_free"] > 0
    assert report["cgroups"]["CPU quota"] is True
    assert report["esp"] in (True, False)
    assert result["changed"] is False


def test_an_engine_that_does_not_exist_is_a_report() -> None:
    report = run_module("agent_examination_info", name="me", docker_host="unix:///nowhere.sock")["report"]
    assert report["reachable"] is False
    assert "does not answer at unix:///nowhere.sock" in report["reason"]


def test_an_open_port_receives_all_datagrams(engine_host: str) -> None:
    assert datagrams_received(engine_host, OPEN) == [["sender", "full"], ["sender", "gossip"], ["sender", "vxlan"]]


@pytest.mark.usefixtures("firewall")
def test_a_closed_port_receives_none(engine_host: str) -> None:
    assert datagrams_received(engine_host, CLOSED) == [["sender", "gossip"]]
    assert ["sender", "vxlan"] in datagrams_received(engine_host, CLOSED, vxlan_port=7789), "of another Swarm"
