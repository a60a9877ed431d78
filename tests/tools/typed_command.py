# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command ``cluster-compute`` in the process of a test: what it would run, what it refuses, and files of a session."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from cluster_compute.__main__ import main

PLAYBOOKS = Path(__file__).resolve().parents[2] / "playbooks"
APPS = [
    {"name": "ssh", "address": "127.0.0.1", "port": 30000},
    {"name": "lab", "port": 30001, "tunnel": "ssh -N -F x -L 30001:main1:8888 main1"},
    {"name": "open", "port": 30002, "tunnel": "ssh -N -F x -L 30002:main1:80 main1"},
]
DOCUMENT = {"session": {"user": {"name": "work"}}, "network": {"driver": "bridge"}, "containers": [], "apps": []}


def session(home: Path, name: str, *, proxy: bool = True) -> Path:
    """The files of a session."""
    folder = home / ".cluster-compute" / name
    folder.mkdir(parents=True)
    document = {**DOCUMENT, "containers": [{"hostname": "main1"}, {"hostname": "sub1"}], "apps": APPS}
    (folder / "session.json").write_text(json.dumps(document))
    (folder / "apps").write_text("lab http://127.0.0.1:30001/lab?token=abc\nopen http://192.0.2.1:30002/ 0f1e\n")
    (folder / "ssh_config").write_text(f"Host main1\n  HostName 127.0.0.1\n{'  ProxyJump node1' if proxy else ''}\n")
    return folder


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> list[list[str]]:
    """The lines that the command would run, without the program and the paths of playbooks."""
    assert main(["--show", *words]) == 0
    lines = [shlex.split(line) for line in capsys.readouterr().out.splitlines()]
    return [[part.replace(f"{PLAYBOOKS}/", "") for part in line[1:]] for line in lines]


def refusal(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The message of a refusal, which must be all that happens."""
    assert main(words) == 2
    output = capsys.readouterr()
    assert output.out == ""
    return output.err.removeprefix("cluster-compute: ").strip()
