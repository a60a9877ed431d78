# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The action ``session`` with options, in a user's own play."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from controller import ROOT, Controller, Done
from engine_lab import IMAGE, make_image

SMALL = {"name": "mine", "cluster_size": 2, "image": IMAGE, "cpus": 0.2, "memory": "64m", "shm": "16m"}


def task(
    controller: Controller, folder: Path, *arguments: str, action: str = "session", then: str = "", **options: Any
) -> Done:
    """Run a play with this one task, and print a value of its result."""
    steps: list[dict[str, Any]] = [{f"cluster.compute.{action}": options, "register": "train", "run_once": True}]
    if then:
        steps.append({"ansible.builtin.debug": {"msg": f"GIVEN {{{{ {then} }}}}"}, "run_once": True})
    (folder / "own.yml").write_text(json.dumps([{"hosts": "agents", "gather_facts": False, "tasks": steps}]))
    return controller.play(os.path.relpath(folder / "own", ROOT / "playbooks"), *arguments)


def test_a_task_launches_a_session_and_ends_it(controller: Controller, tmp_path: Path) -> None:
    make_image(controller.client)
    planned = task(controller, tmp_path, "--check", "--diff", **SMALL).check()
    assert "subnet" in planned.text
    assert controller.engine() == {}
    shown = "train.session.containers | map(attribute='hostname') | join(' ')"
    done = task(controller, tmp_path, then=shown, **SMALL).check()
    assert "GIVEN main1 sub1" in done.text
    assert task(controller, tmp_path, **SMALL).check().changed == 0
    web = {"name": "web", "port": 8080, "command": "exec /bin/busybox httpd -f -p 8080"}
    started = task(controller, tmp_path, action="session_apps", then="train.lines", name="mine", apps=[web]).check()
    assert "App web: ready" in started.text
    read = task(controller, tmp_path, action="session_logs_info", then="train.lines", name="mine", containers=["sub1"])
    assert "sub1: " in read.check().text
    failed = task(controller, tmp_path, action="session_exec", name="mine", command="exit 3", containers=["sub1"])
    assert (failed.code, "sub1 (exit code 3)" in failed.message) == (2, True)
    kept = task(
        controller, tmp_path, action="session_exec", then="train.exit_code", name="mine", command="exit 3", fail=False
    )
    assert "GIVEN 3" in kept.check().text
    task(controller, tmp_path, name="mine", state="absent").check()
    assert controller.engine() == {}


def test_a_wrong_option_is_named(controller: Controller, tmp_path: Path) -> None:
    refused = task(controller, tmp_path, **{**SMALL, "cpus": 0.001})
    assert (refused.code, refused.message) == (2, "cpus: 0.001: must be at least 0.01.")
    refused = task(controller, tmp_path, **{**SMALL, "clustersize": 3})
    assert refused.message.startswith("clustersize: 3: is not an option, but cluster_size is; the options are ")
