# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The floors of ``module_utils`` and ``plugin_utils``: a package imports from the floors below it, and each library has one importer."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest

PLUGINS = Path(__file__).resolve().parents[2] / "plugins"
PREFIX = "ansible_collections.cluster.compute.plugins."
KINDS = frozenset(
    {"module_utils", "plugin_utils", "modules", "action", "filter", "inventory", "callback", "doc_fragments"}
)
# A package imports from those with a lower number.
FLOORS = {
    "module_utils/_shared": 1,
    "module_utils/_shared/documents": 2,
    "module_utils/_shared/planning": 3,
    "module_utils/_agent/engine": 3,
    "module_utils/_worker": 3,
    "module_utils/_shared/text": 4,
    "module_utils/_agent": 5,
    "module_utils/_agent/ssh": 5,
    "module_utils/_head": 5,
    "module_utils/_steps": 6,
    "plugin_utils/_settings": 7,
    "plugin_utils/_hosts": 8,
    "plugin_utils/_client": 9,
    "plugin_utils/_variables": 10,
    "plugin_utils/_doctor": 11,
    "plugin_utils/_output": 12,
    "plugin_utils/_session": 13,
}
IMPORTERS = {
    "docker": "module_utils/_agent/engine/client.py",
    "sqlite3": "module_utils/_head/database.py",
    "cryptography": "plugin_utils/_client/keys.py",
}
# The store's decisions are made on reports: the head needs no engine.
FORBIDDEN = {("module_utils/_head", "module_utils/_agent/engine")}


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
    here = file.rpartition("/")[0]
    if here not in FLOORS or not name.startswith(PREFIX):
        return []
    target = name[len(PREFIX) :].replace(".", "/")
    there = next((one for one in (target, *_above(target)) if one in FLOORS), target.partition("/")[0])
    if there not in FLOORS:
        return [] if here.startswith("plugin_utils") else [f"{file} imports {there}, which is above module_utils"]
    if here == there or (FLOORS[there] < FLOORS[here] and (here, there) not in FORBIDDEN):
        return []
    return [f"{file} imports {there}, which is not on a floor below {here}"]


def _above(target: str) -> list[str]:
    return [str(parent) for parent in PurePosixPath(target).parents]


def homeless(plugins: Path) -> list[str]:
    """The files of ``module_utils`` and ``plugin_utils`` in no package with a floor."""
    files = [
        path.relative_to(plugins)
        for kind in ("module_utils", "plugin_utils")
        for path in plugins.glob(f"{kind}/**/*.py")
    ]
    return [str(file) for file in files if str(file.parent) not in FLOORS]


def cycles(plugins: Path) -> list[str]:
    """The modules of ``module_utils`` and ``plugin_utils`` that import one another in a circle."""
    names = {_module(path, plugins): path for path in plugins.glob("*_utils/**/*.py")}
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


def test_each_file_has_a_floor() -> None:
    assert homeless(PLUGINS) == []


def test_no_module_imports_itself_through_others() -> None:
    assert cycles(PLUGINS) == []


@pytest.mark.parametrize(
    ("file", "line", "fault"),
    [
        (
            "_shared/planning/plan.py",
            f"from {PREFIX}module_utils._agent.engine.client import Engine",
            "imports module_utils/_agent",
        ),
        (
            "_shared/planning/plan.py",
            "from ..._agent.engine.client import Engine",
            "imports module_utils/_agent/engine",
        ),
        ("_shared/planning/plan.py", "from ....plugin_utils import _hosts", "imports plugin_utils"),
        (
            "_head/store.py",
            f"from {PREFIX}module_utils._agent.engine import reports",
            "imports module_utils/_agent/engine",
        ),
        (
            "_shared/label.py",
            f"from {PREFIX}module_utils._shared.planning.plan import build_plan",
            "imports module_utils/_shared/planning",
        ),
        ("_agent/host.py", f"from {PREFIX}plugin_utils._hosts.action import login", "imports plugin_utils"),
        ("_agent/host.py", "import docker", "imports docker"),
        ("_agent/engine/images.py", "def load():\n    import docker.errors", "imports docker"),
        ("_agent/ssh/installer.py", "from cryptography import x509", "imports cryptography"),
        (
            "../plugin_utils/_hosts/conductor.py",
            "from .._session.launch import launch",
            "imports plugin_utils/_session",
        ),
        ("../plugin_utils/_client/keys.py", "from .._doctor import run", "imports plugin_utils/_doctor"),
    ],
)
def test_an_import_in_the_wrong_direction_is_found(tmp_path: Path, file: str, line: str, fault: str) -> None:
    path = (tmp_path / "module_utils" / file).resolve()
    path.parent.mkdir(parents=True)
    path.write_text(line + "\n")
    assert [one for one in faults(tmp_path) if fault in one]


def test_a_circle_is_found(tmp_path: Path) -> None:
    folder = tmp_path / "module_utils" / "_shared"
    folder.mkdir(parents=True)
    for here, there in (("first", "second"), ("second", "first")):
        (folder / f"{here}.py").write_text(f"from . import {there}\n")
    assert len(cycles(tmp_path)) == 2
