# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The folder of a session that was ended by a controller which was killed before it removed the folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from played import played
from samples import request

from ansible_collections.cluster.compute.plugins.action import session
from ansible_collections.cluster.compute.plugins.module_utils._head.row import Row
from ansible_collections.cluster.compute.plugins.module_utils._head.store import Store
from ansible_collections.cluster.compute.plugins.modules import session as session_module
from ansible_collections.cluster.compute.plugins.plugin_utils._artifacts import Artifacts


@pytest.mark.parametrize(
    ("kept_state", "check", "is_left"),
    [
        ("TERMINATED", False, False),
        ("ERROR", False, False),
        ("TERMINATED", True, True),
        ("RUNNING", False, True),
        ("", False, True),
    ],
)
def test_the_next_end_removes_the_folder_of_an_ended_session(
    kept_state: str, check: bool, is_left: bool, tmp_path: Path
) -> None:
    """The name has no live session: the store knows the session of the folder by its ID."""
    Artifacts(str(tmp_path), "train").identity("ended", create=True)
    args = {"state": "terminating", "name": "train", "artifacts": str(tmp_path)}
    action = played(session.ActionModule, {"session": {}, "remove": [], "kept_state": kept_state}, check=check)
    assert not action.act(args, {}).get("failed")
    assert action.asked[0]["kept"] == "ended"
    assert (tmp_path / "train").exists() == is_left


def test_a_folder_of_the_user_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "train").mkdir()
    (tmp_path / "train/data").touch()
    args = {"state": "terminating", "name": "train", "artifacts": str(tmp_path)}
    action = played(session.ActionModule, {"session": {}, "remove": [], "kept_state": ""})
    assert not action.act(args, {}).get("failed")
    assert (action.asked[0]["kept"], (tmp_path / "train/data").exists()) == ("", True)


@pytest.mark.parametrize(("kept", "state"), [("known", "CANCELLED"), ("unknown", ""), ("", "")])
def test_the_store_knows_the_state_of_the_session_of_a_folder(kept: str, state: str, tmp_path: Path) -> None:
    folder = tmp_path / "store"
    store = Store(str(folder))
    with store.transaction(keep=True):
        row = Row("known", "train", "alice", "default", "PENDING", request=request())
        store.add(row, 1.0, "")
        store.change(row, "CANCELLED", 2.0, "")
    store.close()
    options = dict.fromkeys(("id", "reason", "result", "launch"), "")
    given = {
        **options,
        "name": "train",
        "owner": "alice",
        "reached": [],
        "agents": [],
        "logs": [],
        "holder": {},
        "lease": 60,
    }
    result = session_module.work({**given, "state": "terminating", "kept": kept, "state_dir": str(folder)}, False)
    assert (result["session"], result["kept_state"]) == ({}, state)
