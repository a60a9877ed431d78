# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The question of a container whether another one is idle (roles/image/files/limits.sh)."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

LIMITS = Path(__file__).parents[3] / "roles/image/files/limits.sh"
# Programs in place of those of the SSH runtime: those of this machine, and an ssh whose other side does what the test says.
PROGRAMS = {"busybox": 'exec "$@"', "setpriv": 'while [ "$1" != -- ]; do shift; done; shift; exec "$@"', "ssh": "%s"}


@pytest.mark.parametrize(
    ("there", "answer"), [("echo Welcome!; echo 90", "90"), ("echo Welcome!", "0"), ("exit 255", ""), ("sleep 600", "")]
)
def test_a_container_that_does_not_answer_in_time_is_gone(there: str, answer: str, tmp_path: Path) -> None:
    """A login shell that hangs would hold up the end of an idle session, and of one whose lifetime is over."""
    (tmp_path / "bin").mkdir()
    for name, script in PROGRAMS.items():
        program = tmp_path / "bin" / name
        program.write_text("#!/bin/sh\n" + script.replace("%s", there) + "\n")
        program.chmod(0o755)
    script = f'runtime={tmp_path} uid=0 gid=0 home=/; . {LIMITS}; patience=1; ask_quiet sub1; echo "$answer"'
    done = subprocess.run(["sh", "-c", script], check=True, capture_output=True, text=True, timeout=20)
    assert done.stdout == f"{answer}\n"
