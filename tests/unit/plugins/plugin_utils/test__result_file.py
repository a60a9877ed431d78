# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The results of modules for the command: what is written, and when."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from ansible_collections.cluster.compute.plugins.plugin_utils._result_file import VARIABLE, write_result

RESULT = {"changed": True, "sessions": [], "lines": ["text"], "invocation": {}, "_ansible_verbose": True}


def test_a_result_is_written_without_what_is_for_people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = SimpleNamespace(action="cluster.compute.session", no_log=False)
    monkeypatch.delenv(VARIABLE, raising=False)
    write_result(task, RESULT)
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    write_result(task, RESULT)
    [file] = tmp_path.iterdir()
    assert (file.name, json.loads(file.read_text())) == ("session.json", {"changed": True, "sessions": []})


def test_a_result_that_is_not_for_logs_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    write_result(SimpleNamespace(action="cluster.compute.session", no_log=True), RESULT)
    assert list(tmp_path.iterdir()) == []
