# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Carry out a step in this process if its module would run in the same Python as the same user.

Packing a module, starting a Python and importing the Docker SDK takes about half a second; a call saves that time.
Options are checked and results are cleaned as Ansible does for a module in a process of its own.
"""

from __future__ import annotations

import sys
from typing import Any, Sequence

from ...module_utils._shared.codec import Json, ModuleResult
from ...module_utils._worker.module import called
from ...modules.head_step import STEPS


def call(args: Json, *, check_mode: bool, diff: bool) -> ModuleResult:
    """The result of C(head_step) with these options."""
    return called(STEPS.spec, STEPS.work, args, check_mode=check_mode, diff=diff)


def is_here(connection: Any, environment: Sequence[Any], interpreter: str) -> bool:
    """Return whether a module of this task would be run by this Python, as this user, with this environment."""
    is_local = str(getattr(connection, "transport", "")).rpartition(".")[2] == "local"
    return is_local and not connection.become and not any(environment or ()) and interpreter == sys.executable
