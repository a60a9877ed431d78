# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The limits of a session, as each of its containers keeps them (roles/image/files/limits.sh)."""

from __future__ import annotations

import re
import subprocess
import time
from pathlib import Path

import pytest

FILES = Path(__file__).parents[3] / "roles/image/files"
LIMITS = FILES / "limits.sh"
# Programs in place of those of the SSH runtime: those of this machine, and an ssh whose other side does what the test says.
PROGRAMS = {"busybox": 'exec "$@"', "setpriv": 'while [ "$1" != -- ]; do shift; done; shift; exec "$@"', "ssh": "%s"}
PROGRAMS.update({name: f'exec {name} "$@"' for name in ("date", "sleep")})


@pytest.mark.parametrize(
    ("there", "answer"), [("echo Welcome!; echo 90", "90"), ("echo Welcome!", "0"), ("exit 255", ""), ("sleep 600", "")]
)
def test_a_container_that_does_not_answer_in_time_is_gone(there: str, answer: str, tmp_path: Path) -> None:
    """A login shell that hangs would hold up the end of an idle session."""
    make_runtime(tmp_path, there)
    script = f'runtime={tmp_path} uid=0 gid=0 home=/; . {LIMITS}; patience=1; ask_quiet sub1; echo "$answer"'
    done = subprocess.run(["sh", "-c", script], check=True, capture_output=True, text=True, timeout=20)
    assert done.stdout == f"{answer}\n"


def make_runtime(folder: Path, there: str = "exit") -> None:
    (folder / "bin").mkdir()
    for name, script in PROGRAMS.items():
        program = folder / "bin" / name
        program.write_text("#!/bin/sh\n" + script.replace("%s", there) + "\n")
        program.chmod(0o755)


def test_containers_that_do_not_answer_do_not_hold_up_the_end_of_the_lifetime(tmp_path: Path) -> None:
    """Each of them is waited for, one after the other."""
    make_runtime(tmp_path)
    (tmp_path / "limits").write_text(f"lifetime 1 {int(time.time())}\nidle 600\n")
    keepers = re.findall(r"^(keep_\w+) &$", (FILES / "init.sh").read_text(), re.MULTILINE)
    script = f"""
        config={tmp_path} runtime={tmp_path}
        . {LIMITS}
        say() {{ :; }}
        kill() {{ echo "$@" >"$config/signal"; }}
        check_idle() {{ until [ -e "$config/end" ]; do sleep 0.1; done; }}
        for keeper in {" ".join(keepers)}; do "$keeper" & pids="$pids $!"; done
        tries=0
        until [ -e "$config/signal" ] || [ "$((tries += 1))" -gt 200 ]; do sleep 0.1; done
        command kill $pids
        >"$config/end"
        wait
        cat "$config/signal"
    """
    done = subprocess.run(["sh", "-c", script], check=False, capture_output=True, text=True, timeout=60)
    assert done.stdout == "-USR1 1\n"
