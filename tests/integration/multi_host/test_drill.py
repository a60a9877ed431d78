# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The drill as its user runs it, over three agents."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from agents_lab import Agents
from controller import ROOT, Done, run

PROGRAM = str(ROOT / "extensions/drill/drill.py")


def drill(agents: Agents, *words: str) -> Done:
    """The program with the inventories and variables of a playbook's command line."""
    options = agents.command("drill")[2:]
    return run([sys.executable, PROGRAM, *options, *words], cwd=ROOT, env=agents.environment, timeout=600)


def test_one_fault_is_repaired_and_reported(agents: Agents, tmp_path: Path) -> None:
    verdicts = tmp_path / "drill.json"
    shown = drill(agents, "--fault", "sub killed", "--file", str(verdicts)).check().text
    document = json.loads(verdicts.read_text())
    assert document["passed"] is True
    assert [(one["fault"], one["verdict"]) for one in document["outcomes"]] == [("sub killed", "ok")]
    assert "1 of 1 faults passed" in shown
    assert not any("drill" in line for held in agents.held().values() for line in held)


def test_a_session_moves_off_a_lost_host_that_comes_back(agents: Agents, tmp_path: Path) -> None:
    verdicts = tmp_path / "drill.json"
    shown = drill(agents, "--fault", "host lost", "--disruptive", "--file", str(verdicts)).check().text
    [outcome] = json.loads(verdicts.read_text())["outcomes"]
    assert outcome["verdict"] == "ok", shown
    assert "main1 made again on" in outcome["message"]
    assert not any("drill" in line for held in agents.held().values() for line in held)


def test_an_unknown_fault_is_refused(agents: Agents) -> None:
    refused = drill(agents, "--fault", "sub killd")
    assert refused.code == 2
    assert "sub killd" in refused.text
