# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Functions and files stay small enough to be read at once."""

from __future__ import annotations

from pathlib import Path

import figures
import pytest
from figures import DEEPEST_NESTING, LONGEST_FILE, LONGEST_FUNCTION

SAMPLE = '''"""About
this."""

DOCUMENTATION = """
---
"""


def shallow(a):
    if a:
        return 1
    elif a is None:
        return 2
    else:
        return 3


def deep(a):
    for one in a:
        if one:
            with one:
                return [x for x in one if x]
'''


@pytest.fixture(scope="module")
def everything(checkout: Path) -> list[Path]:
    return figures.plugins(checkout) + figures.tests(checkout)


def test_no_function_is_too_long(checkout: Path, everything: list[Path]) -> None:
    assert figures.above(figures.function_lengths(everything, checkout), LONGEST_FUNCTION) == []


def test_no_function_is_nested_too_deeply(checkout: Path, everything: list[Path]) -> None:
    assert figures.above(figures.nestings(everything, checkout), DEEPEST_NESTING) == []


def test_no_file_is_too_long(checkout: Path, everything: list[Path]) -> None:
    generated = checkout / "plugins" / "doc_fragments" / "options.py"
    written = [path for path in everything if path != generated]
    assert figures.above(figures.lengths(written, checkout), LONGEST_FILE) == []


def test_the_figures_of_a_sample(tmp_path: Path) -> None:
    path = tmp_path / "plugins/sample.py"
    path.parent.mkdir()
    path.write_text(SAMPLE, encoding="utf-8")
    places = ["plugins/sample.py:shallow", "plugins/sample.py:deep"]
    assert figures.lengths([path], tmp_path)[0].value == len(SAMPLE.splitlines())
    assert figures.function_lengths([path], tmp_path) == [figures.Figure(7, places[0]), figures.Figure(5, places[1])]
    assert figures.nestings([path], tmp_path) == [figures.Figure(1, places[0]), figures.Figure(3, places[1])]


def test_the_level_of_a_module_is_above_what_it_imports(tmp_path: Path) -> None:
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins/low.py").write_text("import os\n", encoding="utf-8")
    line = "from ansible_collections.cluster.compute.plugins import low\n"
    (tmp_path / "plugins/high.py").write_text(line, encoding="utf-8")
    assert figures.import_levels(tmp_path) == {"plugins.low": 1, "plugins.high": 2}
