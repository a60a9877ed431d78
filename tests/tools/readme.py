# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands of README.md."""

from __future__ import annotations

import re
from pathlib import Path

README = Path(__file__).resolve().parents[2] / "README.md"
BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
TEST = "make test\n"


def blocks() -> list[str]:
    """The blocks marked as ``sh``. Commands that need other hosts are marked as ``text``."""
    return BLOCK.findall(README.read_text(encoding="utf-8"))


def steps() -> tuple[str, str, str, str]:
    """The blocks in the order of the page: launch, use and end, the plan of a launch, and the build of the collection."""
    launch, use, check, build = [text for text in blocks() if text != TEST]
    return launch, use, check, build


def packages() -> list[str]:
    """The packages that a newcomer installs: the names before the first block."""
    before = README.read_text(encoding="utf-8").partition("```sh")[0].rpartition("\n\n")[0].rpartition("\n\n")[2]
    return re.findall(r"`([^`]+)`", before)
