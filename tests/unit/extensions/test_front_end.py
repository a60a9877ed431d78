# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The front end for accounts without Docker rights: what a caller may write, and what it becomes."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from ansible.parsing.dataloader import DataLoader

PROGRAM = Path(__file__).resolve().parents[3] / "extensions/front_end/cluster_session.py"


@pytest.fixture(scope="module")
def front_end() -> ModuleType:
    specification = importlib.util.spec_from_file_location("front_end", PROGRAM)
    assert specification
    assert specification.loader
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("arguments", "environment", "expected"),
    [
        (["list"], {"SUDO_USER": "alice"}, ("alice", ["list"])),
        (["--owner", "alice"], {"SSH_ORIGINAL_COMMAND": "end 'train'"}, ("alice", ["end", "train"])),
        (["--owner", "alice"], {}, ("alice", [])),
        # What a caller of sudo writes names no owner.
        (["--owner", "bob"], {"SUDO_USER": "alice"}, ("alice", ["--owner", "bob"])),
    ],
)
def test_the_owner_is_the_caller(
    front_end: ModuleType, arguments: list[str], environment: dict[str, str], expected: tuple[str, list[str]]
) -> None:
    assert front_end.caller(arguments, environment) == expected


@pytest.mark.parametrize(
    ("arguments", "environment"),
    [
        ([], {}),
        (["list"], {}),
        (["--owner", "alice", "list"], {}),
        (["--owner", "all"], {}),
        (["list"], {"SUDO_USER": "../bob"}),
        (["list"], {"SUDO_USER": "a.b"}),
        (["--owner", "alice"], {"SSH_ORIGINAL_COMMAND": "launch 'open"}),
    ],
)
def test_without_a_caller_nothing_is_done(
    front_end: ModuleType, arguments: list[str], environment: dict[str, str]
) -> None:
    with pytest.raises(SystemExit):
        front_end.caller(arguments, environment)


@pytest.mark.parametrize(
    "words",
    [
        ["--owner", "bob", "list"],
        ["shell"],
        ["end"],
        ["end", "../bob/train"],
        ["enter", "-oProxyCommand=id"],
        ["enter", "a/../b"],
        ["launch", "abc"],
    ],
)
def test_other_commands_and_names_are_refused(front_end: ModuleType, words: list[str]) -> None:
    with pytest.raises(SystemExit):
        front_end.parsed(words)


def test_a_command_for_main1_keeps_its_options(front_end: ModuleType) -> None:
    assert front_end.parsed(["enter", "train", "--", "ls", "-l"]).words == ["ls", "-l"]
    assert front_end.parsed(["enter", "train", "ls", "--", "x"]).words == ["ls", "--", "x"]


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
    ],
)
def test_no_other_variable_and_no_template_is_passed(front_end: ModuleType, word: str) -> None:
    with pytest.raises(SystemExit):
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
    values = front_end.chosen(["command=" + command, "mounts=" + json.dumps(mounts), "cpus=0.5", "wait=9"])
    monkeypatch.setenv("ANSIBLE_STRATEGY", "mine")
    assert front_end.play(config, "cluster_session", values) == 0
    assert "ANSIBLE_" not in (tmp_path / "shown.env").read_text()
    shown.rename(tmp_path / "shown.json")
    assert DataLoader().load_from_file(str(tmp_path / "shown.json")) == {
        "session_command": command,
        "session_mounts": mounts,
        "session_cpus": "0.5",
        "session_wait": "9",
    }


def test_the_terminal_of_the_caller_stops_no_program_of_the_service_account(tmp_path: Path) -> None:
    """Ctrl-Z stops the process group of the front end, and Ctrl-C reaches the program through the front end."""
    child = (
        "import signal, sys; print('begun', flush=True); signal.sigwait([signal.SIGINT]); print('undone', flush=True)"
    )
    parent = f"""
import importlib.util, os, pathlib, sys
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
        os.killpg(front_end.pid, signal.SIGSTOP)
        os.waitpid(front_end.pid, os.WUNTRACED)
        state = Path(f"/proc/{program}/stat").read_text().rpartition(")")[2].split()[0]
        os.killpg(front_end.pid, signal.SIGCONT)
        assert state != "T"
        os.killpg(front_end.pid, signal.SIGINT)
        assert front_end.communicate(timeout=30)[0] == "undone\n"
        assert front_end.returncode == 0
    finally:
        if front_end.poll() is None:
            os.kill(program, signal.SIGKILL)
            front_end.kill()
