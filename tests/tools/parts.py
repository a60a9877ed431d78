# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Test files in parts that run side by side and take about the same time."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


def parts(files: Iterable[Path], count: int) -> list[set[Path]]:
    """Deal out files, the longest first, each to the part that has the fewest lines: the time of a file grows with its length."""
    lengths = {file: len(file.read_bytes().splitlines()) for file in files}
    dealt: list[set[Path]] = [set() for _ in range(count)]
    for file in sorted(lengths, key=lambda file: (-lengths[file], file)):
        min(dealt, key=lambda part: sum(lengths[one] for one in part)).add(file)
    return dealt
