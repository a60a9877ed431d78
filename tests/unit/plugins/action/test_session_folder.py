# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The folder of a session on the controller: after an end whose controller was killed, and after a refused repair."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest
from conducted import changes_of, conducted, options_of
from played import played
from samples import SESSION, plan, request

from ansible_collections.cluster.compute.plugins.action import containers
from ansible_collections.cluster.compute.plugins.module_utils._head.maintenance import retire
from ansible_collections.cluster.compute.plugins.module_utils._head.session_record import SessionRecord
from ansible_collections.cluster.compute.plugins.module_utils._head.store import Store
from ansible_collections.cluster.compute.plugins.module_utils._shared.codec import Json
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.plan import Plan
from ansible_collections.cluster.compute.plugins.module_utils._steps import session
from ansible_collections.cluster.compute.plugins.module_utils._steps.step import Head
from ansible_collections.cluster.compute.plugins.plugin_utils._client import shared_config
from ansible_collections.cluster.compute.plugins.plugin_utils._client.request_cache import KeptRequests
from ansible_collections.cluster.compute.plugins.plugin_utils._client.session_dir import Artifacts
from ansible_collections.cluster.compute.plugins.plugin_utils._hosts.conductor import Play
from ansible_collections.cluster.compute.plugins.plugin_utils._session import place as placing
from ansible_collections.cluster.compute.plugins.plugin_utils._session import queue
from ansible_collections.cluster.compute.plugins.plugin_utils._session.launch_spec import LaunchSpec
from ansible_collections.cluster.compute.plugins.plugin_utils._session.place import place_session
from ansible_collections.cluster.compute.plugins.plugin_utils._session.record import keep_result
from ansible_collections.cluster.compute.plugins.plugin_utils._session.reports import Exclusions, Reports
from ansible_collections.cluster.compute.plugins.plugin_utils._session.start import restore_files
from ansible_collections.cluster.compute.plugins.plugin_utils._session.terminate import terminate
from ansible_collections.cluster.compute.plugins.plugin_utils._settings.settings import Settings

GONE = "1d5f2c9e-7c1b-4a53-8c76-2f6a1c0b9e11"
ROW = {"id": SESSION, "name": "other", "state": "PENDING"}
SETTINGS = Settings(keep_days=1, keep_logs=1 << 30, launch_timeout=60)


def an_end(play: Play) -> None:
    terminate(play, "other")


def a_pass(play: Play) -> None:
    queue._Pass(play, SETTINGS, follows=True)._keep_order(Reports([]))


def a_launch(play: Play) -> None:
    place_session(play, LaunchSpec(request(name="other"), SETTINGS), Reports([]), Exclusions())


COMMANDS: dict[str, tuple[Callable[[Play], None], str, Json]] = {
    "an end": (an_end, "session.record", {"changed": False, "session": {}, "remove": [], "waiting": 0}),
    "a pass": (a_pass, "queue.maintain", {}),
    "a launch": (a_launch, "session.place", {"outcome": "pending", "session": ROW, "reason": "no room", "remove": []}),
}
REPORT: Json = {"agent": {"name": "a", "reachable": True}}


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
    act, module, result = COMMANDS[command]
    monkeypatch.setattr(placing, "load_extra_vars", lambda _loader: {})
    answer = {**result, "ended_folders": [*ended, GONE] if ended else []}
    play = conducted({module: answer, "report.collect": REPORT}, check=check, session_artifacts=str(tmp_path))
    act(play)
    options = options_of(play, module)[0]
    assert sorted(options.get("change", options).get("folders", [])) == ([] if check else [GONE, "live", "over"])
    assert (GONE in kept.sessions()) == is_left
    names = (tmp_path / "ssh_config").read_text()
    assert ((tmp_path / "train").exists(), "Host train.main1" in names) == (is_left, is_left)
    assert ((tmp_path / "runs").exists(), "Host runs.main1" in names) == (True, True)


def test_a_folder_of_the_user_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "train").mkdir()
    (tmp_path / "train/data").touch()
    answer = {"changed": False, "session": {}, "remove": [], "waiting": 0, "ended_folders": []}
    play = conducted({"session.record": answer, "report.collect": REPORT}, session_artifacts=str(tmp_path))
    terminate(play, "train")
    [options] = changes_of(play)
    assert (options.get("folders", []), (tmp_path / "train/data").exists()) == ([], True)


