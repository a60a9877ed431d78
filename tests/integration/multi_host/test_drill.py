# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The drill as its user runs it, over three agents."""

from __future__ import annotations

import json
from pathlib import Path

from agents_lab import Agents


def test_one_fault_is_repaired_and_reported(agents: Agents, tmp_path: Path) -> None:
    verdicts = tmp_path / "drill.json"
    shown = agents.play("drill", drill_faults=["sub killed"], drill_file=str(verdicts)).check().text
    document = json.loads(verdicts.read_text())
    assert document["passed"] is True
    assert [(one["fault"], one["verdict"]) for one in document["outcomes"]] == [("sub killed", "ok")]
    assert "1 of 1 faults passed" in shown
    assert not any("drill" in line for held in agents.held().values() for line in held)


def test_an_unknown_fault_is_refused(agents: Agents) -> None:
    refused = agents.play("drill", drill_faults=["sub killd"])
    assert refused.code != 0
    assert "sub killd" in refused.message
