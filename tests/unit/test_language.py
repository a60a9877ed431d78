# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The counters of what a reader must know by heart count what they say."""

from __future__ import annotations

import ast
from pathlib import Path

import language
import pytest


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ('one["name"]', 1),
        ('one["name"] = two["name"]', 2),
        ('one.get("name")', 1),
        ('one.pop("name", None)', 1),
        ('one.setdefault("name", [])', 1),
        ("one[0]", 0),
        ("one[name]", 0),
        ("one.get(name)", 0),
        ('get("name")', 0),
        ('one.find("name")', 0),
    ],
)
def test_a_key_that_is_written_is_counted(source: str, count: int) -> None:
    assert language.string_keys(ast.parse(source)) == count


def test_documents_without_a_type_are_counted() -> None:
    source = "def one(a: Json, b: List[Json], *, c: int) -> Json | None: ...\ndef two() -> str: ..."
    assert language.json_uses(ast.parse(source)) == 3


def test_a_docstring_begins_with_a_verb() -> None:
    source = (
        'def one():\n    """What it is."""\ndef two():\n    """Return it."""\nclass Three:\n    """Whether it is."""'
    )
    assert language.docstrings_without_a_verb(ast.parse(source)) == 2


def test_a_name_in_two_files_is_found(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("def main(): ...\ndef read(): ...\ndef _own(): ...\nclass Two: ...\n")
    (tmp_path / "two.py").write_text("def main(): ...\ndef read(): ...\ndef _own(): ...\n")
    assert language.repeated_names(sorted(tmp_path.iterdir())) == ["read"]
