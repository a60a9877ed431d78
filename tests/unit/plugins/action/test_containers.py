# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The action ``containers``: what it keeps on the controller after a step that has failed."""

from __future__ import annotations

from pathlib import Path

import pytest
from played import played
from samples import plan, request

from ansible_collections.cluster.compute.plugins.action import containers


@pytest.mark.parametrize(
    ("state", "code", "kept"),
    [("created", "engine", False), ("started", "state", True), ("started", "conflict", False), ("started", "", True)],
)
def test_keys_stay_with_containers_that_may_have_them(tmp_path: Path, state: str, code: str, kept: bool) -> None:
    """A start that fails leaves containers that run with these keys; the session of another controller has others."""
    made = plan(request(size=2))
    # A step that dies says no code.
    failed = {"failed": True, "msg": "it failed", **({"failure": {"code": code}} if code else {})}
    args = {
        "plan": made.to_json(),
        "state": state,
        "agent": made.main.agent,
        "install_ssh": True,
        "artifacts": str(tmp_path),
    }
    assert played(containers.ActionModule, failed, args=args).act()["failed"]
    assert bool(list(tmp_path.rglob("identity"))) == kept
