# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A collection of one role, whose steps on hosts are a stand-in: for tests of the tasks alone, without an engine."""

from __future__ import annotations

import shutil
from pathlib import Path

ROLES = Path(__file__).resolve().parents[2] / "roles"


def make_collection(folder: Path, role: str, step: str) -> None:
    """Make the collection below a path of collections; ``step`` is the source of the action agent_step."""
    collection = folder / "ansible_collections/cluster/compute"
    shutil.copytree(ROLES / role, collection / "roles" / role)
    (collection / "plugins/action").mkdir(parents=True)
    (collection / "plugins/action/agent_step.py").write_text(step)
    (collection / "galaxy.yml").write_text("namespace: cluster\nname: compute\nversion: 1.0.0\n")
