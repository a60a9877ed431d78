# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook check_agents: it passes on this machine, and fails with a remedy for each fault."""

from __future__ import annotations

import json
import sys
from typing import Any

from controller import Controller, Done

# Shifts the clock of an interpreter an hour ahead.
AHEAD = "import time\nreal = time.time\ntime.time = lambda: real() + 3600\n"


def check(controller: Controller, **variables: Any) -> tuple[Done, dict[str, Any]]:
    file = controller.folder / "findings.json"
    done = controller.play("check_agents", check_file=str(file), **variables)
    return done, json.loads(file.read_text())


def test_this_machine_passes(controller: Controller) -> None:
    done, document = check(controller)
    assert done.check().changed <= 1  # the file itself
    assert document["fit"] is True
    assert document["counts"]["fail"] == 0
    assert {"engine", "runtime", "clock", "cgroups"} <= {one["check"] for one in document["findings"]}
    assert "STATUS  CHECK" in done.text


def test_a_fault_has_a_finding_with_a_remedy(controller: Controller) -> None:
    folder = controller.folder / "ahead"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(AHEAD)
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={folder} exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    done, document = check(controller, ansible_python_interpreter=str(python))
    assert done.code == 2
    failed = {one["check"]: one for one in document["findings"] if one["status"] == "fail"}
    assert failed["clock"]["found"].endswith(" min ahead of the controller's") or "1.0 h" in failed["clock"]["found"]
    assert failed["clock"]["remedy"] == "run a time service (chrony, systemd-timesyncd) on all hosts"
    assert "clock on localhost" in done.message

    preflight = {"session_name": "careful", "session_preflight": True, "session_preflight_age": 0}
    refused = controller.play("cluster_session", ansible_python_interpreter=str(python), **preflight)
    assert refused.code == 2
    assert "No agent passes the check: clock on localhost" in refused.message
    assert "careful" not in {row["name"] for row in controller.sessions()}
