# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program of the overlay guard, with the kernel's own tables in a network of its own."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from controller import ROOT

GUARD = ROOT / "roles/agent/files/overlay_guard.sh"
RULES = "iptables --table mangle --list-rules"
FLUSH = "iptables --table mangle --flush; iptables --table mangle --delete-chain"
JUMP = re.compile(r"^-A (INPUT|FORWARD) .*--dport (\d+) -j CLUSTER-COMPUTE$", re.MULTILINE)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """The program, with its record in another place: that of this host belongs to the host's own rules."""
    if os.geteuid() != 0:
        pytest.skip("only root has tables of its own")
    changed = tmp_path / "guard"
    changed.write_text(GUARD.read_text().replace("RECORD=/run", f"RECORD={tmp_path}"))
    return changed


def output(program: Path, *steps: str) -> str:
    """What the steps print, in one new network; a step that begins with an option of the program is the program's."""
    words = ("start", "status", "stop")
    lines = [f"sh {program} {step}" if step.startswith(words) else step for step in steps]
    command = ["unshare", "--net", "sh", "-ec", "\n".join(lines)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_the_rules_come_once_and_come_back_after_a_flush(program: Path) -> None:
    steps = ["status", "start", "start", "status", FLUSH, "status", "start", "status", "stop", "stop"]
    assert output(program, *steps).split() == ["missing", "installed", "missing", "installed", "removed"]


@pytest.mark.parametrize("chain", ["INPUT", "FORWARD", "CLUSTER-COMPUTE"])
def test_a_part_that_is_lost_is_noticed(chain: str, program: Path) -> None:
    flush = f"iptables --table mangle --flush {chain}"
    assert output(program, "start", flush, "status", "start", "status").split() == ["installed", "missing", "installed"]


def test_another_port_replaces_the_rules(program: Path) -> None:
    found = output(program, "start", "status 7789", "start 7789", "status", "status 7789", RULES)
    assert found.split("-P")[0].split() == ["installed", "missing", "installed", "missing"]
    assert sorted(JUMP.findall(found)) == [("FORWARD", "7789"), ("INPUT", "7789")]
    assert "CLUSTER-COMPUTE" not in output(program, "start 7789", "stop", RULES)


def test_every_user_can_read_the_port_of_the_rules(program: Path) -> None:
    output(program, "start 7789")
    record = program.parent / "cluster-compute-overlay-guard"
    assert (record.read_text(), record.stat().st_mode & 0o777) == ("7789\n", 0o644)
    output(program, "start", "stop")
    assert not record.exists()


def test_a_port_that_is_none_is_refused(program: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError, match="exit status 2"):
        output(program, "start 47x9")


def test_no_account_of_the_host_can_hold_the_lock(program: Path) -> None:
    """flock(2) takes a file that is open for reading: rules that are flushed would not come back."""
    lock = program.parent / "cluster-compute-overlay-guard.lock"
    lock.touch(0o644)
    output(program, "start")
    assert lock.stat().st_mode & 0o777 == 0o600
    assert (program.parent / "cluster-compute-overlay-guard").stat().st_mode & 0o777 == 0o644
