# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command ``cluster-compute``: the files that it writes, which are an inventory and a first session."""

from __future__ import annotations

import json
import os
import resource
from pathlib import Path
from typing import Any

import pytest
import yaml
from cluster_compute.__main__ import main
from command_schema import checked
from typed_command import refusal
from warm_playbook import run_of_checkout

pytestmark = pytest.mark.usefixtures("home")


def inventory(file: str) -> dict[str, Any]:
    """An inventory as Ansible reads it."""
    code, text = run_of_checkout("inventory", ["-i", file, "--list", "--output", "read.json"], Path.cwd())
    assert code == 0, text
    return dict(json.loads(Path("read.json").read_text()))


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


@pytest.mark.parametrize(
    "text", ["agents:\n    hosts:\n        node1: {}", "agents:\n  hosts:\n\n   # Mine.\n   node1:\n# End.\n\n\n"]
)
def test_hosts_are_added_at_the_indentation_and_after_the_end_of_the_inventory(text: str) -> None:
    Path("hosts.yml").write_text(text)
    assert main(["hosts", "add", "node2", "--head", "--no-provision"]) == 0
    read = inventory("hosts.yml")
    assert sorted(read["agents"]["hosts"]) == ["node1", "node2"]
    assert read["head"]["hosts"] == ["node2"]
    former, *rest = Path("hosts.yml").read_text().partition('"node2": {')
    assert "".join([former.rstrip(" "), *rest]).startswith(text.rpartition("# End")[0])
    assert text.rpartition("node1")[2].partition("\n")[2] in rest[1]


def test_a_host_that_is_added_is_the_last_and_the_head_stays() -> None:
    """The head keeps the session store and the policy."""
    assert main(["hosts", "add", "node1", "node2", "--no-provision"]) == 0
    assert inventory("hosts.yml")["head"]["hosts"] == ["node1"]
    assert main(["hosts", "add", "alice@node0", "--no-provision"]) == 0
    read = inventory("hosts.yml")
    assert (read["agents"]["hosts"], read["head"]["hosts"]) == (["node1", "node2", "node0"], ["node1"])


@pytest.mark.parametrize(
    ("text", "head"),
    [
        (
            'agents:\n  hosts:\n    # First.\n    "fd00::1":\n      ansible_port: 2\n    b: {}\n  vars:\n    x: 1\n',
            ["fd00::1"],
        ),
        ("agents:\n  hosts:\n    a.example.org: {}\n\n# End.\nother:\n  hosts:\n    z:\n", ["a.example.org"]),
        ("agents:\n  hosts:\n    a:\n    b:\nhead:\n  hosts:\n    b:\n", ["b"]),
        # The first of a range is the first agent, as before.
        ("agents:\n  hosts:\n    node[1:2]:\n", None),
    ],
)
def test_the_head_of_an_inventory_stays_when_hosts_are_added(text: str, head: list[str] | None) -> None:
    Path("hosts.yml").write_text(text)
    before = inventory("hosts.yml")["agents"]["hosts"]
    assert main(["hosts", "add", "node9", "--no-provision"]) == 0
    read = inventory("hosts.yml")
    assert read["agents"]["hosts"] == [*before, "node9"]
    assert read.get("head", {}).get("hosts") == head
    assert read.get("other", {}).get("hosts", ["z"]) == ["z"]


def test_the_address_of_a_host_may_have_the_port_of_ssh() -> None:
    assert (
        main(["hosts", "add", "alice@node1:2222", "fd00::22", "[fd00::23]:22", "[fe80::24%eth0]:22", "--no-provision"])
        == 0
    )
    assert inventory("hosts.yml")["_meta"]["hostvars"] == {
        "node1": {"ansible_host": "node1", "ansible_port": 2222, "ansible_user": "alice", "agent_users": ["alice"]},
        "fd00::22": {"ansible_host": "fd00::22"},
        "fd00::23": {"ansible_host": "fd00::23", "ansible_port": 22},
        "fe80::24": {"ansible_host": "fe80::24%eth0", "ansible_port": 22},
    }


@pytest.mark.skipif(os.geteuid() != 0, reason="links are refused to root")
def test_root_writes_no_inventory_through_a_link(capsys: pytest.CaptureFixture[str]) -> None:
    Path("elsewhere").write_text("# Hosts.\nagents:\n  hosts:\n")
    Path("hosts.yml").symlink_to("elsewhere")
    assert main(["hosts", "add", "192.0.2.1", "--no-provision"]) != 0
    assert Path("elsewhere").read_text() == "# Hosts.\nagents:\n  hosts:\n"


def test_a_full_disk_loses_no_inventory(capsys: pytest.CaptureFixture[str]) -> None:
    text = "agents:\n  hosts:\n" + "".join(f"    node{number}:\n" for number in range(100))
    Path("hosts.yml").write_text(text)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        assert main(["hosts", "add", "192.0.2.1", "--no-provision"]) == 1
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "File too large" in capsys.readouterr().err
    assert (Path("hosts.yml").read_text(), os.listdir()) == (text, ["hosts.yml"])


