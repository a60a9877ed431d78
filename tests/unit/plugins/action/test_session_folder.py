# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The folder of a session that was ended by a controller which was killed before it removed the folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from played import played
from samples import plan, request

from ansible_collections.cluster.compute.plugins.action import session
from ansible_collections.cluster.compute.plugins.module_utils._head.store import Row
from ansible_collections.cluster.compute.plugins.plugin_utils._artifacts import Artifacts


@pytest.mark.parametrize(
    ("state", "of", "is_left"),
    [
        ("TERMINATED", "this", False),
        ("ERROR", "this", False),
        ("TERMINATED", "another", True),
        ("TERMINATING", "this", True),
    ],
)
def test_the_next_end_removes_the_folder_of_an_ended_session(
    state: str, of: str, is_left: bool, tmp_path: Path
) -> None:
    made = plan(request())
    row = Row(made.session.id, "train", "alice", "default", state, plan=made).to_json()
    Artifacts(str(tmp_path), "train").identity(made.session.id if of == "this" else "another", create=True)
    args = {"state": "terminating", "name": "train", "artifacts": str(tmp_path)}
    played(session.ActionModule, {"session": row, "remove": []}).act(args, {})
    assert (tmp_path / "train").exists() == is_left
