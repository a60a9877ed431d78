# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The policy of a site as its administrator writes it, what it does to launches, and who has used how much."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest
from controller import ROOT, Controller, Done, run

LIMITS = {"containers": 2, "idle_timeout": 600}


def store_policy(controller: Controller, policy: dict[str, Any]) -> Done:
    """As in docs/policy.md, for the store of this test."""
    return controller.play("provision_agents", agent_state_dir=str(controller.state), agent_policy=policy).check()


@pytest.fixture(scope="module")
def limited(controller: Controller) -> Controller:
    """A site with a policy, and a session that keeps it."""
    policy = {"default": LIMITS, "groups": {"lab": {"owners": [controller.owner], "cpus": 6}}}
    assert store_policy(controller, policy).changed > 0
    assert store_policy(controller, policy).changed == 0
    controller.launched("train", session_idle_timeout=600)
    return controller


def test_an_owner_keeps_the_idle_timeout_of_the_site(limited: Controller) -> None:
    """Neither left out, nor exceeded, nor switched off in a session that runs."""
    rule = "must be from 1 to 600 seconds (policy of this site)."
    for name, asked in (("other", 0), ("other", 601), ("train", 0)):
        refused = limited.launch(name, session_idle_timeout=asked)
        assert refused.message == f"session_idle_timeout: {asked}: {rule}"
    limited.launch("train", session_idle_timeout=300).check()
    assert [(one["name"], one["idle_timeout"]) for one in limited.sessions()] == [("train", 300)]


def test_the_policy_is_shown_with_what_owners_have(limited: Controller) -> None:
    shown = limited.play("policy").check().text
    assert re.search(rf"^ *owner {limited.owner} +1 +1 of 2 +0\.1 +64m +0$", shown, re.MULTILINE), shown
    assert re.search(r"^ *group lab +1 +1 +0\.1 of 6 +64m +0$", shown, re.MULTILINE), shown
    assert "default: idle_timeout 600" in shown
    answer = limited.play("policy", policy_format="json").check().text
    document = json.loads(answer[answer.index("{\n") : answer.rindex("}\n") + 1])
    assert document["policy"]["default"] == LIMITS
    assert [one["used"]["containers"] for one in document["owners"] if one["kind"] == "owner"] == [1]


def test_the_use_of_owners_and_groups_is_shown_by_month(limited: Controller, tmp_path: Path) -> None:
    shown = limited.play("usage").check().text
    for kind, name in (("owner", limited.owner), ("group", "lab")):
        assert re.search(rf"20\d\d-\d\d +{kind} +{name} +1 ", shown), shown
    command = limited.command("usage", usage_format="csv", usage_file="use.csv")
    command[1] = str(ROOT / command[1])
    run(command, cwd=tmp_path, env={**limited.environment, "PWD": str(tmp_path)}).check()
    rows = list(csv.DictReader((tmp_path / "use.csv").read_text().splitlines()))
    assert [(row["kind"], row["name"], row["sessions"]) for row in rows] == [
        ("owner", limited.owner, "1"),
        ("group", "lab", "1"),
    ]
    limited.play("usage", usage_format="json", usage_file=str(tmp_path / "use.json")).check()
    assert [one["name"] for one in json.loads((tmp_path / "use.json").read_text())] == [limited.owner, "lab"]


def test_a_policy_with_a_mistake_changes_nothing_and_an_empty_one_lifts_all_limits(limited: Controller) -> None:
    before = (limited.state / "policy.json").read_bytes()
    refused = limited.play("provision_agents", agent_state_dir=str(limited.state), agent_policy={"default": {"cpu": 1}})
    assert "agent_policy.default: 'cpu': must be one of sessions, containers, cpus" in refused.message
    assert (limited.state / "policy.json").read_bytes() == before
    store_policy(limited, {})
    limited.launched("free", session_cluster_size=3)


def test_a_drill_breaks_one_container_and_finds_it_repaired(limited: Controller, tmp_path: Path) -> None:
    verdicts = tmp_path / "drill.json"
    shown = limited.play("drill", drill_faults=["sub killed"], drill_file=str(verdicts)).check().text
    document = json.loads(verdicts.read_text())
    assert document["passed"] is True
    assert [one["fault"] for one in document["outcomes"]] == ["sub killed"]
    assert "sub killed" in shown
    refused = limited.play("drill", drill_faults=["sub killd"])
    assert refused.code != 0
    assert "sub killd" in refused.message
