# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Functions and files stay small enough to be read at once."""

from __future__ import annotations

from pathlib import Path

import figures
import pytest
from figures import DEEPEST_NESTING, LONGEST_FILE, LONGEST_FUNCTION, Goal

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


@pytest.fixture(scope="module")
def goals(checkout: Path) -> list[Goal]:
    return figures.goals(checkout)


def test_no_function_is_too_long(checkout: Path, everything: list[Path]) -> None:
    assert figures.above(figures.function_lengths(everything, checkout), LONGEST_FUNCTION) == []


def test_no_function_is_nested_too_deeply(checkout: Path, everything: list[Path]) -> None:
    assert figures.above(figures.nestings(everything, checkout), DEEPEST_NESTING) == []


def test_no_file_is_too_long(checkout: Path, everything: list[Path]) -> None:
    assert figures.above(figures.lengths(everything, checkout), LONGEST_FILE) == []


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
    (tmp_path / "plugins/high.py").write_text("from . import low\n", encoding="utf-8")
    (tmp_path / "plugins/inner").mkdir()
    (tmp_path / "plugins/inner/top.py").write_text("from ..high import x\n", encoding="utf-8")
    typed = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from . import high\n"
    (tmp_path / "plugins/typed.py").write_text(typed, encoding="utf-8")
    levels = {"plugins.low": 1, "plugins.high": 2, "plugins.inner.top": 3, "plugins.typed": 1}
    assert figures.import_levels(tmp_path) == levels


def test_ansible_packs_what_a_module_imports_for_type_checkers(tmp_path: Path) -> None:
    folder = tmp_path / "plugins"
    for name, text in {
        "modules/one": "if TYPE_CHECKING:\n    from ..module_utils import steps\n",
        "module_utils/steps": "from . import used\nif TYPE_CHECKING:\n    from . import unused\n",
        "module_utils/used": "",
        "module_utils/unused": "",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    assert [path.stem for path in figures.packed(tmp_path, "one")] == ["steps", "used", "one"]


# The goals of the structure that are reached: none of them may be lost again.
REACHED = frozenset(
    {
        "public modules",
        "action plugins",
        "filters",
        "lines of YAML of roles and playbooks",
        "lines of code of the command and the front end",
        "run_once in roles and playbooks",
        "public names in more than one file",
        "docstrings that begin with a question word",
        "accesses to dictionaries by a written key",
        "parameters and results of type Json",
        "longest function",
        "files of module_utils below 80 lines",
        "deepest nesting",
        "levels of imports",
        "mean level, in tenths",
    }
)


def test_a_goal_that_is_reached_stays_reached(goals: list[Goal]) -> None:
    assert {goal.name for goal in goals} >= REACHED
    assert [f"{goal.name}: {goal.value}" for goal in goals if goal.name in REACHED and not goal.is_reached] == []


def test_code_is_what_no_comment_docstring_or_blank_line_is(tmp_path: Path) -> None:
    path = tmp_path / "sample.py"
    path.write_text(SAMPLE, encoding="utf-8")
    assert figures.code_lines(path) == 12
