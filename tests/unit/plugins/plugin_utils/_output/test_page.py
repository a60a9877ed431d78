# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the page shows of a session."""

from __future__ import annotations

from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.container_view import ContainerView
from ansible_collections.cluster.compute.plugins.plugin_utils._output.page import drawing


def container(number: int, agent: str = "a", state: str = "running") -> ContainerView:
    return ContainerView(f"sub{number}" if number else "main1", agent, state)


def test_a_drawing_shows_what_does_not_run_first_if_there_are_many() -> None:
    [row] = drawing([*(container(number) for number in range(100)), container(100, state="exited")])["rows"]
    boxes = [(box["title"], box["kind"]) for box in row["boxes"]]
    assert boxes[:3] == [("sub100: exited", "bad"), ("main1: running", "ok main"), ("sub1: running", "ok")]
    assert (len(boxes), row["more"]) == (32, 69)
    assert drawing([])["rows"] == []
    wide = drawing([container(number, agent=f"node{number}") for number in range(40)])
    assert (len(wide["rows"]), wide["more"]) == (12, 28)
