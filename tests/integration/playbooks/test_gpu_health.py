# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A session waits for a red GPU, and is placed when the GPU is green.

A program stands for nvidia-smi: no GPU is here. So the engine refuses the device in the end, which shows that it was asked for it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from controller import ROOT, Controller

LOG = ROOT / "tests/unit/plugins/module_utils/_agent/nvidia_smi/h100.xml"
GPU = "GPU-0d6a3f0b-17c3-4b2f-8a3e-2f1be0a45c01"
HEALTHY = "<gpu_recovery_action>None<"
WHY = f"localhost: needs 1 GPUs, 0 free ({GPU} is red: the driver asks for the recovery action Reset)"


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The log that nvidia-smi writes."""
    written, program = tmp_path / "log.xml", tmp_path / "nvidia-smi"
    program.write_text(f'#!/bin/sh\n[ "$*" = "-q -x" ] && exec cat {written}\nexit 2\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    written.write_text(LOG.read_text())
    return written


def test_a_session_waits_until_its_gpu_is_green(controller: Controller, log: Path) -> None:
    wanted = {"session_gpus": 1, "agent_gpus": [{"id": GPU}]}
    log.write_text(LOG.read_text().replace(HEALTHY, HEALTHY.replace("None", "Reset"), 1))
    waits = controller.launch("sick", **wanted).check()
    # The message is long enough to be wrapped.
    said = " ".join(waits.text.split())
    assert f"Session sick is PENDING: {WHY}." in said, waits.text
    listed = controller.play("sessions", agent_gpus=wanted["agent_gpus"]).check().text
    assert f"up; {GPU} is red: the driver asks for the recovery action Reset" in " ".join(listed.split())
    again = controller.play("schedule", agent_gpus=wanted["agent_gpus"]).check()
    assert [(row[1], row[3]) for row in controller.rows()] == [("PENDING", WHY)], again.text
    log.write_text(LOG.read_text())
    placed = controller.launch("sick", **wanted)
    assert "localhost could not" in placed.message
    assert "device" in placed.message
    assert [row[1] for row in controller.rows()] == ["ERROR"]
    assert controller.engine() == {}
