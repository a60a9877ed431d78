# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A timer that makes passes over the queue: of systemd, and a line of crontab where no user manager of systemd runs."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from controller import SMALL, Controller, run, run_playbook
from openmetrics import parsed
from servers import until

# A crontab that keeps its table in a file of the home folder.
CRONTAB = """#!/bin/sh
case $1 in
    -l) cat "$HOME/crontab" 2>/dev/null || { echo "no crontab" >&2; exit 1; } ;;
    -r) rm -f "$HOME/crontab" ;;
    *) cat -- "$1" >"$HOME/crontab" ;;
esac
"""

# A user manager asks whether systemd has booted the machine. The answer is in a folder that only the manager sees.
MANAGER = "mount -t tmpfs tmpfs /run/systemd && mkdir /run/systemd/system && exec /lib/systemd/systemd --user"
DEADLINE = 120


@pytest.fixture
def manager(controller: Controller) -> Iterator[dict[str, str]]:
    """The environment of a login with a user manager of systemd, which ends with the test."""
    assert shutil.which("systemctl"), "The test of the timer needs systemd: apt-get install -y systemd"
    Path("/run/systemd").mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="cluster-compute-test-"))
    environment = {**controller.environment, "XDG_RUNTIME_DIR": str(folder)}
    command = ["unshare", "--mount", "--propagation", "private", "sh", "-c", MANAGER]
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            until((folder / "systemd" / "private").exists, "the user manager answers")
            yield environment
        finally:
            process.terminate()
            process.wait(timeout=DEADLINE)
            shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def programs(controller: Controller) -> str:
    """A search path with cron. The environment of a controller has no user manager of systemd."""
    folder = controller.folder / "bin"
    folder.mkdir(exist_ok=True)
    (folder / "crontab").write_text(CRONTAB)
    (folder / "crontab").chmod(0o755)
    return f"{folder}{os.pathsep}{controller.environment['PATH']}"


def test_the_timer_launches_what_waits_and_writes_the_page_and_the_metrics(
    controller: Controller, programs: str, tmp_path: Path
) -> None:
    environment = {**controller.environment, "PATH": programs}
    page, metrics = tmp_path / "page of sessions.html", tmp_path / "metrics of sessions.prom"
    variables = {"timer_minutes": 5, "timer_variables": str(controller.common)}
    command = controller.command("queue_timer", **variables, timer_page=str(page), timer_metrics=str(metrics))
    run_playbook(command, environment).check()
    assert run_playbook(command, environment).check().changed == 0
    assert "is PENDING" in controller.launch("queued", agent_schedulable=False, **SMALL).check().text
    *_comment, line = (controller.home / "crontab").read_text().splitlines()
    assert line.startswith("*/5 * * * * ")
    # As cron runs it: with hardly any environment, from the home folder.
    job = ["sh", "-c", line.split(" ", 5)[5]]
    run(job, cwd=controller.home, env={"HOME": str(controller.home), "PATH": "/usr/bin:/bin"}).check()
    log = controller.home / ".local/share/cluster-compute/cluster-compute-queue.log"
    assert "Session queued: RUNNING" in log.read_text()
    assert log.stat().st_mode & 0o777 == 0o600
    assert "<b>queued</b>" in page.read_text()
    labels = (("owner", controller.owner), ("session", "queued"))
    assert parsed(metrics.read_text())["cluster_compute_session_containers_running"][labels] == 1
    assert metrics.stat().st_mode & 0o777 == 0o644
    controller.terminate("queued").check()
    run_playbook([*command, "-e", "timer_state=absent"], environment).check()
    assert not [path for path in log.parent.iterdir() if path.is_file()]
    assert "cluster-compute" not in (controller.home / "crontab").read_text()


def test_an_interval_of_an_hour_is_refused(controller: Controller) -> None:
    wrong = controller.play("queue_timer", timer_minutes=60)
    assert "timer_minutes: '60'" in wrong.message


def test_a_timer_without_agents_for_its_passes_is_refused(controller: Controller) -> None:
    refused = controller.play("queue_timer", "-i", "localhost,")
    assert "The inventory has no host in the group agents" in refused.message


def test_a_timer_of_systemd_takes_the_place_of_a_line_of_crontab(
    controller: Controller, programs: str, manager: dict[str, str]
) -> None:
    """And it goes without its user manager, whose next start would run it again. Its passes are in test_systemd_host.py."""
    without, beside = {**controller.environment, "PATH": programs}, {**manager, "PATH": programs}
    command = controller.command("queue_timer", timer_variables=str(controller.common), timer_minutes=59)
    table, units = controller.home / "crontab", controller.home / ".config/systemd/user"
    run_playbook(command, without).check()
    assert "cluster-compute-queue" in table.read_text()
    assert run_playbook([*command, "--check"], beside).check().changed > 0
    assert "cluster-compute-queue" in table.read_text()
    assert not list(units.glob("cluster-compute*"))
    assert "by systemd" in run_playbook(command, beside).check().text
    assert "cluster-compute-queue" not in table.read_text()
    listed = run(["systemctl", "--user", "list-timers", "--no-pager"], env=manager).check().text
    assert "cluster-compute-queue.timer" in listed
    run(["systemd-analyze", "--user", "verify", *map(str, units.glob("cluster-compute-queue.*"))], env=manager).check()
    assert run_playbook(command, beside).check().changed == 0
    run_playbook([*command, "-e", "timer_state=absent"], without).check()
    assert not [path for path in units.rglob("*") if path.is_file() or path.is_symlink()]
