#!/usr/bin/env python3
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Print structural figures of the project, each with its goal: the public surface, sizes, nesting, and levels of imports.

Usage: figures.py [--root DIR]
"""

from __future__ import annotations

import argparse
import ast
import functools
import io
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import language

ROOT = Path(__file__).resolve().parents[2]
LONGEST_FUNCTION = 40
DEEPEST_NESTING = 3
LONGEST_FILE = 400
SMALL_FILE = 80
_NO_CODE = frozenset(
    {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
)
BLOCKS = (ast.If, ast.For, ast.While, ast.With, ast.Try, ast.AsyncFor, ast.AsyncWith, ast.Match)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
STATEMENTS = (ast.stmt, ast.ExceptHandler, ast.match_case)


@dataclass(frozen=True)
class Figure:
    """A number, and the place that it was counted at."""

    value: int
    place: str


@dataclass(frozen=True)
class Goal:
    """A figure of the whole tree, and the highest value that is wanted."""

    name: str
    value: int
    limit: int

    @property
    def is_reached(self) -> bool:
        return self.value <= self.limit


def plugins(root: Path) -> list[Path]:
    """The Python files of the collection itself."""
    return sorted(path for path in (root / "plugins").rglob("*.py"))


def tests(root: Path) -> list[Path]:
    """The Python files of the tests and of their tools."""
    return sorted(path for path in (root / "tests").rglob("*.py"))


def users_programs(root: Path) -> list[Path]:
    """The Python files of the command and of the front end: nothing in them decides what a playbook decides."""
    return sorted(path for name in ("command", "front_end") for path in (root / "extensions" / name).rglob("*.py"))


def length(path: Path) -> int:
    """The lines of a file, with its documentation."""
    return len(path.read_text(encoding="utf-8").splitlines())


def lengths(paths: list[Path], root: Path) -> list[Figure]:
    """The length of each file."""
    return [Figure(length(path), str(path.relative_to(root))) for path in paths]


def function_lengths(paths: list[Path], root: Path) -> list[Figure]:
    """The lines of each function, from its ``def``, with its docstring."""
    return [
        Figure(lines, f"{path.relative_to(root)}:{name}") for path in paths for name, lines, _depth in _functions(path)
    ]


def nestings(paths: list[Path], root: Path) -> list[Figure]:
    """The depth of blocks within each function; a branch ``elif`` is as deep as its ``if``."""
    return [
        Figure(depth, f"{path.relative_to(root)}:{name}") for path in paths for name, _lines, depth in _functions(path)
    ]


def import_levels(root: Path) -> dict[str, int]:
    """The level of each private module: 1 if it imports no other, else one more than the highest that it imports."""
    modules = {_module_name(path, root): path for path in plugins(root)}
    imported = {name: _imported(path, root) & set(modules) for name, path in modules.items()}

    @functools.cache
    def level(name: str) -> int:
        return 1 + max((level(other) for other in imported[name] - {name}), default=0)

    return {name: level(name) for name in modules}


def packed(root: Path, module: str) -> list[Path]:
    """The files that Ansible packs for a module. It packs what the module imports for type checkers, too."""
    found: set[str] = set()
    waiting = {f"plugins.modules.{module}"}
    while waiting:
        name = waiting.pop()
        path = root / (name.replace(".", "/") + ".py")
        if path.is_file() and name not in found:
            found.add(name)
            waiting |= _imported(path, root, typed=path.parent.name == "modules")
    return [root / (name.replace(".", "/") + ".py") for name in sorted(found)]


def highest(figures: list[Figure]) -> Figure:
    """The highest figure, or zero."""
    return max(figures, key=lambda figure: figure.value, default=Figure(0, "-"))


def above(figures: list[Figure], limit: int) -> list[str]:
    """What exceeds a limit, as ``place: value``."""
    return [f"{figure.place}: {figure.value}" for figure in figures if figure.value > limit]


def code_lines(path: Path) -> int:
    """The lines of code of a file: without documentation strings, comments and blank lines."""
    text = path.read_text(encoding="utf-8")
    found = {
        token.start[0] + offset
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type not in _NO_CODE
        for offset in range(token.end[0] - token.start[0] + 1)
    }
    for node in ast.walk(_parsed(path)):
        if isinstance(node, ast.Expr | ast.Assign) and isinstance(node.value, ast.Constant | ast.JoinedStr):
            is_text = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
            if (is_text and _lines(node) > 1) or (is_text and isinstance(node, ast.Expr)):
                found -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(found)


def public_modules(root: Path) -> list[str]:
    """The modules that users type: all but the internal ones, whose description begins with a warning."""
    paths = sorted((root / "plugins/modules").glob("*.py"))
    return [path.stem for path in paths if "Do not use this module directly" not in path.read_text(encoding="utf-8")]


def texts(root: Path, *patterns: str) -> str:
    """The text of these files, one after the other."""
    return "\n".join(path.read_text(encoding="utf-8") for pattern in patterns for path in sorted(root.glob(pattern)))


def goals(root: Path) -> list[Goal]:
    """The figures of the structure, with their goals."""
    code, levels = plugins(root), import_levels(root)
    trees = language.trees(code)
    yaml = texts(root, "roles/**/*.yml", "playbooks/**/*.yml")
    filters = texts(root, "plugins/filter/*.yml").count("\nDOCUMENTATION:") or len(
        list(root.glob("plugins/filter/*.yml"))
    )
    small = [path for path in code if "module_utils" in path.parts and length(path) < SMALL_FILE]
    longest = max(function_lengths(code, root), key=lambda figure: figure.value)
    deepest = max(nestings(code, root), key=lambda figure: figure.value)
    return [
        Goal("public modules", len(public_modules(root)), 16),
        Goal("action plugins", len(list(root.glob("plugins/action/*.py"))), 18),
        Goal("filters", filters, 4),
        # 900, and what keeps the head of an inventory, texts of callers from Ansible's decoder, and the queue and why of the front end.
        Goal("lines of code of the command and the front end", sum(map(code_lines, users_programs(root))), 1045),
        Goal("lines of YAML of roles and playbooks", yaml.count("\n"), 3000),
        Goal("run_once in roles and playbooks", yaml.count("run_once: true"), 30),
        Goal("lines that an agent gets", sum(map(length, packed(root, "agent_step"))), 15000),
        Goal("levels of imports", max(levels.values(), default=0), 10),
        Goal("mean level, in tenths", round(10 * sum(levels.values()) / max(1, len(levels))), 49),
        Goal("files of module_utils below 80 lines", len(small), 25),
        Goal("public names in more than one file", len(language.repeated_names(code)), 40),
        Goal("docstrings that begin with a question word", sum(map(language.docstrings_without_a_verb, trees)), 60),
        Goal("accesses to dictionaries by a written key", sum(map(language.string_keys, trees)), 1000),
        Goal("parameters and results of type Json", sum(map(language.json_uses, trees)), 450),
        Goal("longest function", longest.value, LONGEST_FUNCTION),
        Goal("deepest nesting", deepest.value, DEEPEST_NESTING),
    ]


def sizes(root: Path) -> list[Goal]:
    """The sizes of all plugins, of which no test demands one yet: to count them takes as long as all of the rest."""
    code = plugins(root)
    return [
        Goal("lines of plugins", sum(map(length, code)), 36500),
        Goal("lines of code of plugins", sum(map(code_lines, code)), 23500),
    ]


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=ROOT, help="the top directory of a checkout (default: this one)")
    root = parser.parse_args().root.resolve()
    for goal in sizes(root) + goals(root):
        print(f"{goal.name:<46} {goal.value:>6}  {'reached' if goal.is_reached else 'goal'}: {goal.limit}")
    return 0


def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@functools.cache
def _functions(path: Path) -> list[tuple[str, int, int]]:
    """The name, the lines and the depth of each function. The trees are not kept: the garbage collector would visit all of them."""
    functions = (node for node in _statements(_parsed(path)) if isinstance(node, FUNCTIONS))
    return [(one.name, _lines(one), max(_depth(node) for node in one.body)) for one in functions]


def _statements(node: ast.AST) -> Iterator[ast.stmt | ast.ExceptHandler | ast.match_case]:
    """All statements in a node: to visit the expressions, too, would take longer than to parse the file."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, STATEMENTS):
            yield child
            yield from _statements(child)


