# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The front end for accounts without Docker rights: the playbooks that it runs, and the values that they get."""

from __future__ import annotations

import itertools
import json
import os
import signal
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from types import ModuleType

import pytest
from ansible import context
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar
from ansible.utils.vars import load_extra_vars
from cluster_compute.words import MisuseError

PROGRAM = Path(__file__).resolve().parents[3] / "extensions/front_end/cluster_session.py"


@pytest.mark.parametrize(
    "word",
    [
        "owner=bob",
        "state_dir=/tmp/x",
        "artifacts=/tmp/x",
        "network_pool=[]",
        "user={}",
        "presets={}",
        "ansible_connection=local",
        "cpus",
        "--extra-vars=x",
        "command={{ lookup('pipe', 'id') }}",
        "command={% set x = 1 %}",
        "command=#jinja2: variable_start_string: '[['",
        'environment={"A": "\\u007b{ x }}"}',
        'environment={"\\u007b\\u007bx": "1"}',
        "mounts=[",
        'environment={"A": "\\ud800"}',
        "environment=" + "[" * 100000,
        "environment=" + "[" * 700 + "]" * 700,
        'image={"__ansible_vault": "$ANSIBLE_VAULT;1.1;AES256\\n62"}',
        'environment={"A": {"B": {"__ansible_unsafe": "x"}}}',
        'mounts=[{"source": [{"__ansible_type": "x"}]}]',
        'mounts=[{"\\u005f_ansible_vault": "x"}]',
    ],
)
def test_no_other_variable_and_no_template_is_passed(front_end: ModuleType, word: str) -> None:
    with pytest.raises(MisuseError):
        front_end.chosen([word])


