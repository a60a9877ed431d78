# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a measured report says of the containers, beside an engine that is not there."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._agents import report


def entry(name: str, state: str, *gpus: str) -> dict[str, Any]:
    return {"engine_id": name, "state": state, "resources": {"gpus": [{"id": gpu, "shares": 1.0} for gpu in gpus]}}


def test_each_running_container_has_the_use_of_its_own_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = {"millicpus": 100, "memory": 2048}
    monkeypatch.setattr(report, "measure", lambda _engine, running, *_others: dict.fromkeys(running[:2], counted))
    engine: Any = None
    use = [{"id": "GPU-1", "percent": 97}, {"id": "GPU-2", "percent": 0}]
    entries = [entry("a", "running", "GPU-2"), entry("b", "running"), entry("c", "running"), entry("d", "exited")]
    found = {one["engine_id"]: one["measured"] for one in report.measured(engine, entries, use)}
    assert found == {"a": {**counted, "gpus": use[1:]}, "b": {**counted, "gpus": []}, "c": None, "d": None}
