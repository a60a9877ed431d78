# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command ``cluster-compute``: exit codes, documents, the files that it writes, and completion."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from cluster_compute import places
from cluster_compute.__main__ import main
from cluster_compute.verbs import VERBS
from command_schema import SCHEMA, checked
from typed_command import DOCUMENT, refusal, session
from warm_playbook import run_of_checkout

ROOT = Path(__file__).resolve().parents[3]
pytestmark = pytest.mark.usefixtures("home")


# Exit codes and documents


@pytest.fixture
def playbook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program in the place of ansible-playbook: a file has its script."""
    program = tmp_path / "ansible-playbook"
    monkeypatch.setattr(places, "program", lambda _name: str(program))
    return program


def stand_in(program: Path, code: int, module: str = "", result: dict[str, Any] | None = None) -> None:
    write = f"open(os.environ['CLUSTER_COMPUTE_RESULTS'] + '/{module}.json', 'w').write({json.dumps(result)!r})"
    program.write_text(
        f"#!{sys.executable}\nimport os, sys\nprint('for people')\n{write if module else ''}\nsys.exit({code})\n"
    )
    program.chmod(0o755)


@pytest.mark.parametrize(("theirs", "ours"), [(0, 0), (1, 1), (2, 1), (4, 4), (6, 1), (99, 1), (250, 1)])
def test_exit_codes_are_few(playbook: Path, capfd: pytest.CaptureFixture[str], theirs: int, ours: int) -> None:
    stand_in(playbook, theirs)
    assert main(["-i", "h", "ls"]) == ours
    assert capfd.readouterr().out == "for people\n"


def test_a_session_that_waits_has_an_exit_code_of_its_own(playbook: Path, capfd: pytest.CaptureFixture[str]) -> None:
    Path("train.yml").write_text("session_name: train\n")
    for state, code in (("PENDING", 3), ("RUNNING", 0)):
        stand_in(playbook, 0, "session", {"sessions": [{"name": "train", "state": state}]})
        assert main(["-i", "h", "up", "train.yml"]) == code
        assert main(["-i", "h", "up", "train.yml", "train.yml", "--json"]) == code
        output = capfd.readouterr().out
        document = json.loads(output.removeprefix("for people\n"))
        assert [result["sessions"][0]["state"] for result in document["results"]] == [state, state]
    assert main(["-i", "h", "down", "train"]) == 0
    stand_in(playbook, 2, "session", {"failed": True, "msg": "still PENDING", "failure": {"code": "pending"}})
    assert main(["-i", "h", "up", "train.yml", "--wait", "1"]) == 3


def test_a_failure_is_a_document_too(playbook: Path, capfd: pytest.CaptureFixture[str]) -> None:
    stand_in(playbook, 2)
    assert main(["-i", "h", "ls", "--json"]) == 1
    assert checked("failure", capfd.readouterr().out) == {"failed": True, "exit_code": 1}
    stand_in(playbook, 2, "session_exec", {"exit_code": 9, "failed": True, "containers": []})
    assert main(["-i", "h", "exec", "train", "--json", "--", "exit 9"]) == 1
    assert checked("failure", capfd.readouterr().out) == {"failed": True, "exit_code": 9, "containers": []}


LISTED = {
    "sessions": [
        {"name": "train", "owner": "alice", "state": "RUNNING", "turn": None, "reason": "", "explanation": ""},
        {
            "name": "late",
            "owner": "bob",
            "state": "PENDING",
            "turn": 2,
            "reason": "node1: needs 4 CPUs, 1 free",
            "explanation": "node1: needs 4 CPUs, 1 free",
        },
        {"name": "soon", "owner": "bob", "state": "PENDING", "turn": 1, "reason": "waits", "explanation": "waits"},
    ]
}


def test_why_and_queue_are_views_of_the_list(playbook: Path, capfd: pytest.CaptureFixture[str]) -> None:
    stand_in(playbook, 0, "session_info", LISTED)
    assert main(["-i", "h", "why", "late"]) == 0
    assert capfd.readouterr().out == "Session late: PENDING; turn 2 of the queue; node1: needs 4 CPUs, 1 free\n"
    assert main(["-i", "h", "why", "late", "--json"]) == 0
    assert json.loads(capfd.readouterr().out) == LISTED["sessions"][1]
    assert main(["-i", "h", "queue"]) == 0
    assert capfd.readouterr().out == "   1  soon of bob: waits\n   2  late of bob: node1: needs 4 CPUs, 1 free\n"
    assert main(["-i", "h", "queue", "--json"]) == 0
    assert [one["name"] for one in json.loads(capfd.readouterr().out)["sessions"]] == ["soon", "late"]
    assert main(["-i", "h", "why", "other"]) == 2
    assert "there is no live session other" in capfd.readouterr().err
    stand_in(playbook, 4)
    assert main(["-i", "h", "queue"]) == 4


def test_a_session_file_is_printed_as_it_is(playbook: Path, capfd: pytest.CaptureFixture[str]) -> None:
    stand_in(playbook, 0, "session_info", {"file": "---\nsession_name: train\n"})
    assert main(["-i", "h", "show", "train", "--file"]) == 0
    assert capfd.readouterr().out == "---\nsession_name: train\n"
    assert main(["-i", "h", "show", "train", "--file", "--json"]) == 0
    assert checked("show", capfd.readouterr().out) == {"file": "---\nsession_name: train\n"}


def test_every_verb_has_a_definition_in_the_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert set(VERBS) <= set(SCHEMA["$defs"])
    with pytest.raises(jsonschema.ValidationError):
        checked("up", '{"results": [{"changed": true}]}')


# Hosts and a first session


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
    assert text.rpartition("node1")[2] in Path("hosts.yml").read_text()


def test_the_address_of_a_host_may_have_the_port_of_ssh() -> None:
    assert main(["hosts", "add", "alice@node1:2222", "fd00::22", "[fd00::23]:22", "--no-provision"]) == 0
    assert inventory("hosts.yml")["_meta"]["hostvars"] == {
        "node1": {"ansible_host": "node1", "ansible_port": 2222, "ansible_user": "alice", "agent_users": ["alice"]},
        "fd00::22": {"ansible_host": "fd00::22"},
        "fd00::23": {"ansible_host": "fd00::23", "ansible_port": 22},
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
    monkeypatch.setenv("ANSIBLE_INVENTORY", "hosts.yml")
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


# TERM arrives before the command can know the tunnel that it has begun.
AT_ONCE = """
import os, signal, subprocess, sys

