# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which apps a launch waits for."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.apps import Apps
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.report import AppState
from ansible_collections.cluster.compute.plugins.module_utils._steps import apps
from ansible_collections.cluster.compute.plugins.module_utils._steps.step import AgentHandle


@pytest.mark.parametrize(
    ("index", "waits"),
    [
        (b"web 80 / 0a\nlab 81 / 0b\nend\n", ["web", "lab"]),
        (b"lab 81 / 0b\nend\n", ["lab"]),
        (b"end\n", []),
        (b"", ["web", "lab"]),
    ],
)
def test_a_repair_does_not_wait_for_an_app_that_was_removed(
    index: bytes, waits: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """PID 1 starts the apps of its list. One that was removed is never ready, and the repair would be undone."""
    asked: list[str] = []

    def wait(_apps: Apps, names: list[str], _seconds: float) -> list[AppState]:
        asked.extend(names)
        return []

    monkeypatch.setattr(Apps, "listed", lambda _apps: {"Id": "1", "Mounts": []})
    monkeypatch.setattr(Apps, "read", lambda _apps, _path, *_most: index)
    monkeypatch.setattr(Apps, "wait", wait)
    connected: Any = AgentHandle("a1", "unix:///nowhere")
    monkeypatch.setattr(AgentHandle, "connect", lambda *_arguments: None)
    apps.ready(connected, "00000000-0000-4000-8000-000000000000", ["web", "lab"], 5)
    assert asked == waits
