# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The floors of ``module_utils``: a package imports from the floors below it, and each library has one importer."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

import pytest

PLUGINS = Path(__file__).resolve().parents[2] / "plugins"
PREFIX = "ansible_collections.cluster.compute.plugins."
KINDS = frozenset(
    {"module_utils", "plugin_utils", "modules", "action", "filter", "inventory", "callback", "doc_fragments"}
)
# Files and packages of the same floor do not import each other.
FLOORS = {
    "_core": 1,
    "_planning": 2,
    "_docker": 2,
    "_module": 2,
    "_text": 3,
    "_agents": 4,
    "_ssh": 4,
    "_head": 4,
    "_steps": 5,
}
IMPORTERS = {
    "docker": "module_utils/_docker/client.py",
    "sqlite3": "module_utils/_head/store.py",
    "cryptography": "module_utils/_ssh/keys.py",
}
# The store's decisions are made on reports: the head needs no engine.
FORBIDDEN = {("_head", "_docker")}


@functools.cache
def imports(path: Path) -> list[str]:
    """Every module that a file imports, inside functions too."""
    return list(_imports(path))


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            # `from package import module` names the module in its list.
            yield from (f"{_absolute(node, path)}.{alias.name}" for alias in node.names)


def _absolute(node: ast.ImportFrom, path: Path) -> str:
    """The full name of the package of a relative import; other names as they are."""
    if not node.level:
        return str(node.module)
    package = PREFIX.split(".")[:-1] + list(path.relative_to(_plugins_of(path)).parent.parts)
    kept = package[: len(package) - node.level + 1]
    return ".".join([*kept, *([node.module] if node.module else [])])


def _plugins_of(path: Path) -> Path:
    return next(parent.parent for parent in path.parents if parent.name in KINDS)


def faults(plugins: Path) -> list[str]:
    """A sentence for each import that breaks a rule."""
    found = []
    for path in sorted(plugins.rglob("*.py")):
        file = str(path.relative_to(plugins))
        for name in imports(path):
            library = name.partition(".")[0]
            if IMPORTERS.get(library, file) != file:
                found.append(f"{file} imports {library}, which only {IMPORTERS[library]} may import")
            found += _wrong_direction(file, name)
    return found


def _wrong_direction(file: str, name: str) -> list[str]:
    folder, _slash, rest = file.partition("/")
    if folder != "module_utils" or not name.startswith(PREFIX):
        return []
    kind, _dot, target = name[len(PREFIX) :].partition(".")
    here, there = rest.partition("/")[0].removesuffix(".py"), target.partition(".")[0]
    if kind != "module_utils":
        return [f"{file} imports {kind}, which is above module_utils"]
    if here == there or (FLOORS[there] < FLOORS[here] and (here, there) not in FORBIDDEN):
        return []
    return [f"{file} imports {there}, which is not on a floor below {here}"]


def cycles(plugins: Path) -> list[str]:
    """The modules of ``module_utils`` that import one another in a circle."""
    names = {_module(path, plugins): path for path in plugins.glob("module_utils/**/*.py")}
    edges = {name: {_known(one, names) for one in imports(path)} - {""} for name, path in names.items()}
    while leaves := [name for name, needed in edges.items() if not needed & edges.keys()]:
        for name in leaves:
            del edges[name]
    return sorted(edges)


def _module(path: Path, plugins: Path) -> str:
    return PREFIX + ".".join(path.relative_to(plugins).with_suffix("").parts)


def _known(name: str, names: dict[str, Path]) -> str:
    return next((one for one in (name, name.rpartition(".")[0]) if one in names), "")


def test_packages_import_from_the_floors_below() -> None:
    assert faults(PLUGINS) == []


def test_no_module_imports_itself_through_others() -> None:
    assert cycles(PLUGINS) == []


@pytest.mark.parametrize(
    ("file", "line", "fault"),
    [
        ("_planning/plan.py", f"from {PREFIX}module_utils._docker.client import Engine", "imports _docker"),
        ("_planning/plan.py", "from .._docker.client import Engine", "imports _docker"),
        ("_planning/plan.py", "from ...plugin_utils import _action", "imports plugin_utils"),
        ("_head/store.py", f"from {PREFIX}module_utils._docker import reports", "imports _docker"),
        ("_core/model.py", f"from {PREFIX}module_utils._planning.plan import build_plan", "imports _planning"),
        ("_agents/host.py", f"from {PREFIX}plugin_utils._action import login", "imports plugin_utils"),
        ("_agents/host.py", "import docker", "imports docker"),
        ("_docker/images.py", "def load():\n    import docker.errors", "imports docker"),
        ("_ssh/installer.py", "from cryptography import x509", "imports cryptography"),
    ],
)
def test_an_import_in_the_wrong_direction_is_found(tmp_path: Path, file: str, line: str, fault: str) -> None:
    path = tmp_path / "module_utils" / file
    path.parent.mkdir(parents=True)
    path.write_text(line + "\n")
    assert [one for one in faults(tmp_path) if fault in one]


def test_a_circle_is_found(tmp_path: Path) -> None:
    folder = tmp_path / "module_utils" / "_core"
    folder.mkdir(parents=True)
    for here, there in (("first", "second"), ("second", "first")):
        (folder / f"{here}.py").write_text(f"from . import {there}\n")
    assert len(cycles(tmp_path)) == 2
