# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The bytes of a pull, as the engine's events tell them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._docker.images import PullCount, counted


def event(layer: str, status: str, now: int = 0, whole: int = 0) -> dict[str, Any]:
    return {"id": layer, "status": status, "progressDetail": {"current": now, "total": whole} if whole else {}}


def test_layers_are_summed_and_an_ended_one_is_whole() -> None:
    count = PullCount()
    for one in (
        {"status": "Pulling from team/train", "id": "2"},
        event("a", "Downloading", 10, 100),
        event("b", "Downloading", 5, 50),
        event("c", "Already exists"),
        event("a", "Download complete"),
        event("a", "Extracting", 70, 100),
        event("b", "Downloading", 25, 50),
    ):
        count.add(one)
    assert count.text() == "125 150"


@pytest.mark.parametrize("hostile", [{}, {"id": None}, {"status": "Downloading", "progressDetail": None}])
def test_events_without_numbers_count_nothing(hostile: dict[str, Any]) -> None:
    count = PullCount()
    count.add(hostile)
    assert count.text() == "0 0"


def test_the_count_is_in_a_new_file(tmp_path: Path) -> None:
    path = tmp_path / "progress"
    with counted(str(path)) as listen:
        assert listen is not None
        listen(event("a", "Downloading", 10, 100))
        assert path.read_text() == "10 100\n"
