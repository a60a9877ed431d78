# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A timer that makes passes over the queue, where no user manager of systemd runs: a line of crontab and its script."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from controller import ROOT, SMALL, Controller, run

# A crontab that keeps its table in a file of the home folder.
CRONTAB = """#!/bin/sh
case $1 in
    -l) cat "$HOME/crontab" 2>/dev/null || { echo "no crontab" >&2; exit 1; } ;;
    -r) rm -f "$HOME/crontab" ;;
    *) cat -- "$1" >"$HOME/crontab" ;;
esac
"""


@pytest.fixture
def programs(controller: Controller) -> str:
    """A search path with cron. The environment of a controller has no user manager of systemd."""
    folder = controller.folder / "bin"
    folder.mkdir(exist_ok=True)
    (folder / "crontab").write_text(CRONTAB)
    (folder / "crontab").chmod(0o755)
    return f"{folder}{os.pathsep}{controller.environment['PATH']}"


def test_the_timer_launches_what_waits_and_writes_the_page(
    controller: Controller, programs: str, tmp_path: Path
) -> None:
    environment = {**controller.environment, "PATH": programs}
    page, variables = tmp_path / "sessions.html", {"timer_minutes": 5, "timer_variables": str(controller.common)}
    command = controller.command("queue_timer", **variables, timer_page=str(page))
    run(command, cwd=ROOT, env=environment).check()
    assert run(command, cwd=ROOT, env=environment).check().changed == 0
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
    controller.terminate("queued").check()
    run([*command, "-e", "timer_state=absent"], cwd=ROOT, env=environment).check()
    assert not [path for path in log.parent.iterdir() if path.is_file()]
    assert "cluster-compute" not in (controller.home / "crontab").read_text()


def test_an_interval_of_an_hour_is_refused(controller: Controller) -> None:
    wrong = run(controller.command("queue_timer", timer_minutes=60), cwd=ROOT, env=controller.environment)
    assert "timer_minutes: '60'" in wrong.message
