# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The verbs ``hosts`` and ``init`` of the command ``cluster-compute`` write inventories and session files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from cluster_compute.__main__ import main
from command_samples import refusal
from command_schema import checked

pytestmark = pytest.mark.usefixtures("home")


def inventory(file: str) -> dict[str, Any]:
    """An inventory as Ansible reads it."""
    program = Path(sys.executable).with_name("ansible-inventory")
    done = subprocess.run([str(program), "-i", file, "--list"], capture_output=True, text=True, check=True)
    loaded: dict[str, Any] = json.loads(done.stdout)
    return loaded


def test_hosts_are_added_to_the_inventory(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hosts", "add", "alice@192.0.2.1", "root@node2.example.org", "--head", "--no-provision"]) == 0
    text = Path("hosts.yml").read_text()
    Path("hosts.yml").write_text(text.replace("  hosts:\n", "  # Mine.\n  hosts:\n", 1))
    assert main(["hosts", "add", "2001:db8::3", "--name", "node3", "--no-provision", "--json"]) == 0
    assert checked("hosts", capsys.readouterr().out) == {"file": "hosts.yml", "hosts": ["node3"], "provisioned": False}
    read = inventory("hosts.yml")
    assert sorted(read["agents"]["hosts"]) == ["192.0.2.1", "node2.example.org", "node3"]
    assert read["head"]["hosts"] == ["192.0.2.1"]
    assert read["_meta"]["hostvars"] == {
        "192.0.2.1": {"ansible_host": "192.0.2.1", "ansible_user": "alice", "agent_users": ["alice"]},
        "node2.example.org": {"ansible_host": "node2.example.org", "ansible_user": "root"},
        "node3": {"ansible_host": "2001:db8::3"},
    }
    assert "# Mine." in Path("hosts.yml").read_text()


def test_an_inventory_that_is_not_understood_stays_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    text = "all:\n  children:\n    agents:\n      hosts:\n        node1:\n"
    Path("mine.yml").write_text(text)
    assert '"192.0.2.1": {"ansible_host": "192.0.2.1"}' in refusal(
        capsys, "-i", "mine.yml", "hosts", "add", "192.0.2.1"
    )
    assert Path("mine.yml").read_text() == text
    assert main(["hosts", "add", "node1", "--no-provision"]) == 0
    text = Path("hosts.yml").read_text()
    assert refusal(capsys, "hosts", "add", "node1") == "node1: the inventory has it already"
    for words in (["a b"], ["x;id@host"], ["{{x}}"], [], ["a", "b", "--name", "c"]):
        refusal(capsys, "hosts", "add", *words)
    assert Path("hosts.yml").read_text() == text


def test_init_writes_two_files_and_overwrites_none(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["init", "--yes", "alice@node1", "alice@node2"]) == 0
    assert "cluster-compute up session.yml" in capsys.readouterr().out
    assert sorted(inventory("hosts.yml")["agents"]["hosts"]) == ["node1", "node2"]
    first = yaml.safe_load(Path("session.yml").read_text())
    assert (first["session_name"], first["session_cluster_size"], first["session_cluster_mode"]) == (
        "train",
        "2",
        "multi-node",
    )
    before = Path("session.yml").read_text()
    Path("hosts.yml").unlink()
    assert "init overwrites no file" in refusal(capsys, "init", "--yes", "node9")
    assert (Path("session.yml").read_text(), Path("hosts.yml").exists()) == (before, False)


def test_init_asks(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter(["node1", "first", "", "0.5", "", "pytorch"])
    monkeypatch.setattr("builtins.input", lambda: next(answers))
    assert main(["init", "--json"]) == 0
    output = capsys.readouterr()
    assert checked("init", output.out) == {"files": ["hosts.yml", "session.yml"]}
    assert "Name of the first session [train]:" in output.err
    assert yaml.safe_load(Path("session.yml").read_text()) == {
        "session_name": "first",
        "session_cluster_size": "1",
        "session_cluster_mode": "single-node",
        "session_cpus": "0.5",
        "session_memory": "1g",
        "session_image": "pytorch",
    }
