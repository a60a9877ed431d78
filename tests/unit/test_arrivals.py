# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What runs on the controller reads documents of others through ``_shared/documents/validation.py`` alone."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PLUGINS = Path(__file__).resolve().parents[2] / "plugins"
ON_THE_CONTROLLER = (
    "action",
    "plugin_utils",
    "inventory",
    "callback",
    "filter",
)
# Readers of documents, and documents that others write.
READERS = {
    ("json", "load"),
    ("json", "loads"),
    ("Plan", "from_json"),
    ("AgentReport", "from_json"),
    ("Session", "from_json"),
    ("SessionDocument", "from_json"),
}
# Files and texts that this controller, its user or the same run has written.
OWN = {
    "plugin_utils/_variables/devcontainer.py": "a devcontainer.json of the user",
    "plugin_utils/_client/request_cache.py": "requests of this controller, in files of the user",
    "plugin_utils/_client/last_check.py": "the result of the last check, in a file of the user",
    "plugin_utils/_hosts/notification_sender.py": "standard input from the action",
    "plugin_utils/_client/registry_login.py": "the configuration of the user's Docker client",
    "plugin_utils/_hosts/worker_client.py": "a result, which the action passes on to validation.result, as that of a module",
    "plugin_utils/_hosts/trace.py": "notes of this run",
}


def readers(source: str) -> list[str]:
    """The calls that read such a document, by line."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Attribute)]
    return [
        f"line {call.lineno}: {call.value.id}.{call.attr}"
        for call in calls
        if isinstance(call.value, ast.Name) and (call.value.id, call.attr) in READERS
    ]


def files() -> dict[str, Path]:
    places = [PLUGINS / place for place in ON_THE_CONTROLLER]
    found = [path for place in places for path in ([place] if place.is_file() else sorted(place.rglob("*.py")))]
    return {str(path.relative_to(PLUGINS)): path for path in found}


@pytest.mark.parametrize("name", sorted(files()))
def test_documents_of_others_are_read_in_one_place(name: str) -> None:
    found = readers(files()[name].read_text())
    assert bool(found) == (name in OWN), f"{name} reads a document itself: {found}. Use _shared/documents/validation.py"


def test_each_exception_is_a_file() -> None:
    assert sorted(OWN.keys() - files().keys()) == []


def test_a_reader_is_found() -> None:
    assert readers("def f(text):\n    return json.loads(text)\n") == ["line 2: json.loads"]
    assert readers("plan = list(map(Plan.from_json, texts))") == ["line 1: Plan.from_json"]
