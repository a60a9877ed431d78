# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a container may use besides its resources is bounded on a real engine: processes, privileges, files and logs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from containers_lab import Launcher, create_and_start, inside, ours
from engine_lab import Shape, run_step

from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import EngineError


def test_processes_and_logs_are_bounded(launcher: Launcher, client: Any) -> None:
    plan = Shape(size=1).plan()
    launch = launcher(replace(plan, session=replace(plan.session, pids=64, log_size=65536, log_files=2)))
    create_and_start(launch)
    host = client.inspect_container(plan.main.name)["HostConfig"]
    assert host["LogConfig"] == {
        "Type": client.info()["LoggingDriver"],
        "Config": {"max-size": "65536", "max-file": "2"},
    }
    assert (
        "64" in inside(client, plan, 0, "cat /sys/fs/cgroup/pids.max /sys/fs/cgroup/pids/pids.max 2>/dev/null").split()
    )
    granted = int(inside(client, plan, 0, "grep CapBnd /proc/1/status").split()[1], 16)
    assert not granted & (1 << 27 | 1 << 31)


def test_setuid_files_give_no_privileges_if_the_session_asks_for_it(launcher: Launcher, client: Any) -> None:
    plan = Shape(size=1).plan()
    create_and_start(launcher(replace(plan, session=replace(plan.session, no_new_privileges=True))))
    assert inside(client, plan, 0, "grep NoNewPrivs /proc/1/status").split()[1] == "1"
    assert not int(inside(client, plan, 0, "grep CapBnd /proc/1/status").split()[1], 16) & (1 << 13)


def test_a_size_that_the_storage_driver_lacks_is_refused(launcher: Launcher, client: Any) -> None:
    plan = Shape(size=1).plan()
    launch = launcher(replace(plan, session=replace(plan.session, disk=1 << 30)))
    with pytest.raises(EngineError, match="set session_disk to 0, or use a storage driver with quotas there"):
        launch.created()
    assert ours(client, plan) == []


def test_control_characters_of_a_log_are_visible_and_its_size_is_bounded(launcher: Launcher, client: Any) -> None:
    launch = launcher(Shape(size=1).plan())
    create_and_start(launch)
    write = "printf '\\033]0;title\\007\\n' >/proc/1/fd/1; i=0; while [ $i -lt 200 ]; do echo a-line-of-more-than-thirty-characters; i=$((i+1)); done >/proc/1/fd/1"
    inside(client, launch.plan, 0, write)
    [log] = run_step("logs.read", wanted={"session": launch.plan.session.id})["logs"]
    assert "\\x1b]0;title\\x07" in log["text"]
    assert "\x1b" not in log["text"]
    [short] = run_step("logs.read", wanted={"session": launch.plan.session.id, "total": 1})["logs"]
    assert short["text"].startswith("(only the last 4 KiB of this log)")
