# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The drill over three agents: the program of its user, whose playbooks run in the process that has imported Ansible."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from agents_lab import Agents
from controller import PLAYBOOK, ROOT, Done, run
from warm_playbook import stand_in

PROGRAM = str(ROOT / "tests/drill/drill.py")


@pytest.fixture
def python(agents: Agents, tmp_path: Path) -> Iterator[Path]:
    """A Python with the programs of Ansible beside it, where the drill looks for them, and a stand-in for ansible-playbook."""
    (tmp_path / "python").symlink_to(sys.executable)
    for name in ("ansible", "ansible-config", "ansible-inventory"):
        (tmp_path / name).symlink_to(Path(PLAYBOOK).with_name(name))
    with stand_in(tmp_path, {**agents.environment, "ANSIBLE_STDOUT_CALLBACK": "cluster.compute.progress"}):
        yield tmp_path / "python"


def drill(agents: Agents, python: Path, *words: str) -> Done:
    """The program with the inventories and variables of a playbook's command line."""
    options = agents.command("drill")[2:]
    return run([str(python), PROGRAM, *options, *words], cwd=ROOT, env=agents.environment, timeout=900)


@pytest.mark.parametrize(
    ("fault", "message"),
    [("sub killed", ""), pytest.param("host lost", "main1 made again on", marks=pytest.mark.large)],
)
def test_a_fault_is_repaired_and_reported(
    agents: Agents, python: Path, tmp_path: Path, fault: str, message: str
) -> None:
    """A container is killed; or a session moves off a lost host, which comes back."""
    verdicts = tmp_path / "drill.json"
    shown = drill(agents, python, "--fault", fault, "--disruptive", "--file", str(verdicts)).check().text
    document = json.loads(verdicts.read_text())
    assert [(one["fault"], one["verdict"]) for one in document["outcomes"]] == [(fault, "ok")], shown
    assert document["passed"] is True
    assert "1 of 1 faults passed" in shown
    assert message in document["outcomes"][0]["message"]
    assert not any("drill" in line for held in agents.held().values() for line in held)


def test_an_unknown_fault_is_refused(agents: Agents) -> None:
    refused = drill(agents, Path(sys.executable), "--fault", "sub killd")
    assert refused.code == 2
    assert "sub killd" in refused.text
