# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The logs of a session, followed into a file, and a wait for what the file shows."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import Any

from controller import PATIENCE, ROOT, Controller


def followed(controller: Controller, session: str, path: Path, **variables: Any) -> subprocess.Popen[bytes]:
    """A command that follows the logs and writes them to a file, with the buffers that Python has there."""
    with path.open("wb") as output:
        return following(controller, session, output, **variables)


def following(controller: Controller, session: str, output: Any, **variables: Any) -> subprocess.Popen[bytes]:
    command = controller.command("session_logs", session_name=session, session_logs_follow=True, **variables)
    environment = {**controller.environment, "ANSIBLE_STDOUT_CALLBACK": "cluster.compute.progress"}
    del environment["PYTHONUNBUFFERED"]
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT)


def wait_for(path: Path, text: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while text not in path.read_text():
        assert time.monotonic() < deadline, path.read_text()
        time.sleep(0.2)
