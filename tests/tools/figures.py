#!/usr/bin/env python3
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Print structural figures of the project: sizes of files and functions, nesting, and levels of imports.

Usage: figures.py [--root DIR]
"""

from __future__ import annotations

import argparse
import ast
import functools
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "ansible_collections.cluster.compute."
LONGEST_FUNCTION = 40
DEEPEST_NESTING = 3
LONGEST_FILE = 400
BLOCKS = (ast.If, ast.For, ast.While, ast.With, ast.Try, ast.AsyncFor, ast.AsyncWith, ast.Match)
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Figure:
    """A number, and the place that it was counted at."""

    value: int
    place: str


def plugins(root: Path) -> list[Path]:
    """The Python files of the collection itself."""
    return sorted(path for path in (root / "plugins").rglob("*.py"))


def tests(root: Path) -> list[Path]:
    """The Python files of the tests and of their tools."""
    return sorted(path for path in (root / "tests").rglob("*.py"))


def length(path: Path) -> int:
    """The lines of a file, with its documentation."""
    return len(path.read_text(encoding="utf-8").splitlines())


def lengths(paths: list[Path], root: Path) -> list[Figure]:
    """The length of each file."""
    return [Figure(length(path), str(path.relative_to(root))) for path in paths]


def function_lengths(paths: list[Path], root: Path) -> list[Figure]:
    """The lines of each function, from its ``def``, with its docstring."""
    return [
        Figure(_lines(function), f"{path.relative_to(root)}:{function.name}")
        for path in paths
        for function in _functions(_parsed(path))
    ]


def nestings(paths: list[Path], root: Path) -> list[Figure]:
    """The depth of blocks within each function; a branch ``elif`` is as deep as its ``if``."""
    return [
        Figure(max(_depth(node) for node in function.body), f"{path.relative_to(root)}:{function.name}")
        for path in paths
        for function in _functions(_parsed(path))
    ]


def import_levels(root: Path) -> dict[str, int]:
    """The level of each private module: 1 if it imports no other, else one more than the highest that it imports."""
    modules = {_module_name(path, root): path for path in plugins(root)}
    imported = {name: _imported(path) & set(modules) for name, path in modules.items()}

    @functools.cache
    def level(name: str) -> int:
        return 1 + max((level(other) for other in imported[name] - {name}), default=0)

    return {name: level(name) for name in modules}


def highest(figures: list[Figure]) -> Figure:
    """The highest figure, or zero."""
    return max(figures, key=lambda figure: figure.value, default=Figure(0, "-"))


def above(figures: list[Figure], limit: int) -> list[str]:
    """What exceeds a limit, as ``place: value``."""
    return [f"{figure.place}: {figure.value}" for figure in figures if figure.value > limit]


def table(root: Path) -> list[tuple[str, int, str]]:
    """Name, value and place of each figure."""
    code, checks, levels = plugins(root), tests(root), import_levels(root)
    deepest = max(levels, key=lambda name: levels[name], default="-")
    rows = [
        ("longest function in plugins", highest(function_lengths(code, root))),
        ("longest function in tests", highest(function_lengths(checks, root))),
        ("deepest nesting in plugins", highest(nestings(code, root))),
        ("deepest nesting in tests", highest(nestings(checks, root))),
        ("longest file in plugins", highest(lengths(code, root))),
        ("longest file in tests", highest(lengths(checks, root))),
        ("levels of imports", Figure(levels.get(deepest, 0), deepest)),
        ("files in plugins", Figure(len(code), f"{sum(map(length, code))} lines")),
        ("files in tests", Figure(len(checks), f"{sum(map(length, checks))} lines")),
    ]
    fullest = [Figure(len(list(folder.glob("*.py"))), str(folder.relative_to(root))) for folder in _folders(code)]
    return [
        (name, figure.value, figure.place) for name, figure in [*rows, ("most files in a folder", highest(fullest))]
    ]


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=ROOT, help="the top folder of a checkout (default: this one)")
    for name, value, place in table(parser.parse_args().root.resolve()):
        print(f"{name:<28} {value:>6}  {place}")
    return 0


@functools.cache
def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _functions(tree: ast.Module) -> Iterator[Function]:
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def _lines(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def _depth(node: ast.AST) -> int:
    if not isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case) or isinstance(node, Function | ast.ClassDef):
        return 0  # an expression, or a function that is counted itself
    if isinstance(node, ast.If) and len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If):
        return max(_depth(node.orelse[0]), 1 + max(_depth(child) for child in node.body))
    inner = max((_depth(child) for child in ast.iter_child_nodes(node)), default=0)
    return inner + isinstance(node, BLOCKS)


def _folders(paths: list[Path]) -> set[Path]:
    return {path.parent for path in paths}


def _module_name(path: Path, root: Path) -> str:
    return ".".join(path.relative_to(root).with_suffix("").parts)


def _imported(path: Path) -> set[str]:
    """The modules of the collection that a file imports, as ``plugins.…``."""
    found = set()
    for node in ast.walk(_parsed(path)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(PACKAGE):
            name = (node.module or "").removeprefix(PACKAGE)
            found |= {name, *(f"{name}.{alias.name}" for alias in node.names)}
    return found


if __name__ == "__main__":
    sys.exit(main())
