# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A playbook that waits for something, which the test does as soon as a line of its output asks for it."""

from __future__ import annotations

import re
import subprocess
import threading
from collections.abc import Callable, Sequence
from typing import Any

from controller import PATIENCE, ROOT, Controller, Done


def run_answered(
    command: Sequence[str], line: str, answer: Callable[[], object], controller: Controller, callback: str = "default"
) -> Done:
    """Run a playbook, and answer as soon as it prints a line that matches. The line must appear."""
    options: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "text": True}
    environment = {**controller.environment, "ANSIBLE_STDOUT_CALLBACK": callback}
    with subprocess.Popen(command, cwd=ROOT, env=environment, **options) as process:
        limit = threading.Timer(PATIENCE, process.kill)
        limit.start()
        assert process.stdout is not None
        lines = []
        for shown in process.stdout:
            lines.append(shown)
            if re.fullmatch(line, shown.rstrip("\n")):
                answer()
                break
        else:
            raise AssertionError("".join(lines))
        lines += process.stdout.readlines()
        limit.cancel()
    return Done(process.returncode, "".join(lines))
