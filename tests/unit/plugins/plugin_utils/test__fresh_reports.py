# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Agents are asked again while a session waits, and addresses that were taken are avoided."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible.errors import AnsibleConnectionFailure
from played import played
from samples import SESSION, plan, request

from ansible_collections.cluster.compute.plugins.action import schedule
from ansible_collections.cluster.compute.plugins.module_utils._core.documents import Json
from ansible_collections.cluster.compute.plugins.plugin_utils import _other_hosts as other_hosts
from ansible_collections.cluster.compute.plugins.plugin_utils._kept_requests import KeptRequests
from ansible_collections.cluster.compute.plugins.plugin_utils._reports import Avoided, avoided

MADE = plan(request(apps=[{"name": "web", "port": 80}]))


class Agents:
    """Agents by name: each answers with a new report, or is lost."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.asked: list[tuple[str, Json]] = []
        self.closed: list[str] = []

    def __call__(self, _action: object, host: str, _task_vars: object) -> Any:
        agents = self

        class Agent:
            def module(self, name: str, args: Json) -> Json:
                assert name == "agent_info"
                agents.asked.append((host, args))
                if isinstance(agents.answers[host], Exception):
                    raise agents.answers[host]
                return {"agent": agents.answers[host]}

            def close(self) -> None:
                agents.closed.append(host)

        return Agent()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(schedule, "KeptRequests", lambda _base: KeptRequests(str(tmp_path)))
    monkeypatch.setattr(schedule, "_INTERVAL", 0.0)
    monkeypatch.setattr(schedule, "load_extra_vars", lambda _loader: {})


def scheduled(monkeypatch: pytest.MonkeyPatch, agents: Agents, wait: int, **variables: Any) -> Any:
    monkeypatch.setattr(other_hosts, "OtherHost", agents)
    session = {"id": SESSION, "name": "train", "holder": None, "launch": "y"}
    waits = {"outcome": "pending", "session": session, "reason": "because", "plan": None}
    action = played(schedule.ActionModule, waits, waits, {**waits, "outcome": "running"})
    first = {
        host: {"__session_report": {"agent": {"name": host, "old": True}, "options": {"name": host, "group": "g"}}}
        for host in agents.answers
    }
    task_vars = {"hostvars": first, "ansible_play_hosts_all": list(first), **variables}
    asked = {"request": request().to_json(), "artifacts": "/nonexistent", "wait": wait}
    action.result = action.act(asked, task_vars)
    return action


def test_each_attempt_of_a_session_that_waits_has_new_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    agents = Agents(a={"name": "a", "old": False}, b=AnsibleConnectionFailure("no route to host"))
    action = scheduled(monkeypatch, agents, wait=60)
    assert [[one.get("old") for one in call["agents"]] for call in action.asked] == [
        [True, True],
        [False, None],
        [False, None],
    ]
    lost = action.asked[-1]["agents"][1]
    assert (lost["name"], lost["group"], lost["reachable"], lost["reason"]) == ("b", "g", False, "no route to host")
    assert agents.asked.count(("a", {"name": "a", "group": "g"})) == 2
    assert sorted(agents.closed) == ["a", "b", "b"]


def test_a_session_that_does_not_wait_asks_no_agent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    agents = Agents(a={"name": "a"})
    assert scheduled(monkeypatch, agents, wait=0).result["outcome"] == "pending"
    assert agents.asked == []


def test_addresses_at_which_an_attempt_failed_count_as_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    before = {"subnets": ["10.201.9.0/27"], "ports": [30009]}
    variables = {
        "__session_scheduled": {"plan": MADE.to_json(), "avoided": before},
        "__session_recorded": {"retried": MADE.session.launch},
    }
    action = scheduled(monkeypatch, Agents(a={"name": "a"}), wait=0, **variables)
    subnets, ports = ["10.201.9.0/27", MADE.network.subnet], [30009, 30000]
    assert action.asked[0]["agents"] == [{"name": "a", "old": True, "routes": subnets, "ports": ports}]
    assert action.result["avoided"] == {"subnets": subnets, "ports": ports}


@pytest.mark.parametrize("recorded", [{}, {"retried": ""}, {"retried": "another"}])
def test_another_launch_avoids_nothing(recorded: Json) -> None:
    variables = {"__session_scheduled": {"plan": MADE.to_json()}, "__session_recorded": recorded}
    assert avoided(variables) == avoided({}) == Avoided()
