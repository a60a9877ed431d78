# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every file names its licence, so that a file that is copied out of the project keeps it."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Files that a tool writes, that have no comments, or that are the licence.
WITHOUT = {
    "LICENSE",
    "CHANGELOG.rst",
    "changelogs/changelog.yaml",
    "changelogs/fragments/.keep",
    "examples/hpcc/hpccinf.txt",
    "extensions/grafana/cluster_compute.json",
    "extensions/patterns/cluster_sessions/meta/pattern.json",
}


def test_every_file_has_an_spdx_tag() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    files = [name for name in listed if name not in WITHOUT and (ROOT / name).is_file() and not name.endswith(".png")]
    assert len(files) > 200
    assert [
        name for name in files if "SPDX-License-Identifier: GPL-3.0-or-later" not in (ROOT / name).read_text()
    ] == []
