# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Logs that are followed until the session ends, or until Ctrl-C."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from controller import PATIENCE, ROOT, Controller

TICKS = "n=0; while :; do n=$((n + 1)); echo tick $n; sleep 1; done"


def followed(controller: Controller, path: Path, **variables: Any) -> subprocess.Popen[bytes]:
    """A command that follows the logs and writes them to a file."""
    command = controller.command("session_logs", session_name="ticking", session_logs_follow=True, **variables)
    environment = {**controller.environment, "ANSIBLE_STDOUT_CALLBACK": "cluster.compute.progress"}
    with path.open("wb") as output:
        return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT)


def wait_for(path: Path, text: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while text not in path.read_text():
        assert time.monotonic() < deadline, path.read_text()
        time.sleep(0.2)


def test_logs_are_followed_until_the_session_ends_or_ctrl_c(controller: Controller, tmp_path: Path) -> None:
    controller.launched("ticking", session_cluster_size=2, session_bootstrap="echo hello", session_command=TICKS)
    whole, sub, stopped = (tmp_path / name for name in ("whole", "sub", "stopped"))
    runs = [followed(controller, whole), followed(controller, sub, session_logs_containers="sub1")]
    interrupted = followed(controller, stopped)
    wait_for(stopped, "main1: tick 1\n")
    interrupted.send_signal(signal.SIGINT)
    assert interrupted.wait(PATIENCE) == 99
    last = stopped.read_text().count("main1: tick ")
    wait_for(whole, f"main1: tick {last + 5}\n")
    controller.terminate("ticking").check()
    assert [run.wait(PATIENCE) for run in runs] == [0, 0]
    lines = whole.read_text().splitlines()
    assert {"main1: hello", "sub1: hello"} <= set(lines)
    ticks = [int(line.split()[-1]) for line in lines if line.startswith("main1: tick ")]
    assert ticks == list(range(1, len(ticks) + 1))
    assert "tick" not in sub.read_text()
    after = controller.play("session_logs", session_name="ticking", session_logs_follow=True).check().text
    assert "main1: tick 1\n" in after
