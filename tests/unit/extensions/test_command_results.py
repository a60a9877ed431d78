# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command ``cluster-compute``: exit codes, documents, signals, and completion."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from cluster_compute import places
from cluster_compute.__main__ import main
from cluster_compute.verbs import VERBS
from command_schema import SCHEMA, checked
from typed_command import DOCUMENT, session

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


COMMON = {"created": 1.0, "result": ""}
LISTED = {
    "sessions": [
        {
            **COMMON,
            "name": "train",
            "owner": "alice",
            "state": "RUNNING",
            "turn": None,
            "reason": "",
        },
        {
            **COMMON,
            "name": "late",
            "owner": "bob",
            "state": "PENDING",
            "turn": 2,
            "reason": "node1: needs 4 CPUs, 1 free",
        },
        {
            **COMMON,
            "name": "soon",
            "owner": "bob",
            "state": "PENDING",
            "turn": 1,
            "reason": "waits",
        },
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
    assert "there is no session other" in capfd.readouterr().err
    stand_in(playbook, 4)
    assert main(["-i", "h", "queue"]) == 4


ENDED = {"name": "jobs", "owner": "bob", "turn": None}


@pytest.mark.parametrize(
    ("sessions", "shown"),
    [
        ([("ERROR", 2.0, "", "main1: no image")], "ERROR; main1: no image"),
        (
            [("TERMINATED", 1.0, "", "old"), ("TERMINATED", 3.0, "FAILURE", "exit code 3")],
            "TERMINATED; FAILURE; exit code 3",
        ),
        ([("ERROR", 3.0, "", "no image"), ("RUNNING", 2.0, "", "")], "RUNNING"),
        ([("CANCELLED", 2.0, "", "by alice")], "CANCELLED; by alice"),
    ],
)
def test_why_of_a_session_that_has_ended(
    sessions: list[tuple[str, float, str, str]], shown: str, playbook: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The live session of the name, else the one that has ended last."""
    names = ("state", "created", "result", "reason")
    found = [{**ENDED, **dict(zip(names, one, strict=True))} for one in sessions]
    stand_in(playbook, 0, "session_info", {"sessions": found})
    assert main(["-i", "h", "why", "jobs"]) == 0
    assert capfd.readouterr().out == f"Session jobs: {shown}\n"


def test_a_session_file_is_printed_as_it_is(playbook: Path, capfd: pytest.CaptureFixture[str]) -> None:
    stand_in(playbook, 0, "session_info", {"file": "---\nsession_name: train\n"})
    assert main(["-i", "h", "show", "train", "--file"]) == 0
    assert capfd.readouterr().out == "---\nsession_name: train\n"
    assert main(["-i", "h", "show", "train", "--file", "--json"]) == 0
    assert checked("show", capfd.readouterr().out) == {"file": "---\nsession_name: train\n"}


def test_a_session_that_waits_is_not_spoken_of_as_a_lost_one(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = home / ".cluster-compute" / ".requests"
    kept.mkdir(parents=True)
    (kept / "damaged").write_text("{")
    assert main(["ssh", "late"]) == 2
    assert "has no files in" in capsys.readouterr().err
    (kept / "3614fdf3").write_text(json.dumps({"request": {"name": "late"}, "files": {}}))
    assert main(["ssh", "late"]) == 2
    assert "cluster-compute why late" in capsys.readouterr().err


def test_every_verb_has_a_definition_in_the_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert set(VERBS) <= set(SCHEMA["$defs"])
    with pytest.raises(jsonschema.ValidationError):
        checked("up", '{"results": [{"changed": true}]}')


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
