# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which running sessions a pass over the queue repairs."""

from __future__ import annotations

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._head.session_view import sessions_to_repair
from ansible_collections.cluster.compute.plugins.module_utils._shared.codec import Json

DOWN, UP = ({"name": "web", "state": state, "exit_code": 3} for state in ("failed", "ready"))
LOST = {
    "state": "RUNNING",
    "on_failure": "restart",
    "degraded": ["sub1"],
    "request": {"name": "train"},
    "terminate_when_done": False,
    "containers": [{"hostname": "sub1", "state": "exited", "exit_code": 137}],
}


@pytest.mark.parametrize(
    ("changes", "heals"),
    [
        ({}, True),
        ({"on_failure": "keep"}, False),
        ({"on_failure": "terminate"}, False),
        ({"degraded": []}, False),
        ({"state": "TERMINATING"}, False),
        ({"request": None}, False),
        ({"containers": [{"hostname": "sub1", "state": "unknown"}]}, False),
        ({"containers": [{"hostname": "sub1", "state": "missing"}]}, True),
        ({"degraded": [], "containers": [{"state": "running", "hostname": "main1", "apps": [DOWN]}]}, True),
        ({"degraded": [], "containers": [{"state": "running", "hostname": "main1", "apps": [UP]}]}, False),
        ({"command": {"exit_code": 0}, "terminate_when_done": True}, False),
        ({"containers": [{"hostname": "main1", "agent": "a", "state": "exited", "exit_code": 80}]}, False),
    ],
)
def test_a_session_heals_if_it_asks_for_it_and_can(changes: Json, heals: bool) -> None:
    assert bool(sessions_to_repair([{**LOST, **changes}])) is heals
