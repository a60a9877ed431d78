# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run of a role whose steps on hosts are a stand-in: for tests of the tasks alone, without an engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from warm_playbook import run_of_checkout

# Tests may run as root, who would otherwise not become root.
BEFORE = """
import sys
from ansible import constants
constants.BECOME_ALLOW_SAME_USER, constants.DEFAULT_STDOUT_CALLBACK = True, "default"
sys.modules["ansible_collections.cluster.compute.plugins.action.agent_step"].ActionModule = ActionModule
"""


def run_role(arguments: Sequence[str], folder: Path, own: Mapping[str, str], step: str) -> tuple[int, str]:
    """The exit code and the output; ``step`` is the source of the action agent_step."""
    return run_of_checkout("playbook", arguments, folder, own, step + BEFORE)
