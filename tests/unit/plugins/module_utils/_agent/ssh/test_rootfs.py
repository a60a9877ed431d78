# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.archives import Entry
from ansible_collections.cluster.compute.plugins.module_utils._agent.ssh.rootfs import Tree, split
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import ComputeError

DIRECTORY = 1 << 31


def tree(folders: dict[str, str], mounts: tuple[str, ...] = (), modes: dict[str, int] | None = None) -> Tree:
    """A tree of folders (empty target) and links, as an engine returns it."""

    def stat(path: str) -> dict[str, Any] | None:
        if path not in folders:
            return None
        return {"linkTarget": folders[path], "mode": DIRECTORY | (modes or {}).get(path, 0o755)}

    return Tree(stat, mounts)


@pytest.mark.parametrize(
    ("folders", "path", "real"),
    [
        ({"/home": ""}, "/home/work", "/home/work"),
        ({}, "/home/work", "/home/work"),
        ({"/home": "/data/users", "/data": "", "/data/users": ""}, "/home/work/.ssh", "/data/users/work/.ssh"),
        ({"/home": "/gone/users"}, "/home/work", "/gone/users/work"),
        ({"/a": "/b", "/b": "", "/b/c": "/d", "/d": ""}, "/a/c/e", "/d/e"),
        ({"/etc": ""}, "/", "/"),
    ],
)
def test_a_folder_is_found_where_the_image_really_has_it(folders: dict[str, str], path: str, real: str) -> None:
    assert tree(folders).real(path) == real


def test_only_missing_and_owned_folders_have_entries() -> None:
    entries = [
        Entry("/home/work", None, 0o700, 1000, 1000),
        Entry("/home/work/.profile", b"x"),
        Entry("/etc/a/b", b"y"),
    ]
    placed = tree({"/home": "/users", "/users": "", "/etc": ""}).place(entries)

    assert [(one.path, one.uid) for one in placed] == [
        ("/users/work", 1000),
        ("/users/work/.profile", 0),
        ("/etc/a", 0),
        ("/etc/a/b", 0),
    ]


def test_a_folder_that_exists_keeps_its_permissions_and_changes_its_owner() -> None:
    placed = tree({"/home": "", "/home/work": ""}, modes={"/home/work": 0o750}).place([Entry("/home/work", uid=7)])

    assert [(one.path, one.mode, one.uid) for one in placed] == [("/home/work", 0o750, 7)]


def test_a_home_into_which_its_user_cannot_write_is_opened_for_it() -> None:
    (home,) = tree({"/home": "", "/home/work": ""}, modes={"/home/work": 0o2555}).place([Entry("/home/work", uid=7)])
    assert (home.mode, home.uid) == (0o755, 7)


def test_what_ssh_can_do_without_is_left_out_where_the_image_has_a_file_in_the_place_of_a_folder() -> None:
    folders = {"/home": "", "/home/work": "", "/home/work/.ssh": "/data/keys", "/data": ""}
    entries = [
        Entry("/home/work/.ssh", None, optional=True),
        Entry("/home/work/.ssh/id", b"x", optional=True),
        Entry("/home/work/.ssh/deep/er/id", b"x", optional=True),
        Entry("/home/work/.profile", b"y", optional=True),
    ]

    def stat(path: str) -> dict[str, Any] | None:
        assert not path.startswith("/data/keys/")  # an engine answers 500 for what is below a file
        if path == "/data/keys":
            return {"linkTarget": "", "mode": 0o644}
        return {"linkTarget": folders[path], "mode": DIRECTORY | 0o755} if path in folders else None

    assert [one.path for one in Tree(stat).place(entries)] == ["/home/work/.profile"]
    with pytest.raises(
        ComputeError,
        match=r"^The image has a file at /data/keys, where the session needs a folder for /data/keys/a/b; ",
    ):
        Tree(stat).place([*entries, Entry("/data/keys/a/b", b"z")])


@pytest.mark.parametrize(
    ("mount", "folders"),
    [
        ("/home/work", {}),
        ("/home", {}),
        ("/home/work/", {}),
        ("/users", {"/home": "/users", "/users": ""}),
        ("/alias/work", {"/alias": "/home", "/home": ""}),
    ],
)
def test_nothing_goes_into_a_mount(mount: str, folders: dict[str, str]) -> None:
    wanted = [Entry("/home/work", optional=True), Entry("/home/work/.ssh/key", b"x", optional=True)]

    assert tree(folders, (mount,)).place(wanted) == []


def test_what_must_be_there_is_refused_below_a_mount() -> None:
    with pytest.raises(ComputeError, match="/etc/passwd lies below the mount /etc, which would hide"):
        tree({}, ("/etc",)).place([Entry("/etc/passwd", b"x")])


FILES = [
    Entry("/etc/a", b"1"),
    Entry("/home/work", None),
    Entry("/home/work/b", b"2"),
    Entry("/etc/c", b"3"),
]


def test_a_writable_root_gets_one_archive() -> None:
    assert split(FILES, ()) == [("/", FILES)]


def test_each_writable_folder_gets_an_archive_of_its_own_and_the_first_folder_comes_last() -> None:
    """The last file of the first folder is the mark that all files are installed."""
    etc, home = [FILES[0], FILES[3]], FILES[1:3]
    assert split(FILES, ("/etc", "/home", "/job")) == [("/home", home), ("/etc", etc)]


def test_an_image_whose_links_lead_out_of_the_writable_folders_is_refused() -> None:
    with pytest.raises(ComputeError) as refused:
        split([Entry("/users/work/b", b"2")], ("/etc", "/home"))
    assert refused.value.message == (
        "The image has a link that leads to /users/work/b, which session_read_only_root makes read-only; "
        "choose an image without that link, or set session_read_only_root to false."
    )
