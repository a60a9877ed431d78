# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The parts of the tests on engines."""

from __future__ import annotations

from pathlib import Path

import pytest
from parts import parts


def test_the_longest_files_are_in_different_parts(tmp_path: Path) -> None:
    lengths = {"a": 90, "b": 10, "c": 20, "d": 100, "e": 60, "f": 30}
    for name, lines in lengths.items():
        (tmp_path / name).write_text("line\n" * lines)
    dealt = parts(tmp_path.iterdir(), 2)
    assert [sorted(file.name for file in part) for part in dealt] == [["b", "c", "d", "f"], ["a", "e"]]


@pytest.mark.parametrize(("folder", "count"), [("playbooks", 3), ("multi_host", 2)])
def test_each_file_is_in_one_part_and_no_part_is_much_longer(checkout: Path, folder: str, count: int) -> None:
    files = set((checkout / "tests/integration" / folder).glob("test_*.py"))
    dealt = parts(files, count)
    assert set().union(*dealt) == files
    assert sum(map(len, dealt)) == len(files)
    lines = [sum(len(file.read_text().splitlines()) for file in part) for part in dealt]
    assert max(lines) - min(lines) < 0.1 * max(lines)
