# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Expressions of the role agent."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
import yaml
from expressions import ROLES, evaluated, rendered
from warm_playbook import run_of_checkout

from ansible_collections.cluster.compute.plugins.plugin_utils._doctor.provisioning import AgentVariables, role_settings

LOGS = "3614fdf3-0e04-4a4b-9d5c-1f7c0a8e6b11"
REFERENCE = "cluster-compute/reference:1"


@pytest.mark.parametrize(
    ("offered", "first"),
    [(["docker", "docker-ce"], "docker-ce"), (["moby-engine"], "moby-engine"), (["docker"], "docker"), ([], "")],
)
def test_red_hat_installs_the_first_engine_that_is_offered(offered: list[str], first: str) -> None:
    settings = role_settings("a", "192.0.2.1", AgentVariables(), {"os_family": "RedHat"}, {})
    given = {"__agent": settings, "__agent_offered": {"stdout_lines": offered}}
    assert rendered("agent", "__agent_engine_packages", **given)[:1] == ([first] if first else [])


def test_an_agent_with_containers_of_sessions_is_busy() -> None:
    """An image that was committed from a container passes its labels on to containers of other owners."""
    lines = [
        "alice.demo.main1 alice.demo.main1",
        "web alice.demo.main1",
        "alice.demo.main10 alice.demo.main1",
        "",
        "x ",
    ]
    assert rendered("agent", "__agent_busy", __agent_containers={"stdout_lines": lines}) == ["alice.demo.main1"]


def test_only_what_the_store_created_is_removed() -> None:
    entries = [
        "sessions.db",
        "sessions.db-journal",
        "mysessions.db",
        "sessions.dbs/x",
        "notes",
        "policy.json",
        "policy_json",
    ]
    files = [{"path": "/s/" + name, "isreg": True, "isdir": False} for name in entries]
    folders = [
        {"path": "/s/" + name, "isreg": False, "isdir": True} for name in (LOGS, "data", "sessions.db", LOGS + "0")
    ]
    removed = rendered("agent", "__agent_store_contents", __agent_kept={"files": files + folders})
    assert removed == ["/s/sessions.db", "/s/sessions.db-journal", "/s/policy.json", "/s/" + LOGS]


@pytest.mark.parametrize(
    ("shown", "names"),
    [
        ("0f1e2d3c4b5a6978 1", [REFERENCE]),
        ("0f1e2d3c4b5a6978 2", []),
        ("0f1e2d3c4b5a6978 11", []),
        (" 1", []),
        ("", []),
    ],
)
def test_an_image_that_inherits_the_label_is_not_the_reference_image(shown: str, names: list[str]) -> None:
    """``docker image inspect`` shows the label and the number of layers of the image of that name."""
    assert rendered("agent", "__agent_images", __agent_inspected={"stdout": shown}) == names


@pytest.mark.parametrize(
    ("address", "is_removed"),
    [("", True), ("unix:///var/run/docker.sock", True), ("unix:///run/user/1000/docker.sock", False)],
)
def test_only_the_engine_that_the_role_installs_is_removed(address: str, is_removed: bool) -> None:
    tasks = yaml.safe_load((ROLES / "agent/tasks/absent.yml").read_text())
    (task,) = (task for task in tasks if task["name"] == "Remove the engine")
    given = {"agent_remove_engine": True, "agent_docker_host": address}
    own = {"__agent_own_engine": yaml.safe_load((ROLES / "agent/vars/main.yml").read_text())["__agent_own_engine"]}
    assert all(evaluated("{{ %s }}" % condition, **given, **own) for condition in task["when"]) == is_removed


@pytest.mark.parametrize(
    ("text", "options"), [(None, {}), ("", {}), ("\n", {}), ('{"log-driver": "local"}', {"log-driver": "local"})]
)
def test_options_are_added_to_those_of_the_engine(text: str | None, options: dict[str, str]) -> None:
    """The engine starts with an empty file of options, too."""
    read = {} if text is None else {"content": base64.b64encode(text.encode()).decode()}
    assert rendered("agent", "__agent_current", __agent_daemon_json=read) == options


def test_a_misspelled_variable_is_refused_with_a_limit_too(tmp_path: Path) -> None:
    """It would provision the host instead of removing it."""
    hosts = "".join(f"{name} ansible_host=127.0.0.1 ansible_port=1\n" for name in ("node1", "node2"))
    (tmp_path / "hosts").write_text(f"[agents]\n{hosts}")
    command = ["-i", str(tmp_path / "hosts"), str(ROLES.parent / "playbooks/provision_agents.yml")]
    for limit in ("all", "node1"):
        words = [*command, "--limit", limit, "-e", "agent_stat=absent"]
        code, shown = run_of_checkout("playbook", words, tmp_path)
        assert code == 2, shown
        assert "did you mean agent_state?" in shown
        assert "Connection refused" not in shown