def test_the_store_knows_which_sessions_have_ended(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    _unknown, waits, cancelled, retired = known = [str(uuid4()) for _number in range(4)]
    store = Store(str(folder))
    with store.transaction(keep=True):
        for name, identity in (("waits", waits), ("cancelled", cancelled), ("retired", retired)):
            store.add(SessionRecord(identity, name, "alice", "default", "PENDING", request=request(name=name)), 1.0, "")
        for identity in (cancelled, retired):
            store.change(store.need(identity), "CANCELLED", 2.0, "")
        retire(store, [retired], 3.0)
    store.close()
    change = {"name": "train", "owner": "alice", "holder": {}, "folders": known}
    result = session.record(Head(str(folder)), "terminating", change)
    assert (result["session"], result["ended_folders"]) == ({}, [cancelled, retired])


@pytest.mark.parametrize("kept", [False, True])
def test_keys_that_were_made_for_a_call_that_fails_are_removed(kept: bool, tmp_path: Path) -> None:
    """They fit no container: the session runs with other keys, whose folder was lost."""
    whole = plan(request(cluster_size=1), "a").to_json()
    folder = Artifacts(str(tmp_path), whole["session"]["name"])
    if kept:
        folder.identity(whole["session"]["id"], create=True)
    args = {"state": "created", "install_ssh": True, "agent": "a", "plan": whole, "artifacts": str(tmp_path)}
    action = played(containers.ActionModule, {"failed": True, "msg": "refused"}, args=args)
    assert action.act()["failed"]
    assert Path(folder.folder).exists() == kept


def restored(made: Plan, folder: Path, *, check: bool = False) -> tuple[list[str], list[str]]:
    """The names of the files that are written again, and the warnings."""
    play = conducted({}, check=check, session_artifacts=str(folder))
    row = {"state": "RUNNING", "created": 1.0, "changed": 2.0}
    return restore_files(play, made, row), play.warnings


LOST = ("id_container", "known_hosts", "session.json", "ssh_config")


@pytest.mark.parametrize(("lost", "check"), [((), False), (LOST, True), (LOST, False), (("ssh_config",), False)])
def test_files_that_the_controller_lost_are_written_again(lost: tuple[str, ...], check: bool, tmp_path: Path) -> None:
    made = plan(request(cluster_size=2), "aa")
    artifacts = Artifacts(str(tmp_path), made.session.name)
    artifacts.identity(made.session.id, create=True)
    restored(made, tmp_path)
    before = {name: artifacts.read(name) for name in LOST}
    for name in lost:
        (tmp_path / made.session.name / name).unlink()
    assert restored(made, tmp_path, check=check) == (list(lost), [])
    after = {name: artifacts.read(name) for name in LOST}
    gone = lost if check else ()
    assert [name for name in LOST if after[name] is None] == list(gone)
    assert all(after[name] == before[name] for name in LOST if name not in (*gone, "id_container"))


@pytest.mark.parametrize("content", ["", "{", "{}", "[" * 100_000])
def test_a_launch_writes_a_damaged_document_of_a_running_session_again(content: str, tmp_path: Path) -> None:
    """A launch with a next command first empties the result of the former one there."""
    made = plan(request(cluster_size=2), "aa")
    artifacts = Artifacts(str(tmp_path), made.session.name)
    artifacts.identity(made.session.id, create=True)
    restored(made, tmp_path)
    before = artifacts.read("session.json")
    (tmp_path / made.session.name / "session.json").write_text(content)
    keep_result(artifacts, "", "")
    assert restored(made, tmp_path, check=True) == restored(made, tmp_path) == (["session.json"], [])
    assert artifacts.read("session.json") == before
    assert restored(made, tmp_path) == ([], [])


def test_keys_that_the_controller_lost_are_not_replaced(tmp_path: Path) -> None:
    made = plan(request(cluster_size=2), "aa")
    artifacts = Artifacts(str(tmp_path), made.session.name)
    _files, [warning] = restored(made, tmp_path)
    assert "does not have its keys: copy that directory from the controller that launched the session" in warning
    assert not Path(artifacts.folder).exists()
