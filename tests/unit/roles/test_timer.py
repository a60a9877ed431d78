# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Expressions of the role timer."""

from __future__ import annotations

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


def test_a_pass_runs_the_playbooks_of_the_collection_whatever_playbook_has_the_role(tmp_path: Path) -> None:
    (tmp_path / "crontab-program").mkdir()
    (tmp_path / "crontab-program/crontab").write_text(CRONTAB)
    (tmp_path / "crontab-program/crontab").chmod(0o755)
    (tmp_path / "play.yml").write_text("- hosts: localhost\n  gather_facts: false\n  roles: [cluster.compute.timer]\n")
    kept = {name: text for name, text in os.environ.items() if not name.startswith(("ANSIBLE_", "XDG_"))}
    path = f"{tmp_path / 'crontab-program'}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    own = {"HOME": str(tmp_path), "PATH": path, "ANSIBLE_COLLECTIONS_PATH": str(ROLES.parent / "collections")}
    interpreter = f"ansible_python_interpreter={sys.executable}"
    command = ["ansible-playbook", "-i", "localhost,", "-c", "local", "-e", interpreter, "play.yml"]
    done = subprocess.run(command, cwd=tmp_path, env={**kept, **own}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    job = (tmp_path / "crontab").read_text().splitlines()[-1].split(" ", 5)[5]
    subprocess.run(["sh", "-c", job], cwd=tmp_path, env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}, check=False)
    log = (tmp_path / ".local/share/cluster-compute/cluster-compute-queue.log").read_text()
    assert "The inventory has no host in the group agents" in log, log
