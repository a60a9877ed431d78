# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""This machine as a host on which steps leave processes and files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

from ansible_collections.cluster.compute.plugins.module_utils._shared.codec import Json
from ansible_collections.cluster.compute.plugins.plugin_utils._hosts import worker_client


class Host:
    """This machine as an action reaches it: commands run in a shell."""

    def __init__(self, base: Path, *, pipelining: bool = True) -> None:
        self._base, self._pipelining, self.prefix = str(base), pipelining, ""
        self._task = SimpleNamespace(check_mode=True, diff=False, environment=[{}])
        self.errors = ""

    def _is_pipelining_enabled(self, style: str) -> bool:
        return self._pipelining and style == "new"

    def get_shell_option(self, name: str, _default: str) -> str:
        assert name == "remote_tmp"
        return self._base

    def _low_level_execute_command(self, command: str, in_data: bytes) -> Json:
        shell = ["/bin/sh", "-c", self.prefix + command]
        done = subprocess.run(shell, input=in_data, capture_output=True, check=False, timeout=60)
        self.errors = done.stderr.decode()
        return {"rc": done.returncode, "stdout": "a banner\n" + done.stdout.decode(), "stderr": self.errors}


def eventually(is_true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def run_module(host: Host, module: str, archive: Path | None = None) -> None:
    """A step of an agent as a module of its own, whose process stays."""
    asked = {"call": "folders.find", "params": {"marks": {}, "token": "x"}, "agent": "a1"}
    where = worker_client.directory(host, module, "")  # type: ignore[arg-type]
    command = [sys.executable, "-m", "ansible_collections.cluster.compute.plugins.modules." + module]
    path = {**os.environ, "PYTHONPATH": str(archive) if archive else os.pathsep.join(sys.path)}
    given = json.dumps({"ANSIBLE_MODULE_ARGS": {**asked, "stays": where}})
    done = subprocess.run(command, env=path, input=given, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
