# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The folder of the store: private, or shared with the users of the engine."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import pytest
from samples import exactly

from ansible_collections.cluster.compute.plugins.module_utils._head import state_folder
from ansible_collections.cluster.compute.plugins.module_utils._head.state_folder import (
    Folder,
    desired,
    engine_group,
    provide_directory,
    state_dir,
)
from ansible_collections.cluster.compute.plugins.module_utils._head.store import Store
from ansible_collections.cluster.compute.plugins.module_utils._shared.constants import STATE_DIR
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import StateError

LOGS = "3614fdf3-0e04-4a4b-9d5c-1f7c0a8e6b11"
GROUP = 4321
NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it gives files to another group")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "state"


def rights(path: Path) -> tuple[int, int]:
    return stat.S_IMODE(path.stat().st_mode), path.stat().st_gid


@pytest.mark.parametrize(
    ("wanted", "expected"), [("/srv/s", "/srv/s"), ("~/s", "/home/a/s"), ("", STATE_DIR), (None, STATE_DIR)]
)
def test_every_user_has_the_same_store(monkeypatch: pytest.MonkeyPatch, wanted: str | None, expected: str) -> None:
    monkeypatch.setenv("HOME", "/home/a")
    assert state_dir(wanted) == expected


@NEEDS_ROOT
def test_provisioning_shares_the_folder_and_the_store(folder: Path) -> None:
    umask = os.umask(0o077)
    try:
        provide_directory(str(folder), desired(str(folder), GROUP))
        Store(str(folder)).close()
    finally:
        os.umask(umask)
    assert rights(folder) == (0o2770, GROUP)
    assert rights(folder / "sessions.db") == (0o660, GROUP)
    assert desired(str(folder), GROUP) == Folder.of(str(folder))


@NEEDS_ROOT
def test_a_private_store_of_an_earlier_release_is_shared_with_all_in_it(folder: Path) -> None:
    Store(str(folder)).close()
    (folder / LOGS).mkdir(mode=0o700)
    (folder / LOGS / "main1.log").touch(mode=0o600)
    (folder / "sessions.db-journal").touch(mode=0o600)
    provide_directory(str(folder), desired(str(folder), GROUP))
    assert rights(folder / LOGS) == (0o2770, GROUP)
    for name in ("sessions.db", "sessions.db-journal", LOGS + "/main1.log"):
        assert rights(folder / name) == (0o660, GROUP)


@NEEDS_ROOT
def test_sharing_follows_no_link(tmp_path: Path, folder: Path) -> None:
    secret = tmp_path / "secret"
    secret.touch(mode=0o600)
    folder.mkdir(mode=0o700)
    (folder / "sessions.db").symlink_to(secret)
    os.link(secret, folder / "sessions.db-journal")
    provide_directory(str(folder), Folder("2770", GROUP))
    with pytest.raises(StateError, match="cannot be opened"):
        Store(str(folder))
    assert rights(secret) == (0o600, 0)


@pytest.mark.parametrize("mode", [0o1777, 0o755])
def test_a_folder_with_other_rights_keeps_them(folder: Path, mode: int) -> None:
    folder.mkdir()
    folder.chmod(mode)
    assert desired(str(folder), GROUP) == Folder("%04o" % mode, -1)


def test_a_folder_with_other_data_stays_private(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    (folder / "notes").touch()
    assert desired(str(folder), GROUP) == Folder("0700", -1)


def test_without_a_group_of_the_engine_the_store_is_private(folder: Path) -> None:
    assert desired(str(folder), None) == Folder("0700", -1)


def test_a_store_with_a_second_name_is_refused(tmp_path: Path, folder: Path) -> None:
    folder.mkdir(mode=0o700)
    (tmp_path / "other").touch()
    os.link(tmp_path / "other", folder / "sessions.db")
    with pytest.raises(StateError, match="is no file, or has a second name"):
        Store(str(folder))


@pytest.mark.parametrize("read_only", [False, True])
def test_a_head_without_a_store_says_what_to_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, read_only: bool
) -> None:
    missing = str(tmp_path / "none")
    monkeypatch.setattr(state_folder, "STATE_DIR", missing)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    message = "This head has no session store (%s): run provision_agents.yml as a user who can become root." % missing
    with pytest.raises(StateError, match=exactly(message)):
        Store(missing, read_only=read_only)
    assert not os.path.exists(missing)


def test_a_private_store_of_root_says_what_to_run(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    folder.mkdir(mode=0o700)
    monkeypatch.setattr(state_folder, "STATE_DIR", str(folder))
    monkeypatch.setattr(os, "geteuid", lambda: folder.stat().st_uid + 1)
    with pytest.raises(StateError, match=r"is private to another user: run provision_agents\.yml"):
        Store(str(folder))


@pytest.mark.parametrize(("mode", "gid", "expected"), [(0o660, GROUP, GROUP), (0o600, GROUP, None), (0o660, 0, None)])
@NEEDS_ROOT
def test_the_group_of_the_engine_is_that_of_its_socket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int, gid: int, expected: int | None
) -> None:
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        path.chmod(mode)
        os.chown(path, -1, gid)
        assert engine_group("unix://%s" % path) == expected
        monkeypatch.setenv("DOCKER_HOST", "unix://%s" % path)
        assert engine_group() == expected
    assert engine_group("tcp://192.0.2.1:2375") is None
    assert engine_group("unix://%s/missing" % tmp_path) is None


@pytest.mark.parametrize("mode", [0o700, 0o2770])
def test_a_folder_of_another_user_keeps_no_store_also_if_it_is_shared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    """That user could exchange the file. Only root shares a folder with others."""
    folder, own, me = tmp_path / "state", os.lstat, os.geteuid()
    folder.mkdir()
    folder.chmod(mode)

    def of_another(path: str) -> os.stat_result:
        found = own(path)
        return os.stat_result([*found[:4], me + 1, *found[5:]]) if path == str(folder) else found

    monkeypatch.setattr(os, "lstat", of_another)
    with pytest.raises(StateError, match=r"is a link or belongs to another user"):
        Store(str(folder))
    assert list(folder.iterdir()) == []
