# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A session gets a part of a GPU only from an MPS daemon that runs.

A program stands for nvidia-smi, and a socket for the daemon: no GPU is here. So the engine refuses the device in the end, which shows
that it was asked for it.
"""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from controller import ROOT, Controller

LOG = ROOT / "tests/unit/plugins/module_utils/_agent/nvidia_smi/h100.xml"
GPU = "GPU-0d6a3f0b-17c3-4b2f-8a3e-2f1be0a45c01"


@pytest.fixture
def pipes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The directory of the daemon, on a host with nvidia-smi."""
    program = tmp_path / "nvidia-smi"
    program.write_text(f'#!/bin/sh\n[ "$*" = "-q -x" ] && exec cat {LOG}\nexit 2\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="mps-") as folder:
        yield Path(folder)


def test_a_session_gets_a_part_of_a_gpu_from_a_daemon_that_runs(controller: Controller, pipes: Path) -> None:
    agent = {"agent_gpus": [{"id": GPU, "shares": 4}], "agent_gpu_sharing": "mps", "agent_mps_directory": str(pipes)}
    why = f"has no MPS daemon at {pipes}, its agent_mps_directory (No such file or directory)"
    waits = " ".join(controller.launch("part", session_gpus=0.25, **agent).check().text.split())
    assert f"Session part is PENDING: localhost: needs 0.25 GPUs, 0 free ({why})." in waits
    listed = " ".join(controller.play("sessions", **agent).check().text.split())
    assert f"up; {why}" in listed
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as daemon:
        daemon.bind(str(pipes / "control"))
        daemon.listen()
        would = controller.launch("part", "--check", session_gpus=0.25, **agent).check()
        # A quarter of 81559 MiB.
        assert "Part of a GPU: SM 25%, 19.9g memory for each process, enforced by MPS" in would.text
        placed = controller.launch("part", session_gpus=0.25, **agent)
        assert "localhost could not" in placed.message
        assert "device" in placed.message
    assert controller.engine() == {}
