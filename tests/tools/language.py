# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Count what a reader of the code must know by heart: keys of dictionaries, untyped documents, and names that repeat."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

READS_OF_KEYS = frozenset({"get", "pop", "setdefault"})
# A docstring says what a function does, in the imperative: https://peps.python.org/pep-0257/#one-line-docstrings
NO_VERBS = frozenset({"What", "Which", "Whether", "How"})
# Each plugin of Ansible has them.
OF_ANSIBLE = frozenset({"ActionModule", "CallbackModule", "FilterModule", "InventoryModule", "main", "run"})
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def trees(paths: Iterable[Path]) -> list[ast.Module]:
    """The syntax trees of these files."""
    return [ast.parse(path.read_text(encoding="utf-8")) for path in paths]


def string_keys(tree: ast.AST) -> int:
    """Count the accesses to a dictionary by a key that is written there, such as ``one["name"]`` or ``one.get("name")``."""
    return sum(_is_string_key(node) for node in ast.walk(tree))


def json_uses(tree: ast.AST) -> int:
    """Count the parameters and results of functions whose type is ``Json``, alone or in a container."""
    annotations = (one for node in ast.walk(tree) if isinstance(node, FUNCTIONS) for one in _annotations(node))
    return sum("Json" in ast.unparse(one) for one in annotations)


def docstrings_without_a_verb(tree: ast.AST) -> int:
    """Count the docstrings that begin with a question word in place of a verb."""
    documented = (node for node in ast.walk(tree) if isinstance(node, (*FUNCTIONS, ast.ClassDef, ast.Module)))
    texts = (ast.get_docstring(node) or "-" for node in documented)
    return sum(text.split()[0] in NO_VERBS for text in texts)


def repeated_names(paths: Iterable[Path]) -> list[str]:
    """The public functions and classes whose name more than one file defines."""
    counts = Counter(name for tree in trees(paths) for name in _public_names(tree) - OF_ANSIBLE)
    return sorted(name for name, files in counts.items() if files > 1)


def _is_string_key(node: ast.AST) -> bool:
    if isinstance(node, ast.Subscript):
        return _is_text(node.slice)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    return node.func.attr in READS_OF_KEYS and bool(node.args) and _is_text(node.args[0])


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _annotations(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.expr]:
    arguments = function.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    yield from (one.annotation for one in every if one is not None and one.annotation is not None)
    if function.returns is not None:
        yield function.returns


def _public_names(tree: ast.Module) -> set[str]:
    defined = (node for node in tree.body if isinstance(node, (*FUNCTIONS, ast.ClassDef)))
    return {node.name for node in defined if not node.name.startswith("_")}
