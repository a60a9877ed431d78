# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The folder and the file of the store: whose they are, and who can read them."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from samples import exactly

from ansible_collections.cluster.compute.plugins.module_utils._head.store import Store
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import StateError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "state"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_folder_and_file_are_private(folder: Path, store: Store) -> None:
    assert mode(folder) == 0o700
    assert mode(folder / "sessions.db") == 0o600


def test_a_store_that_was_open_to_others_is_closed_and_its_folder_left(folder: Path) -> None:
    folder.mkdir(mode=0o755)
    (folder / "sessions.db").touch(mode=0o644)
    Store(str(folder)).close()
    assert mode(folder) == 0o755
    assert mode(folder / "sessions.db") == 0o600


@pytest.mark.parametrize("theirs", [0o755, 0o1777, 0o710])
def test_a_folder_of_others_is_refused_and_left(folder: Path, theirs: int) -> None:
    folder.mkdir()
    folder.chmod(theirs)
    message = (
        "The state directory %s exists and is open to other users, and the store must be private: set a directory that does "
        "not exist, or that only you can read (mode 0700)." % folder
    )
    with pytest.raises(StateError, match=exactly(message)):
        Store(str(folder))
    assert (mode(folder), list(folder.iterdir())) == (theirs, [])


def test_a_linked_store_does_not_open_a_folder_of_others(folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o1777)
    (folder / "sessions.db").symlink_to(folder / "elsewhere")
    with pytest.raises(StateError, match="exists and is open to other users"):
        Store(str(folder))


def test_a_private_folder_that_was_there_is_taken(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    (folder / "notes").touch()
    Store(str(folder)).close()
    assert (folder / "sessions.db").exists()


@pytest.mark.parametrize("target", ["elsewhere", "missing"])
def test_a_linked_folder_is_refused(tmp_path: Path, folder: Path, target: str) -> None:
    (tmp_path / "elsewhere").mkdir()
    folder.symlink_to(tmp_path / target)
    message = (
        "The state directory %s is a link or belongs to another user: remove it, or set another directory." % folder
    )
    with pytest.raises(StateError, match=exactly(message)):
        Store(str(folder))
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_linked_file_is_refused(tmp_path: Path, folder: Path) -> None:
    folder.mkdir(mode=0o700)
    (folder / "sessions.db").symlink_to(tmp_path / "elsewhere.db")
    with pytest.raises(StateError, match="cannot be opened"):
        Store(str(folder))
    assert not (tmp_path / "elsewhere.db").exists()


def test_a_file_in_the_place_of_the_folder_is_refused(folder: Path) -> None:
    folder.write_text("mine")
    with pytest.raises(StateError, match="is a link or belongs to another user"):
        Store(str(folder))
    assert folder.read_text() == "mine"


def _opened(folder: Path, read_only: bool) -> None:
    opened = Store(str(folder), read_only=read_only)
    with opened.transaction(keep=False):
        opened.live()


@pytest.mark.parametrize("read_only", [False, True])
def test_a_file_that_is_no_store_is_refused_and_kept(folder: Path, read_only: bool) -> None:
    folder.mkdir(mode=0o700)
    (folder / "sessions.db").write_bytes(b"not a database, but a user's" * 100)
    with pytest.raises(StateError, match="cannot be used: file is not a database"):
        _opened(folder, read_only)
    assert (folder / "sessions.db").read_bytes() == b"not a database, but a user's" * 100
