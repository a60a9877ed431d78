# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which running sessions a pass over the queue repairs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._head.session_view import sessions_to_repair
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.container_view import ContainerView
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.report import AppState, BatchState
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.view import SessionView

MAIN = ContainerView("main1", "a", "running")
SUB = ContainerView("sub1", "a", "exited", exit_code=137)
DOWN, UP = (replace(MAIN, apps=(AppState("web", state, 3),)) for state in ("failed", "ready"))
LOST = SessionView(
    id="uuid",
    name="train",
    owner="alice",
    state="RUNNING",
    on_failure="restart",
    degraded=("sub1",),
    request={"name": "train"},
    containers=(SUB,),
)


@pytest.mark.parametrize(
    ("changes", "heals"),
    [
        ({}, True),
        ({"on_failure": "keep"}, False),
        ({"on_failure": "terminate"}, False),
        ({"degraded": ()}, False),
        ({"state": "TERMINATING"}, False),
        ({"request": None}, False),
        ({"containers": (replace(SUB, state="unknown"),)}, False),
        ({"containers": (replace(SUB, state="missing"),)}, True),
        ({"degraded": (), "containers": (DOWN,)}, True),
        ({"degraded": (), "containers": (UP,)}, False),
        ({"command": BatchState(0), "terminate_when_done": True}, False),
        ({"containers": (replace(MAIN, state="exited", exit_code=80),)}, False),
    ],
)
def test_a_session_heals_if_it_asks_for_it_and_can(changes: dict[str, Any], heals: bool) -> None:
    assert bool(sessions_to_repair([replace(LOST, **changes)])) is heals
