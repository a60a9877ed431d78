# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The benchmark over three agents goes on beside what an engine keeps of an earlier run."""

from __future__ import annotations

from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[1] / "bench"


def test_a_floor_runs_beside_networks_that_the_engine_keeps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCH))
    from overlay import ThreeAgents

    kept = {"bench-floor"}
    agents = ThreeAgents("reference")

    def shell(_agent: str, script: str) -> str:
        if script.startswith("docker network create "):
            name = script.rsplit(maxsplit=1)[-1]
            assert name not in kept, f"network {name} already exists"
            kept.add(name)
        return "1.5\n"

    monkeypatch.setattr(agents, "_shell", shell)
    assert [agents.floor(12), agents.floor(12)] == [(1.5, 1.5)] * 2
    assert len(kept) == 3