def test_values_arrive_as_they_were_written(
    front_end: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program in the place of ansible-playbook shows what it receives: the file of variables, and no environment of the caller."""
    program, shown = tmp_path / "ansible-playbook", tmp_path / "shown"
    program.write_text(f"#!/bin/sh\nenv > {shown}.env\neval last=\\${{$#}}\ncat ${{last#@}} > {shown}\n")
    program.chmod(0o755)
    config = {"playbooks": str(tmp_path / "playbooks"), "ansible_playbook": str(program), "inventory": "hosts"}
    mounts = [{"source": "/data/a", "target": "/data", "mode": "ro"}]
    command = "echo 'ü: #1' \"$HOME\"\n- !vault x"
    odd = 'a"b\\c\x00\x07\x85\u2028\ufeff😀 #: !x *y &z <<'
    environment: dict[str, object] = {odd: odd, "<<": "<<", "N": 3, "F": 1.5, "T": True, "O": None, "{": "{x}"}
    environment.update({text: text for text in ("", "yes", "1", "0x1f", "1.5", "1:30", "2020-01-01", "~", "=", "null")})
    words = ["command=" + command, "mounts=" + json.dumps(mounts), "per_agent=1", "wait=9"]
    values = front_end.chosen([*words, "environment=" + json.dumps(environment)])
    monkeypatch.setenv("ANSIBLE_STRATEGY", "mine")
    assert front_end.play(config, "cluster_session", values) == 0
    assert "ANSIBLE_" not in (tmp_path / "shown.env").read_text()
    assert DataLoader().load_from_file(str(shown)) == {
        "session_environment": environment,
        "session_command": command,
        "session_mounts": mounts,
        "session_per_agent": "1",
        "session_wait": "9",
    }


def test_no_text_of_a_caller_is_a_template_or_encrypted_for_ansible(
    front_end: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if a check of the front end should miss it: the texts are written as data."""
    value = {"a": "{{ 1 + 1 }}", "b": ["$ANSIBLE_VAULT;1.1;AES256"], "c": {"d": "!vault x"}}
    file, loader = tmp_path / "values.yml", DataLoader()
    file.write_text("---\nown: '{{ 1 + 1 }}'\nvalue: %s\n" % front_end.as_yaml(value))
    monkeypatch.setattr(context, "CLIARGS", {"extra_vars": (f"@{file}",)})
    monkeypatch.setattr(load_extra_vars, "extra_vars", None, raising=False)
    assert Templar(loader).template(load_extra_vars(loader)) == {"own": 2, "value": value}


def test_an_owner_has_a_limit_of_commands_at_a_time(
    front_end: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each takes memory of the machine for as long as it runs. Other owners, playbooks, and connections have places of their own."""
    config = tmp_path / "front_end.json"
    config.write_text(json.dumps({"artifacts": str(tmp_path / "sessions")}))
    monkeypatch.setattr(front_end, "CONFIG", config)
    monkeypatch.setattr(front_end, "play", lambda _config, _name, _variables: 0)
    monkeypatch.setattr(front_end, "reach", lambda _folder, _asked, _config: 0)
    numbers = itertools.count(1000)
    alive = {}

    def typed(owner: str, *words: str) -> None:
        monkeypatch.setenv("SUDO_USER", owner)
        process = next(numbers)
        alive[str(process)] = "7"
        monkeypatch.setattr(os, "getpid", lambda: process)
        assert front_end.main(list(words)) == 0

    monkeypatch.setattr(front_end, "begun", lambda process: alive.get(str(process), ""))
    for words in (["list"], ["launch", "train"], ["end", "train"], ["list"], *[["enter", "train"]] * 32):
        typed("alice", *words)
    typed("bob", "list")
    with pytest.raises(MisuseError, match=r"^4 playbooks of yours run already \(end train, launch train, list\): wait"):
        typed("alice", "list")
    with pytest.raises(MisuseError, match=r"^32 connections of yours run already \(enter train\): wait"):
        typed("alice", "exec", "train", "--", "true")
    del alive["1001"], alive["1020"]
    typed("alice", "list")
    typed("alice", "exec", "train", "--", "true")
    place = tmp_path / "sessions/.commands"
    assert [stat.S_IMODE(path.stat().st_mode) for path in (place, place / "alice.playbooks")] == [0o700, 0o600]


def test_a_place_is_free_when_another_process_has_its_number(front_end: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "alice.playbooks").write_text(f"{os.getpid()} 1 list\n" * 4 + "1 \n" * 4)
    front_end.take_place(tmp_path, "alice", "playbooks", "list")
    assert (tmp_path / "alice.playbooks").read_text() == f"{os.getpid()} {front_end.begun('self')} list"
    process = subprocess.Popen(["true"])
    process.wait()
    assert front_end.begun(process.pid) == ""


@pytest.mark.parametrize(
    ("words", "playbook", "variables"),
    [
        (["show", "train"], "sessions", {"session_ended_too": True, "sessions_columns": "all"}),
        (["show", "train", "--file"], "sessions", {"sessions_format": "file"}),
        (["restart", "train"], "session_restart", {"session_restart_containers": [], "session_restart_app": ""}),
        (
            ["restart", "train", "--on", "sub1,sub2"],
            "session_restart",
            {"session_restart_containers": ["sub1", "sub2"], "session_restart_app": ""},
        ),
        (
            ["launch", "train", "like=other", "count=2", 'roles=[{"name": "worker"}]', 'after=["prep"]', "on_lost=end"],
            "cluster_session",
            {
                "session_like": "other",
                "session_count": "2",
                "session_roles": [{"name": "worker"}],
                "session_after": ["prep"],
                "session_on_lost": "end",
            },
        ),
    ],
)
def test_what_a_caller_asks_becomes_a_playbook_of_the_callers_session(
    front_end: ModuleType,
    words: list[str],
    playbook: str,
    variables: dict[str, object],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    played: list[tuple[str, dict[str, object]]] = []
    monkeypatch.setattr(front_end, "play", lambda _config, name, given: played.append((name, given)) or 1)
    monkeypatch.setattr(front_end, "CONFIG", tmp_path / "front_end.json")
    monkeypatch.setattr(front_end, "numbers", lambda _owner: {})
    monkeypatch.setenv("SUDO_USER", "alice")
    front_end.CONFIG.write_text(json.dumps({"artifacts": str(tmp_path)}))
    assert front_end.main(words) == 1
    own = {"session_owner": "alice", "session_name": "train", "session_artifacts": str(tmp_path / "alice")}
    more = {"session_user": {}} if playbook == "cluster_session" else {}
    assert played == [(playbook, {**own, **more, "session_provision": False, **variables})]


LISTED = [
    {"name": "job-2", "state": "PENDING", "turn": 2, "owner": "alice", "reason": "behind"},
    {"name": "job-1", "state": "PENDING", "turn": 1, "owner": "alice", "reason": "no room"},
    {"name": "done", "state": "ERROR", "turn": None, "owner": "alice", "reason": "no image"},
]


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["queue"], "   1  job-1 of alice: no room\n   2  job-2 of alice: behind\n"),
        (["why", "done"], "Session done: ERROR; no image\n"),
        (["why", "job-2"], "Session job-2: PENDING; turn 2 of the queue; behind\n"),
    ],
)
def test_a_caller_sees_the_queue_and_why(
    front_end: ModuleType,
    words: list[str],
    shown: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def play(_config: object, _playbook: str, given: dict[str, object], results: str) -> int:
        assert given["session_owner"] == "alice"
        sessions = [{**one, "created": 1.0, "result": ""} for one in LISTED]
        (Path(results) / "session_info.json").write_text(json.dumps({"sessions": sessions}))
        return 0

    monkeypatch.setattr(front_end, "play", play)
    monkeypatch.setattr(front_end, "CONFIG", tmp_path / "front_end.json")
    monkeypatch.setenv("SUDO_USER", "alice")
    front_end.CONFIG.write_text(json.dumps({"artifacts": str(tmp_path)}))
    assert front_end.main(words) == 0
    assert capsys.readouterr().out == shown


def test_an_interrupt_during_the_start_of_a_program_is_passed_on(
    front_end: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interruptible: None
) -> None:
    class Interrupted(subprocess.Popen):  # type: ignore[type-arg]
        def __init__(self, *arguments: object, **options: object) -> None:
            os.kill(os.getpid(), signal.SIGINT)
            super().__init__(*arguments, **options)

    monkeypatch.setattr(front_end.subprocess, "Popen", Interrupted)
    assert front_end.run_apart([sys.executable, "-c", "while True: pass"], tmp_path, dict(os.environ)) != 0
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_the_terminal_of_the_caller_stops_no_program_of_the_service_account(tmp_path: Path) -> None:
    """Ctrl-Z stops the process group of the front end, and Ctrl-C reaches the program through the front end."""
    child = (
        "import signal, sys; print('begun', flush=True); signal.sigwait([signal.SIGINT]); print('undone', flush=True)"
    )
    # A shell ignores the signal for programs that it runs in the background, and they pass that on.
    parent = f"""
import importlib.util, os, pathlib, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
specification = importlib.util.spec_from_file_location("front_end", {str(PROGRAM)!r})
module = importlib.util.module_from_spec(specification)
specification.loader.exec_module(module)
blocked = "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT]); " + {child!r}
sys.exit(module.run_apart([sys.executable, "-c", blocked], pathlib.Path({str(tmp_path)!r}), dict(os.environ)))
"""
    front_end = subprocess.Popen(
        [sys.executable, "-c", parent], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert front_end.stdout
    assert front_end.stdout.readline() == "begun\n"
    [program] = (int(pid) for pid in Path(f"/proc/{front_end.pid}/task/{front_end.pid}/children").read_text().split())
    try:
        # It is in no process group or session of the terminal.
        assert (os.getpgid(program), os.getsid(program)) == (program, program)
        os.killpg(front_end.pid, signal.SIGINT)
        assert front_end.communicate(timeout=30)[0] == "undone\n"
        assert front_end.returncode == 130
    finally:
        if front_end.poll() is None:
            os.kill(program, signal.SIGKILL)
            front_end.kill()


def test_what_a_front_end_fixes_comes_after_the_variables_of_the_site(
    front_end: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last file has precedence: no file of the site gives the sessions of all callers one owner."""
    commands: list[list[str]] = []
    monkeypatch.setattr(front_end, "run_apart", lambda command, *_all: commands.append(command) or 0)
    config = {"playbooks": "p", "ansible_playbook": "a", "inventory": "i", "variables_files": "/site.yml /gpu.yml"}
    assert front_end.play(config, "sessions", {"session_owner": "alice"}) == 0
    assert commands[0][4:9] == ["-e", "@/site.yml", "-e", "@/gpu.yml", "-e"]
    assert commands[0][9].startswith(f"@{tempfile.gettempdir()}/cluster-session-")
    assert len(commands[0]) == 10


@pytest.mark.parametrize(("config", "account"), [({}, "alice"), ({"user": "gpu"}, "gpu")])
def test_a_site_may_give_all_callers_the_same_user_id(
    front_end: ModuleType, config: dict[str, str], account: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MPS serves one user ID at a time."""
    asked: list[str] = []
    monkeypatch.setattr(front_end, "play", lambda *_all: 1)
    monkeypatch.setattr(front_end, "CONFIG", tmp_path / "front_end.json")
    monkeypatch.setattr(front_end, "numbers", lambda owner: asked.append(owner) or {})
    monkeypatch.setenv("SUDO_USER", "alice")
    front_end.CONFIG.write_text(json.dumps({"artifacts": str(tmp_path), **config}))
    assert front_end.main(["launch", "train"]) == 1
    assert asked == [account]
