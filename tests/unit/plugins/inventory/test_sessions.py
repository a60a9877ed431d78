# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The inventory files of docs/inventory.md, over two sessions."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest
from ansible.utils.unsafe_proxy import AnsibleUnsafe
from warm_playbook import run_of_checkout

from ansible_collections.cluster.compute.plugins.inventory import sessions
from ansible_collections.cluster.compute.plugins.plugin_utils._client import shared_config

PAGE = Path(__file__).resolve().parents[4] / "docs" / "inventory.md"
FILE = re.compile(r"^```yaml\n# (\S+\.sessions\.yml)\n(.*?)^```", re.MULTILINE | re.DOTALL)
FILES = dict(FILE.findall(PAGE.read_text()))


def document(name: str, driver: str = "bridge") -> dict[str, Any]:
    places = [("main1", "node1", ["GPU-1"]), ("sub1", "node1", []), ("sub2", "node2", [])]
    containers = [{"hostname": host, "agent": agent, "gpus": gpus} for host, agent, gpus in places]
    return {
        "session": {
            "id": str(uuid.uuid5(uuid.NAMESPACE_DNS, name)),
            "name": name,
            "owner": "alice",
            "user": {"name": "work"},
        },
        "network": {"driver": driver},
        "containers": containers,
        "apps": [{"name": "ssh", "address": "127.0.0.1", "port": 30007}],
    }


@pytest.mark.parametrize(("hostname", "group"), [("ps2", "role_ps"), ("name-node1", "role_name_node")])
def test_each_role_of_a_session_is_a_group(checkout: Path, base: Path, hostname: str, group: str) -> None:
    made = document("train")
    made["containers"][1]["hostname"] = hostname
    (base / "train" / "session.json").write_text(json.dumps(made))
    assert inventory(checkout, base, next(iter(FILES)))[group] == {f"train.{hostname}"}


@pytest.fixture
def base(tmp_path: Path) -> Path:
    folder = tmp_path / "base"
    (folder / ".requests").mkdir(parents=True, mode=0o700)
    for name in ("train", "serve"):
        (folder / name).mkdir(parents=True, mode=0o700)
        (folder / name / "session.json").write_text(json.dumps(document(name)))
        (folder / name / "ssh_config").write_text("Host main1\nHost sub1 sub2\n")
    assert shared_config.update(str(folder)) == ""
    assert (folder / "ssh_config").is_file()
    return folder


def inventory(checkout: Path, base: Path, name: str) -> dict[str, set[str]]:
    """The hosts of each group."""
    path = base.parent / name
    path.write_text(FILES[name] + f"artifacts: {base}\n")
    read = base.parent / "read.json"
    code, text = run_of_checkout("inventory", ["-i", str(path), "--list", "--output", str(read)], checkout)
    assert code == 0, text
    listed = json.loads(read.read_text())
    return {group: set(content["hosts"]) for group, content in listed.items() if content.get("hosts")}


def test_the_page_has_two_files() -> None:
    assert set(FILES) == {"train.sessions.yml", "all.sessions.yml"}


def test_one_session(checkout: Path, base: Path) -> None:
    groups = inventory(checkout, base, "train.sessions.yml")
    assert groups["session_train"] == {"train.main1", "train.sub1", "train.sub2"}
    assert groups["role_main"] == {"train.main1"}
    assert set(groups) == {"session_train", "role_main", "role_sub"}


def test_a_damaged_document_of_another_session_does_not_matter(checkout: Path, base: Path) -> None:
    (base / "serve" / "session.json").write_text("{")
    assert set(inventory(checkout, base, "train.sessions.yml")) == {"session_train", "role_main", "role_sub"}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a directory to another user")
