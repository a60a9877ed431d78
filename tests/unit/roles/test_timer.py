# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Expressions of the role timer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from expressions import ROLES, rendered

# A crontab that keeps its table in a file of the home folder.
CRONTAB = """#!/bin/sh
case $1 in
    -l) cat "$HOME/crontab" 2>/dev/null || exit 1 ;;
    *) cat -- "$1" >"$HOME/crontab" ;;
esac
"""

# A playbook that waits for a program that never ends and holds a lock.
HUNG = """#!/bin/sh
[ ! -e "$FOLDER/mended" ] || exit 0
exec 8>"$FOLDER/held"
flock 8
sleep 600 &
wait
"""
PATIENCE = 120


@pytest.mark.parametrize("name", ["page", "metrics", "variables"])
@pytest.mark.parametrize(
    ("given", "path"), [("a/b", "/work here/a/b"), ("/a/b", "/a/b"), ("~/b", "/home/alice/b"), ("", "")]
)
def test_a_relative_path_is_that_of_the_command_and_not_of_the_pass(
    name: str, given: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/alice")
    assert rendered("timer", "__timer_" + name, __timer_here="/work here/", **{"timer_" + name: given}) == path


def test_an_inventory_may_be_a_list_of_hosts() -> None:
    given = ["hosts.yml", "/etc/hosts.yml", "host1,", "~/hosts.yml"]
    found = rendered("timer", "__timer_inventories", __timer_here="/work/", timer_inventory=given)
    assert found == ["/work/hosts.yml", "/etc/hosts.yml", "host1,", "~/hosts.yml"]


def job_of(home: Path, *arguments: str) -> str:
    """The command that cron runs, after an installation."""
    (home / "crontab-program").mkdir()
    (home / "crontab-program/crontab").write_text(CRONTAB)
    (home / "crontab-program/crontab").chmod(0o755)
    (home / "play.yml").write_text("- hosts: localhost\n  gather_facts: false\n  roles: [cluster.compute.timer]\n")
    kept = {name: text for name, text in os.environ.items() if not name.startswith(("ANSIBLE_", "XDG_"))}
    path = f"{home / 'crontab-program'}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    own = {"HOME": str(home), "PATH": path, "ANSIBLE_COLLECTIONS_PATH": str(ROLES.parent / "collections")}
    interpreter = f"ansible_python_interpreter={sys.executable}"
    command = ["ansible-playbook", "-i", "localhost,", "-c", "local", "-e", interpreter, *arguments, "play.yml"]
    done = subprocess.run(command, cwd=home, env={**kept, **own}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return (home / "crontab").read_text().splitlines()[-1].split(" ", 5)[5]


def run_job(job: str, home: Path) -> int:
    """The exit code of a pass, as cron runs it."""
    environment = {"HOME": str(home), "PATH": "/usr/bin:/bin"}
    return subprocess.run(["sh", "-c", job], cwd=home, env=environment, check=False, timeout=PATIENCE).returncode


def test_a_pass_runs_the_playbooks_of_the_collection_whatever_playbook_has_the_role(tmp_path: Path) -> None:
    run_job(job_of(tmp_path), tmp_path)
    log = (tmp_path / ".local/share/cluster-compute/cluster-compute-queue.log").read_text()
    assert "The inventory has no host in the group agents" in log, log


def test_a_pass_that_hangs_is_killed_with_its_processes_and_blocks_no_later_pass(tmp_path: Path) -> None:
    program = tmp_path / "programs/ansible-playbook"
    program.parent.mkdir()
    program.write_text(HUNG)
    program.chmod(0o755)
    environment = {"PATH": f"{program.parent}:/usr/bin:/bin", "FOLDER": str(tmp_path)}
    job = job_of(tmp_path, "-e", json.dumps({"__timer_longest": 1, "__timer_environment": environment}))
    assert run_job(job, tmp_path) == 124
    subprocess.run(["flock", str(tmp_path / "held"), "true"], check=True, timeout=PATIENCE)
    (tmp_path / "mended").touch()
    assert run_job(job, tmp_path) == 0
