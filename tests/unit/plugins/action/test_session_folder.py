# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The folder of a session on the controller: after an end whose controller was killed, and after a refused repair."""

from __future__ import annotations

from pathlib import Path

import pytest
from played import played
from samples import plan, request

from ansible_collections.cluster.compute.plugins.action import containers, session
from ansible_collections.cluster.compute.plugins.module_utils._head.row import Row
from ansible_collections.cluster.compute.plugins.module_utils._head.store import Store
from ansible_collections.cluster.compute.plugins.modules import session as session_module
from ansible_collections.cluster.compute.plugins.plugin_utils._artifacts import Artifacts
from ansible_collections.cluster.compute.plugins.plugin_utils._lost_files import restore
from ansible_collections.cluster.compute.plugins.plugin_utils._ssh_route import Route


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


@pytest.mark.parametrize("kept", [False, True])
def test_keys_that_were_made_for_a_call_that_fails_are_removed(kept: bool, tmp_path: Path) -> None:
    """They fit no container: the session runs with other keys, whose folder was lost."""
    whole = plan(request(cluster_size=1), "a").to_json()
    folder = Artifacts(str(tmp_path), whole["session"]["name"])
    if kept:
        folder.identity(whole["session"]["id"], create=True)
    args = {"state": "created", "install_ssh": True, "agent": "a", "plan": whole, "artifacts": str(tmp_path)}
    action = played(containers.ActionModule, {"failed": True, "msg": "refused"})
    assert action.act(args, {})["failed"]
    assert Path(folder.folder).exists() == kept


LOST = ("id_container", "known_hosts", "session.json", "ssh_config")


@pytest.mark.parametrize(("lost", "check"), [((), False), (LOST, True), (LOST, False), (("ssh_config",), False)])
def test_files_that_the_controller_lost_are_written_again(lost: tuple[str, ...], check: bool, tmp_path: Path) -> None:
    made = plan(request(cluster_size=2), "aa")
    artifacts = Artifacts(str(tmp_path), made.session.name)
    artifacts.identity(made.session.id, create=True)
    row = {"state": "RUNNING", "created": 1.0, "changed": 2.0}
    given = (made, row, artifacts, "192.0.2.1", Route("192.0.2.1"))
    restore(*given, check=False)
    before = {name: artifacts.read(name) for name in LOST}
    for name in lost:
        (tmp_path / made.session.name / name).unlink()
    result = restore(*given, check=check)
    assert (result.get("changed", False), result.get("restored_files", [])) == (bool(lost), list(lost))
    after = {name: artifacts.read(name) for name in LOST}
    gone = lost if check else ()
    assert [name for name in LOST if after[name] is None] == list(gone)
    assert all(after[name] == before[name] for name in LOST if name not in (*gone, "id_container"))


def test_keys_that_the_controller_lost_are_not_replaced(tmp_path: Path) -> None:
    made = plan(request(cluster_size=2), "aa")
    artifacts = Artifacts(str(tmp_path), made.session.name)
    [warning] = restore(made, {}, artifacts, "192.0.2.1", Route("192.0.2.1"), check=False)["warnings"]
    assert "does not have its keys: copy that folder from the controller that launched the session" in warning
    assert not Path(artifacts.folder).exists()