def test_the_session_of_another_user_is_left_out(checkout: Path, base: Path) -> None:
    """Its ssh_config could name any program, which ssh would run as this user."""
    os.chown(base / "serve", 12345, 12345)
    groups = inventory(checkout, base, "all.sessions.yml")
    assert groups["role_main"] == {"train.main1"}
    path = base.parent / "serve.sessions.yml"
    path.write_text(FILES["all.sessions.yml"] + f"artifacts: {base}\nsessions: [serve]\n")
    code, text = run_of_checkout("inventory", ["-i", str(path), "--list"], checkout)
    assert code != 0
    assert "belongs to another user" in " ".join(text.split())


def test_all_sessions_have_hosts_of_different_names_and_groups_for_each_agent(checkout: Path, base: Path) -> None:
    """The file ssh_config and the directory of requests beside the sessions' directories are no sessions."""
    groups = inventory(checkout, base, "all.sessions.yml")
    assert groups["agent_node1"] == {"train.main1", "train.sub1", "serve.main1", "serve.sub1"}
    assert groups["agent_node2"] == {"train.sub2", "serve.sub2"}
    assert groups["has_gpu"] == {"train.main1", "serve.main1"}
    assert groups["role_main"] == {"train.main1", "serve.main1"}


def test_the_port_of_other_hosts_is_not_that_of_containers(checkout: Path, base: Path) -> None:
    """A program in the place of ssh shows its port if Ansible names one, which has precedence over the session's configuration."""
    (base / "serve" / "session.json").write_text(json.dumps(document("serve", "host")))
    (base.parent / "all.sessions.yml").write_text(FILES["all.sessions.yml"] + f"artifacts: {base}\n")
    program = base.parent / "ssh"
    program.write_text(
        f"#!/bin/sh\necho $* | grep -Eo '(train|serve)/|Port=[0-9]+|main1 |sub[12] ' | xargs >> {base}/shown\n"
    )
    program.chmod(0o755)
    environment = {**os.environ, "ANSIBLE_SSH_EXECUTABLE": str(program), "ANSIBLE_REMOTE_PORT": "2222"}
    words = ["-i", str(base.parent / "all.sessions.yml"), "all", "-f1", "-m", "ansible.builtin.raw", "-a", "true"]
    subprocess.run([sys.executable, "-m", "ansible", "adhoc", *words], cwd=checkout, env=environment, check=True)
    shown = sorted((base / "shown").read_text().splitlines())
    of_train = ["Port=22 train/ sub1", "Port=22 train/ sub2", "Port=30007 train/ main1"]
    assert shown == [*of_train[:2], *(f"Port=30007 serve/ {host}" for host in ("main1", "sub1", "sub2")), of_train[2]]


HOSTILE = "{{ lookup('pipe', 'touch MARK') }}"


def test_a_text_of_the_document_is_not_evaluated() -> None:
    """ansible-core before 2.19 evaluates every text that is not marked."""
    made = document("train")
    made["containers"][0]["gpus"] = [HOSTILE]
    marked = sessions._unevaluated({"cluster_compute": made["containers"][0]})
    is_old = tuple(map(int, sessions.__version__.split(".")[:2])) < (2, 19)
    assert isinstance(marked["cluster_compute"]["gpus"][0], AnsibleUnsafe) == is_old


@pytest.mark.parametrize("key", ["agent", "hostname", "address"])
def test_a_document_with_another_value_than_a_name_is_refused(checkout: Path, base: Path, key: str) -> None:
    made = document("train")
    made["containers"][0][key] = HOSTILE
    (base / "train" / "session.json").write_text(json.dumps(made))
    path = base.parent / "train.sessions.yml"
    path.write_text(FILES["train.sessions.yml"] + f"artifacts: {base}\n")
    read = base.parent / "read.json"
    _code, text = run_of_checkout("inventory", ["-i", str(path), "--list", "--output", str(read)], checkout)
    assert f'is refused: it has "{HOSTILE}" in containers.0.{key}.' in " ".join(text.split())
    assert not read.exists() or "MARK" not in read.read_text()