sys.path.insert(0, sys.argv.pop(1))
from cluster_compute.__main__ import main

begin = subprocess.Popen


def begun(words, **options):
    process = begin(words, **options)
    if "-NT" in words:
        os.kill(os.getpid(), signal.SIGTERM)
    return process


subprocess.Popen = begun
sys.exit(main())
"""


@pytest.mark.parametrize("at_once", [False, True])
def test_a_tunnel_ends_with_the_command(at_once: bool, tmp_path: Path, home: Path) -> None:
    """As after Ctrl-C, the exit code is that of an interruption."""
    session(home, "train")
    ssh = tmp_path / "bin/ssh"
    ssh.parent.mkdir()
    ssh.write_text('#!/bin/sh\n[ "$1" != -G ] || exit 0\necho\ntrap "exit 255" TERM; sleep 60 >/dev/null 2>&1 & wait\n')
    ssh.chmod(0o755)
    package = ROOT / "extensions/command/cluster_compute"
    begin = ["-c", AT_ONCE, str(package.parent)] if at_once else [str(package)]
    environment = {**os.environ, "PATH": f"{ssh.parent}:{os.environ['PATH']}"}
    process = subprocess.Popen(
        [sys.executable, *begin, "open", "train", "lab"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    )
    assert process.stdout
    if not at_once:
        assert process.stdout.readline().startswith(b"lab ")
        process.terminate()
    # Standard error is also that of ssh: its end is the end of both.
    process.communicate(timeout=30)
    assert process.returncode == 130


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_for_the_command_alone_lets_the_playbook_undo_what_it_has_begun(
    number: int, tmp_path: Path, home: Path
) -> None:
    """The next line is not run."""
    (tmp_path / "python").symlink_to(sys.executable)
    program = tmp_path / "ansible-playbook"
    program.write_text("#!/bin/sh\ntrap 'echo undone; exit 0' TERM\necho begun; sleep 60 >/dev/null 2>&1 & wait\n")
    program.chmod(0o755)
    package = ROOT / "extensions/command/cluster_compute"
    Path("train.yml").write_text("session_name: train\n")
    process = subprocess.Popen(
        # These tests can run with nohup.
        ["env", "--default-signal=HUP", str(tmp_path / "python"), package, "-i", "h", "up", "train.yml", "train.yml"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    assert process.stdout.readline() == "begun\n"
    process.send_signal(number)
    # The command and its playbook share standard output, so it closes when both have ended.
    assert process.communicate(timeout=30)[0] == "undone\n"
    assert process.returncode == 130


def test_a_signal_that_is_ignored_ends_no_playbook(tmp_path: Path, home: Path) -> None:
    """A launch with nohup outlives the terminal."""
    script = f"import signal, sys; sys.path[:0] = [{str(ROOT / 'extensions/command')!r}]\n"
    script += "from cluster_compute.programs import run\n"
    script += "sys.exit(run([sys.executable, '-c', 'import os, signal; os.kill(os.getppid(), signal.SIGHUP)']))"
    done = subprocess.run(["nohup", sys.executable, "-c", script], capture_output=True, check=False)
    assert done.returncode == 0


# Completion


def completed(capsys: pytest.CaptureFixture[str], *before: str) -> list[str]:
    assert main(["completion", "words", "--", *before]) == 0
    return capsys.readouterr().out.split()


def test_words_complete_a_line(capsys: pytest.CaptureFixture[str], home: Path) -> None:
    file = session(home, "train") / "session.json"
    assert completed(capsys) == completed(capsys, "") == list(VERBS)
    assert completed(capsys, "--lo") == ["--local"]
    assert completed(capsys, "--json", "ssh", "") == ["train"]
    assert completed(capsys, "ssh", "train", "") == ["main1", "sub1"]
    assert completed(capsys, "open", "train", "") == ["lab", "open"]
    assert completed(capsys, "cp", "x", "") == ["train:"]
    file.write_text(
        json.dumps({**DOCUMENT, "containers": [{"hostname": "main1"}], "apps": [{"name": "lab", "tunnel": 1}]})
    )
    assert completed(capsys, "ssh", "train", "") == ["main1"], "apps do not matter"
    assert {"--many", "--local"} < set(completed(capsys, "down", "--"))
    assert completed(capsys, "hosts", "") == ["add", "ls", "provision"]
    assert completed(capsys, "up", "") == [], "the shell completes files"


def test_bash_completes(home: Path) -> None:
    session(home, "train")
    script = f"""
    PATH={ROOT / "bin"}:$PATH
    eval "$(cluster-compute completion bash)"
    COMP_WORDS=(cluster-compute "$@") COMP_CWORD=$#
    _cluster_compute
    printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    for words, expected in (
        (["do"], ["down", "doctor"]),
        (["ssh", "tr"], ["train"]),
        (["ssh", "train", "su"], ["sub1"]),
    ):
        done = subprocess.run(["bash", "-c", script, "bash", *words], capture_output=True, text=True, check=True)
        assert done.stdout.split() == expected


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_have_scripts(capsys: pytest.CaptureFixture[str], shell: str) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert "completion words --" in script
    assert main(["completion", shell, "--json"]) == 0
    assert checked("completion", capsys.readouterr().out) == {"text": script}
