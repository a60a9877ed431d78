# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The agent report, with and without a real engine."""

from __future__ import annotations

import os
import socket
from typing import Any

import docker
import pytest
from engine_lab import run_module

from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.report import AgentReport


@pytest.fixture(scope="module")
def info(engine_host: str) -> dict[str, Any]:
    return dict(docker.APIClient(base_url=engine_host, version="auto").info())


def test_report(info: dict[str, Any]) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        report = run_module("agent_info", name="agent1", paths=["/etc", "/no/such"], address="192.0.2.1")["agent"]
        assert holder.getsockname()[1] in report["ports"]
    agent = AgentReport.from_json(report)
    assert agent.reachable
    assert agent.capacity.millicpus == info["NCPU"] * 1000
    assert agent.capacity.memory == info["MemTotal"]
    assert agent.architecture == info["Architecture"]
    assert len(agent.capacity.cpu_ids) == info["NCPU"]
    assert report["paths"] == {"/etc": True, "/no/such": False}
    subnets = {subnet for network in agent.networks for subnet in network.subnets}
    assert subnets
    assert "172.17.0.0/16" in subnets or "172.17.0.0/16" not in agent.routes
    assert 1200 <= agent.mtu <= 65535
    assert report["limits"]["nofile"] >= 0
    empty = dict.fromkeys(("reference", "id", "architecture", "made", "owner"), "")
    assert report["image"] == {**empty, "present": False}


def test_overrides_and_reservations() -> None:
    given = {"cpus": "16", "memory": "64g", "reserved_cpus": 1.5, "reserved_memory": "4g"}
    gpus = [{"id": "GPU-1"}, {"id": "GPU-2", "shares": 4}]
    capacity = run_module("agent_info", name="agent1", gpus=gpus, **given)["agent"]["capacity"]
    assert capacity["millicpus"] == 14500
    assert capacity["memory"] == 60 << 30
    assert capacity["gpus"] == [
        {"id": "GPU-1", "shares": 1.0, "memory": 0},
        {"id": "GPU-2", "shares": 4.0, "memory": 0},
    ]


@pytest.mark.parametrize(
    ("options", "variable"),
    [
        ({"cpus": "many"}, "cpus"),
        ({"reserved_memory": "1x"}, "reserved_memory"),
        ({"gpus": [{"shares": 2}]}, "gpus"),
        ({"gpus": [{"id": "GPU-1", "shares": 0}]}, "gpus"),
    ],
)
def test_bad_amounts_are_refused(options: dict[str, Any], variable: str) -> None:
    result = run_module("agent_info", name="agent1", **options)
    assert result["failed"]
    assert result["failure"]["code"] == "input"
    assert result["failure"]["where"] == variable


@pytest.mark.parametrize(
    ("docker_host", "reason"),
    [
        ("unix:///no/such.sock", "No such file or directory; start the engine."),
        ("tcp://127.0.0.1:9", "Connection refused; start the engine."),
    ],
)
def test_an_engine_that_does_not_answer_is_a_report(docker_host: str, reason: str) -> None:
    result = run_module("agent_info", name="agent1", docker_host=docker_host)
    assert not result.get("failed")
    agent = AgentReport.from_json(result["agent"])
    assert not agent.reachable
    assert not agent.may_return
    assert agent.reason == f"The engine of agent1 does not answer at {docker_host}: {reason}"
    assert set(result["agent"]) == set(run_module("agent_info", name="agent1")["agent"])


def test_a_silent_engine_is_given_up_on_in_time(tmp_path: Any) -> None:
    path = os.path.join("/tmp", f"silent-{os.getpid()}.sock")
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(path)
        silent.listen()
        try:
            agent = run_module("agent_info", name="agent1", docker_host="unix://" + path, timeout=1)["agent"]
        finally:
            os.unlink(path)
    assert not agent["reachable"]
    assert agent["may_return"]
    assert "timed out" in agent["reason"]
