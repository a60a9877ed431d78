# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Logs that are followed until the session ends, or until Ctrl-C."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

from controller import PATIENCE, Controller
from followed_logs import followed, following, wait_for

TICKS = "n=0; while :; do n=$((n + 1)); echo tick $n; sleep 1; done"


def test_logs_are_followed_until_the_session_ends_or_ctrl_c(controller: Controller, tmp_path: Path) -> None:
    controller.launched("ticking", session_cluster_size=2, session_bootstrap="echo hello", session_command=TICKS)
    whole, sub, stopped = (tmp_path / name for name in ("whole", "sub", "stopped"))
    runs = [
        followed(controller, "ticking", whole),
        followed(controller, "ticking", sub, session_logs_containers="sub1"),
    ]
    unread = following(controller, "ticking", subprocess.PIPE)
    interrupted = followed(controller, "ticking", stopped)
    wait_for(stopped, "main1: tick 1\n")
    interrupted.send_signal(signal.SIGINT)
    assert interrupted.wait(PATIENCE) == 99
    # As `| head`: the first line is read, and the pipe is closed.
    assert unread.stdout
    assert unread.stdout.readline()
    unread.stdout.close()
    assert unread.wait(PATIENCE) == 0
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
