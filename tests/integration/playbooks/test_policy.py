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
from controller import ROOT, Controller, Done, Session, run_playbook

LIMITS = {"containers": 2, "idle_timeout": 7200, "volumes": "own"}


def store_policy(controller: Controller, policy: dict[str, Any], tags: str = "store") -> Done:
    """As in docs/policy.md, for the store of this test. The other tasks of the role would look at the agent again, which takes far longer."""
    variables = {"agent_state_dir": str(controller.state), "agent_policy": policy}
    return controller.play("provision_agents", "--tags", tags, **variables)


@pytest.fixture(scope="module")
def limited(controller: Controller) -> Controller:
    """A site with a policy, and a session that keeps it."""
    policy = {"default": LIMITS, "groups": {"lab": {"owners": [controller.owner], "cpus": 6}}}
    path = controller.state / "policy.json"
    assert store_policy(controller, policy, tags="all").check().changed > 0
    written = (path.stat().st_ino, path.stat().st_mtime_ns)
    store_policy(controller, policy).check()
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == written
    controller.launched("train", session_idle_timeout=7200)
    return controller


def test_an_owner_keeps_the_idle_timeout_of_the_site(limited: Controller) -> None:
    """Neither left out, nor exceeded, nor switched off in a session that runs."""
    rule = "must be from 1 to 7200 seconds (policy of this site)."
    for name, asked in (("other", 0), ("other", 7201), ("train", 0)):
        refused = limited.launch(name, session_idle_timeout=asked)
        assert refused.message == f"session_idle_timeout: {asked}: {rule}"
    limited.launch("train", session_idle_timeout=3600).check()
    assert [(one["name"], one["idle_timeout"]) for one in limited.sessions()] == [("train", 3600)]


def test_the_policy_is_shown_with_what_owners_have(limited: Controller) -> None:
    shown = limited.play("policy").check().text
    assert re.search(rf"^ *owner {limited.owner} +1 +1 of 2 +0\.2 +64m +0$", shown, re.MULTILINE), shown
    assert re.search(r"^ *group lab +1 +1 +0\.2 of 6 +64m +0$", shown, re.MULTILINE), shown
    assert "default: idle_timeout 7200" in shown
    answer = limited.play("policy", policy_format="json").check().text
    document = json.loads(answer[answer.index("{\n") : answer.rindex("}\n") + 1])
    assert document["policy"]["default"] == LIMITS
    assert [one["used"]["containers"] for one in document["owners"] if one["name"] == limited.owner] == [1]


def test_the_use_of_owners_and_groups_is_shown_by_month(limited: Controller, tmp_path: Path) -> None:
    shown = limited.play("usage", session_owner="").check().text
    for kind, name in (("owner", limited.owner), ("group", "lab")):
        assert re.search(rf"20\d\d-\d\d +{kind} +{name} +1 ", shown), shown
    command = limited.command("usage", session_owner="", usage_format="csv", usage_file="use.csv")
    command[1] = str(ROOT / command[1])
    run_playbook(command, {**limited.environment, "PWD": str(tmp_path)}, tmp_path).check()
    rows = list(csv.DictReader((tmp_path / "use.csv").read_text().splitlines()))
    used = [(row["kind"], row["name"], row["sessions"]) for row in rows]
    assert [one for one in used if one[1] in (limited.owner, "lab")] == [
        ("owner", limited.owner, "1"),
        ("group", "lab", "1"),
    ]
    limited.play("usage", usage_format="json", usage_file=str(tmp_path / "use.json")).check()
    assert [one["name"] for one in json.loads((tmp_path / "use.json").read_text())] == [limited.owner]


def test_an_owner_mounts_no_volume_of_other_software(limited: Controller) -> None:
    name = f"{limited.owner}-foreign"
    limited.client.create_volume(name)
    try:
        mounts = [{"type": "volume", "source": name, "target": "/data"}]
        refused = limited.launch("other", session_idle_timeout=7200, session_mounts=mounts)
        assert f"the volume {name} was not created by a session of {limited.owner}" in refused.message
    finally:
        limited.client.remove_volume(name)


def test_a_policy_with_a_mistake_changes_nothing_and_an_empty_one_lifts_all_limits(limited: Controller) -> None:
    before = (limited.state / "policy.json").read_bytes()
    refused = store_policy(limited, {"default": {"cpu": 1}})
    assert "agent_policy.default: 'cpu': must be one of sessions, containers, cpus" in refused.message
    assert (limited.state / "policy.json").read_bytes() == before
    store_policy(limited, {}).check()
    limited.launched("free", session_cluster_size=2)


def test_a_relay_of_a_running_session_keeps_the_rules_for_ports_and_public_apps(limited: Controller) -> None:
    store_policy(limited, {"default": {"public_apps": False, "port_range": "20000-20010"}}).check()
    board = {"name": "board", "port": 8100, "command": "exec sleep 600"}
    publish = {"session_name": "train", "session_apps_publish": True}
    beyond = limited.play("session_apps", session_apps=[board], **publish)
    assert "session_port_range: " in beyond.message
    assert "must be within 20000-20010 (policy of this site)" in beyond.message
    permitted = {**publish, "session_port_range": "20000-20010"}
    public = limited.play("session_apps", session_apps=[{**board, "public": True}], **permitted)
    assert "session_apps: 'board': must not be public (policy of this site)" in public.message
    preferred = limited.play("session_apps", session_apps=[{**board, "preferred_port": 30005}], **permitted)
    assert "must be a preferred port within 20000-20010 (policy of this site)" in preferred.message
    assert "board" not in [app["name"] for app in Session(limited, "train").document["apps"]]


def test_a_link_below_a_permitted_folder_is_not_mounted(limited: Controller, tmp_path: Path) -> None:
    """An account with a front end only has this way to the folders of the host; a session has made the link."""
    pool = tmp_path / "pool"
    own = pool / limited.owner
    own.mkdir(parents=True)
    own.chmod(0o1777)
    store_policy(limited, {"default": {"mounts": [f"{pool}/"], "volumes": "plain"}}).check()
    mounts = [{"source": f"{pool}/<% owner %>", "target": "/data"}]
    first = limited.launched("first", session_mounts=mounts)
    first.say("main1", "ln -s /etc /data/link && touch /data/file")
    refused = limited.launch("second", session_mounts=[{"source": f"{own}/link", "target": "/host"}])
    assert refused.message.startswith("Session second was not launched: session_mounts: ")
    assert f"must have no symbolic link below {pool}, and {own}/link on " in refused.message
    assert limited.engine("second") == {}
    limited.launched("first", session_mounts=mounts)
    client, main = limited.client, first.containers()["main1"]["Id"]
    client.stop(main, timeout=3)
    limited.launched("first", session_mounts=mounts)
    assert first.say("main1", "ls /data").split() == ["file", "link"]
    limited.terminate("first").check()
