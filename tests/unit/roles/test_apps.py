# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The log of an app, as PID 1 writes it (roles/image/files/apps.sh)."""

from __future__ import annotations

import subprocess
from pathlib import Path

APPS = Path(__file__).parents[3] / "roles/image/files/apps.sh"
# The programs of this machine in place of BusyBox.
BUSYBOX = '#!/bin/sh\nexec "$@"\n'


def test_the_log_of_an_app_that_is_started_again_and_again_is_rotated(tmp_path: Path) -> None:
    busybox, output = tmp_path / "bin/busybox", tmp_path / "output"
    busybox.parent.mkdir()
    busybox.write_text(BUSYBOX)
    busybox.chmod(0o755)
    script = f"runtime={tmp_path}; . {APPS}; app_logs={tmp_path} longest_log=1000; copy_output web {output}"
    for run in "abcde":
        output.write_text(f"{run * 9}\n" * 70)
        subprocess.run(["sh", "-c", script], check=True, capture_output=True, timeout=60)
    logs = [tmp_path / name for name in ("web.log.1", "web.log")]
    assert all(log.stat().st_size <= 1010 for log in logs)
    # No line is lost between the two.
    assert "".join(log.read_text() for log in logs).endswith("ddddddddd\n" * 70 + "eeeeeeeee\n" * 70)