def _lines(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def _depth(node: ast.AST) -> int:
    if not isinstance(node, STATEMENTS) or isinstance(node, (*FUNCTIONS, ast.ClassDef)):
        return 0  # an expression, or a function that is counted itself
    if isinstance(node, ast.If) and len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If):
        return max(_depth(node.orelse[0]), 1 + max(_depth(child) for child in node.body))
    inner = max((_depth(child) for child in ast.iter_child_nodes(node)), default=0)
    return inner + isinstance(node, BLOCKS)


def _folders(paths: list[Path]) -> set[Path]:
    return {path.parent for path in paths}


def _module_name(path: Path, root: Path) -> str:
    return ".".join(path.relative_to(root).with_suffix("").parts)


def _imported(path: Path, root: Path, *, typed: bool = False) -> set[str]:
    """The modules of the collection that a file imports, as ``plugins.…``; those for type checkers alone count if ``typed``."""
    tree, found = _parsed(path), set()
    unread = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level and (typed or node not in unread):
            parts = path.relative_to(root).parent.parts
            package = [*parts[: len(parts) - node.level + 1], *((node.module or "").split(".") if node.module else ())]
            found |= {".".join(package), *(".".join([*package, alias.name]) for alias in node.names)}
    return found


if __name__ == "__main__":
    sys.exit(main())
