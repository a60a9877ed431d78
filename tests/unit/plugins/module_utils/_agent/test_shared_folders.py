# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Marks in data folders: folders that root of a host may not enter, and folders that do not answer."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._agent.shared_folders import (
    find_marks,
    read_only,
    remove_marks,
    unwritable,
    write_marks,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import (
    ComputeError,
    ConflictError,
    InputError,
)

SILENT = "session_mounts: %s: it does not answer on a1; check the file server, and mount the directory there again."


def named(marks: dict[str, Any], agent: str) -> dict[str, Any]:
    return {folder: {**mark, "agent": agent} for folder, mark in marks.items()}


def test_a_mark_is_found_in_the_same_folder_only(tmp_path: Path) -> None:
    folder = str(tmp_path)
    marks, changed = write_marks([folder], "1", "a1")
    assert (marks, changed) == ({folder: {"written": True}}, True)
    find_marks(named(marks, "a1"), "1", "a2", 0)
    with pytest.raises(ConflictError, match="on a2 it is another directory than on a1"):
        find_marks(named(marks, "a1"), "2", "a2", 0)
    assert remove_marks([folder, "/nowhere"], "1") == [folder]
    assert os.listdir(folder) == []


def test_a_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="it must be a directory: Not a directory"):
        write_marks([str(tmp_path / "file")], "1", "a1")


def test_a_folder_that_root_may_not_list_is_recognized_by_its_inode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file server that squashes root lets root of a host look at a folder of mode 700, and not into it."""
    folder, opened = str(tmp_path), os.open

    def refuse(path: str, *arguments: Any, **options: Any) -> int:
        if path == ".":
            raise PermissionError(13, "Permission denied")
        return opened(path, *arguments, **options)

    monkeypatch.setattr(os, "open", refuse)
    marks, changed = write_marks([folder], "1", "a1")
    entry = tmp_path.stat()
    assert marks == {folder: {"written": False, "inode": entry.st_ino, "changed": entry.st_mtime_ns}}
    assert not changed


def test_a_folder_that_the_host_has_mounted_read_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flags = {str(tmp_path): os.ST_RDONLY | os.ST_NOSUID, "/": os.ST_NOSUID}
    monkeypatch.setattr(os, "statvfs", lambda path: os.statvfs_result((*[0] * 8, flags[path], 255)))
    assert read_only([str(tmp_path), "/"], "a1") == [str(tmp_path)]


def test_a_folder_that_does_not_answer_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = str(tmp_path)

    def wait(*_arguments: object, **_options: object) -> None:
        threading.Event().wait()

    for name in ("listdir", "stat", "unlink"):
        monkeypatch.setattr(os, name, wait)
    with pytest.raises(ComputeError) as looked:
        find_marks({folder: {"written": True, "agent": "a0"}}, "1", "a1", 0, seconds=0.1)
    with pytest.raises(ComputeError) as asked:
        unwritable([folder], 1000, 1000, "a1", seconds=0.1)
    assert [caught.value.message for caught in (looked, asked)] == [SILENT % folder] * 2
    assert remove_marks([folder], "1", seconds=0.1) == []
    monkeypatch.setattr(os, "open", wait)
    with pytest.raises(ComputeError) as written:
        write_marks([folder], "1", "a1", seconds=0.1)
    assert written.value.message == SILENT % folder


def test_no_mark_is_written_or_removed_through_a_link_below_a_permitted_folder(tmp_path: Path) -> None:
    """Users who can write below a permitted folder can make a link to a directory of root."""
    permitted, outside = tmp_path / "permitted", tmp_path / "outside"
    permitted.mkdir()
    outside.mkdir()
    (permitted / "link").symlink_to(outside)
    unchanged = outside.stat().st_mtime_ns
    folders, rule = [str(permitted / "link")], "must have no symbolic link below .*permitted/link on a1 is one"
    with pytest.raises(InputError, match=rule):
        write_marks(folders, "1", "a1", permitted=[str(permitted)])
    assert outside.stat().st_mtime_ns == unchanged
    (outside / ".cluster-compute-1").touch()
    assert remove_marks(folders, "1", "a1", permitted=[str(permitted)]) == []
    assert os.listdir(outside) == [".cluster-compute-1"]


def test_a_mark_is_written_below_a_permitted_folder_that_is_itself_a_link(tmp_path: Path) -> None:
    (tmp_path / "real" / "data").mkdir(parents=True)
    (tmp_path / "permitted").symlink_to(tmp_path / "real")
    folder, permitted = str(tmp_path / "permitted" / "data"), [str(tmp_path / "permitted")]
    assert write_marks([folder], "1", "a1", permitted=permitted) == ({folder: {"written": True}}, True)
    assert remove_marks([folder], "1", "a1", permitted=permitted) == [folder]


@pytest.mark.parametrize(
    ("mode", "uid", "gid", "refused"),
    [(0o700, 0, 1, False), (0o500, 0, 1, True), (0o770, 1, 0, False), (0o705, 1, 0, True), (0o707, 1, 1, False)],
)
def test_a_folder_in_which_the_user_cannot_create_files_is_found_by_owner_and_mode(
    mode: int, uid: int, gid: int, refused: bool, tmp_path: Path
) -> None:
    """A user or group of 0 owns the folder; 1 is another one."""
    tmp_path.chmod(mode)
    user, group = os.stat(tmp_path).st_uid + uid, os.stat(tmp_path).st_gid + gid
    assert unwritable([str(tmp_path)], user, group, "a1") == ([str(tmp_path)] if refused else [])