def test_an_inventory_keeps_its_mode_and_its_owner() -> None:
    Path("elsewhere").mkdir()
    file = Path("elsewhere/hosts.yml")
    file.write_text("agents:\n  hosts:\n")
    file.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(file, 12345, 23456)
    else:
        Path("hosts.yml").symlink_to(file)
    before = file.stat()
    name = "elsewhere/hosts.yml" if os.geteuid() == 0 else "hosts.yml"
    assert main(["-i", name, "hosts", "add", "192.0.2.1", "--no-provision"]) == 0
    after = file.stat()
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)
    assert "192.0.2.1" in file.read_text()


def test_an_inventory_that_is_not_understood_stays_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    Path("latin.yml").write_bytes(b"# R\xe4ume\nagents:\n  hosts:\n")
    assert main(["-i", "latin.yml", "hosts", "add", "192.0.2.1", "--no-provision"]) == 0
    assert b"# R\xe4ume\n" in Path("latin.yml").read_bytes()
    text = "all:\n  children:\n    agents:\n      hosts:\n        node1:\n"
    Path("mine.yml").write_text(text)
    assert '"192.0.2.1": {"ansible_host": "192.0.2.1"}' in refusal(
        capsys, "-i", "mine.yml", "hosts", "add", "192.0.2.1"
    )
    assert Path("mine.yml").read_text() == text
    assert main(["hosts", "add", "node1", "--no-provision"]) == 0
    text = Path("hosts.yml").read_text()
    message = "node1: the inventory has it already; hosts provision makes it an agent"
    assert refusal(capsys, "hosts", "add", "node1") == message
    for word in ("a b", "x;id@host", "{{x}}", "a:0", "a:65536", "[fd00::23", "fd00::23]:22"):
        assert refusal(capsys, "hosts", "add", word) == f"{word!r} is not a host's [USER@]ADDRESS[:PORT]"
    for words in ([], ["a", "b", "--name", "c"], ["nat:2201", "nat:2202"]):
        assert refusal(capsys, "hosts", "add", *words).startswith("each host needs an address and a name of its own")
    assert Path("hosts.yml").read_text() == text


def test_hosts_are_added_to_the_inventory_that_later_commands_read(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANSIBLE_INVENTORY", "mine.ini")
    refused = refusal(capsys, "hosts", "add", "node1", "--no-provision")
    assert refused == "later commands read the inventory of ANSIBLE_INVENTORY, not hosts.yml: unset it, or use -i"
    assert os.listdir() == []
    assert main(["-i", "hosts.yml", "hosts", "add", "node1", "--no-provision"]) == 0
    monkeypatch.setenv("ANSIBLE_INVENTORY", os.path.abspath("hosts.yml"))
    assert main(["hosts", "add", "node2", "--no-provision"]) == 0
    monkeypatch.delenv("ANSIBLE_INVENTORY")
    Path("hosts.yml").rename("cluster-compute.yml")
    assert main(["hosts", "add", "node3", "--no-provision"]) == 0
    assert os.listdir() == ["cluster-compute.yml"]
    assert sorted(inventory("cluster-compute.yml")["agents"]["hosts"]) == ["node1", "node2", "node3"]


def test_init_writes_two_files_and_overwrites_none(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["init", "--yes", "alice@node1", "alice@node2"]) == 0
    assert "cluster-compute up session.yml" in capsys.readouterr().out
    assert sorted(inventory("hosts.yml")["agents"]["hosts"]) == ["node1", "node2"]
    assert yaml.safe_load(Path("session.yml").read_text())["session_name"] == "train"
    before = Path("session.yml").read_text()
    Path("hosts.yml").unlink()
    assert "init overwrites no file" in refusal(capsys, "init", "--yes", "node9")
    assert (Path("session.yml").read_text(), Path("hosts.yml").exists()) == (before, False)


@pytest.mark.parametrize(
    ("hosts", "size", "expected"),
    [
        ("node1", "3", {"cluster_size": "3"}),
        ("node1 node2 node3", "", {"cluster_size": "3", "per_agent": "1"}),
        ("node1 node2 node3", "7", {"cluster_size": "7", "per_agent": "3"}),
        ("node1 node2 node3", "many", {"cluster_size": "many"}),
    ],
)
def test_the_first_session_uses_all_hosts(
    hosts: str, size: str, expected: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter([hosts, "", size, "", "", ""])
    monkeypatch.setattr("builtins.input", lambda: next(answers))
    assert main(["init"]) == 0
    first = yaml.safe_load(Path("session.yml").read_text())
    usual = {"session_name": "train", "session_cpus": "1", "session_memory": "1g"}
    assert first == {**usual, **{f"session_{name}": value for name, value in expected.items()}}


def test_init_writes_the_inventory_that_later_commands_read(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANSIBLE_INVENTORY", "mine.ini")
    refused = refusal(capsys, "init", "--yes", "node1")
    assert refused == "later commands read the inventory of ANSIBLE_INVENTORY, not hosts.yml: unset it, or use -i"
    assert os.listdir() == []
    assert main(["init", "--yes", "node1", "-i", "other.yml"]) == 0
    assert sorted(os.listdir()) == ["other.yml", "session.yml"]
    assert "cluster-compute -i other.yml hosts provision" in capsys.readouterr().out
    Path("other.yml").rename("cluster-compute.yml")
    Path("session.yml").unlink()
    monkeypatch.delenv("ANSIBLE_INVENTORY")
    assert refusal(capsys, "init", "--yes", "node1") == "cluster-compute.yml: init overwrites no file"


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
        "session_cpus": "0.5",
        "session_memory": "1g",
        "session_image": "pytorch",
    }
