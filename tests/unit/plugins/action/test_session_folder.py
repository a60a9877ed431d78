# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The folder of a session on the controller: after an end whose controller was killed, and after a refused repair."""

from __future__ import annotations

from pathlib import Path

import pytest
from played import played
from samples import SESSION, plan, request

from ansible_collections.cluster.compute.plugins.action import containers, schedule, session, session_upkeep
from ansible_collections.cluster.compute.plugins.module_utils._head.retention import retire
from ansible_collections.cluster.compute.plugins.module_utils._head.row import Row
from ansible_collections.cluster.compute.plugins.module_utils._head.store import Store
from ansible_collections.cluster.compute.plugins.modules import session as session_module
from ansible_collections.cluster.compute.plugins.plugin_utils import _shared_config as shared_config
from ansible_collections.cluster.compute.plugins.plugin_utils._artifacts import Artifacts
from ansible_collections.cluster.compute.plugins.plugin_utils._kept_requests import KeptRequests
from ansible_collections.cluster.compute.plugins.plugin_utils._lost_files import restore
from ansible_collections.cluster.compute.plugins.plugin_utils._ssh_route import Route

GONE = "1d5f2c9e-7c1b-4a53-8c76-2f6a1c0b9e11"
COMMANDS = {
    "an end": (session.ActionModule, {"state": "terminating", "name": "other"}, {"session": {}, "remove": []}),
    "a pass": (session_upkeep.ActionModule, {"owner": "alice"}, {}),
    "a launch": (
        schedule.ActionModule,
        {"request": request(name="other").to_json(), "wait": 0},
        {"outcome": "pending", "session": {"id": SESSION, "name": "other"}, "reason": "no room", "remove": []},
    ),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("ended", "check", "is_left"), [(["over"], False, False), (["over"], True, True), ([], False, True)]
)
def test_each_command_removes_the_folders_of_ended_sessions(
    command: str, ended: list[str], check: bool, is_left: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They have ended by themselves, or the controller of their end was killed: the store knows them by their IDs."""
    for name, identity in (("train", "over"), ("runs", "live")):
        Artifacts(str(tmp_path), name).identity(identity, create=True)
        Artifacts(str(tmp_path), name).write("ssh_config", b"Host main1\n")
        Artifacts(str(tmp_path), name).write("session.json", b"{}")
    shared_config.update(str(tmp_path))
    kept = KeptRequests(str(tmp_path))
    kept.keep(GONE, request(name="train"), {})
    kind, args, result = COMMANDS[command]
    monkeypatch.setattr(schedule, "load_extra_vars", lambda _loader: {})
    action = played(kind, {**result, "ended_folders": [*ended, GONE] if ended else []}, check=check)
    done = action.act({**args, "agents": [], "artifacts": str(tmp_path)}, {})
    assert not done.get("failed")
    assert sorted(action.asked[0].get("folders", [])) == ([] if check else [GONE, "live", "over"])
    assert (GONE in kept.sessions()) == is_left
    names = (tmp_path / "ssh_config").read_text()
    assert ((tmp_path / "train").exists(), "Host train.main1" in names) == (is_left, is_left)
    assert ((tmp_path / "runs").exists(), "Host runs.main1" in names) == (True, True)


def test_a_folder_of_the_user_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "train").mkdir()
    (tmp_path / "train/data").touch()
    args = {"state": "terminating", "name": "train", "artifacts": str(tmp_path)}
    action = played(session.ActionModule, {"session": {}, "remove": [], "ended_folders": []})
    assert not action.act(args, {}).get("failed")
    assert (action.asked[0].get("folders", []), (tmp_path / "train/data").exists()) == ([], True)


def test_the_store_knows_which_sessions_have_ended(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    store = Store(str(folder))
    with store.transaction(keep=True):
        for name in ("waits", "cancelled", "retired"):
            store.add(Row(name, name, "alice", "default", "PENDING", request=request()), 1.0, "")
        for name in ("cancelled", "retired"):
            store.change(store.need(name), "CANCELLED", 2.0, "")
        retire(store, ["retired"], 3.0)
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
        "folders": ["unknown", "waits", "cancelled", "retired"],
    }
    result = session_module.work({**given, "state": "terminating", "state_dir": str(folder)}, False)
    assert (result["session"], result["ended_folders"]) == ({}, ["cancelled", "retired"])


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


@pytest.mark.parametrize(("held", "patience"), [([], 3), ([{"session": "over"}], 30)])
def test_a_command_does_not_wait_again_for_networks_that_an_earlier_one_has_left(
    held: list[dict[str, str]], patience: int
) -> None:
    agent = {"name": "a", "reachable": True, "group": "default", "containers": held}
    action = played(session.ActionModule, {"session": {}, "remove": ["over"], "ended_folders": []})
    done = action.act({"state": "terminating", "name": "other", "agents": [agent]}, {})
    assert done["network_patience"] == patience
