# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The verb ``ssh``: the line of ssh that it becomes, and its exit code."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from typed_command import refusal, session, shown

ROOT = Path(__file__).resolve().parents[3]
pytestmark = pytest.mark.usefixtures("home")
ATTACHED = "/opt/cluster-compute/bin/attached; "


def test_a_command_has_a_terminal_where_there_is_one(
    capsys: pytest.CaptureFixture[str], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only with all three streams: a result that is piped has no changed line ends. A login has one anyway."""
    session(home, "train")
    terminals = {0, 1}
    monkeypatch.setattr("os.isatty", lambda number: number in terminals)
    assert "-t" not in shown(capsys, "ssh", "--", "id")[0]
    terminals.add(2)
    assert shown(capsys, "ssh", "--", "id")[0][2:] == ["-t", "--", "main1", f"{ATTACHED}id"]
    assert "-t" not in shown(capsys, "ssh")[0]
    assert "-t" not in shown(capsys, "--json", "ssh", "--", "id")[0]


def test_ssh_reads_the_configuration_of_the_session(capsys: pytest.CaptureFixture[str], home: Path) -> None:
    config = str(session(home, "train") / "ssh_config")
    for words, expected in (
        (["ssh"], ["main1"]),
        (["ssh", "train", "sub1"], ["sub1"]),
        (["ssh", "sub1", "--", "echo $HOME; id"], ["sub1", f"{ATTACHED}echo $HOME; id"]),
        (["ssh", "train", "--", "ls", "a b"], ["main1", f"{ATTACHED}ls 'a b'"]),
    ):
        assert shown(capsys, *words) == [["-F", config, "--", *expected]]
    # ssh would look for a host of that name elsewhere.
    for other in ("sub2", "oProxyCommand=id"):
        message = f"session train has no container {other}: it has main1, sub1"
        assert refusal(capsys, "--show", "ssh", "train", other) == message
    assert "only the machine that launched it has its keys" in refusal(capsys, "ssh", "other")
    assert refusal(capsys, "ssh", "train", "--json").startswith("a login has no JSON document")


def test_the_exit_code_of_a_command_by_ssh_is_that_of_the_command(home: Path, tmp_path: Path) -> None:
    """A program in the place of ssh shows what it receives."""
    session(home, "train")
    program = tmp_path / "bin" / "ssh"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\nshift 3; echo "$1 ${2#*attached; }"; exit 7\n')
    program.chmod(0o755)
    environment = {"HOME": str(home), "PATH": f"{program.parent}:/usr/bin:/bin"}
    for more, expected in ([], "main1 id\n"), (["--json"], {"exit_code": 7, "stderr": "", "stdout": "main1 id\n"}):
        command = [str(ROOT / "bin/cluster-compute"), *more, "ssh", "train", "--", "id"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 7, done.stderr
        assert (json.loads(done.stdout) if more else done.stdout) == expected
