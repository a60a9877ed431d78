# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Links in data folders that the policy of the site permits."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from samples import exactly, plan, request

from ansible_collections.cluster.compute.plugins.module_utils._core.errors import InputError, StateError
from ansible_collections.cluster.compute.plugins.module_utils._core.model import Mount, Session
from ansible_collections.cluster.compute.plugins.module_utils._docker.permitted_folders import (
    check_image_paths,
    found_folders,
)


def session(folder: str, *mounts: Mount) -> Session:
    folders = (folder,) if folder else ()
    return replace(plan(request()).session, permitted_folders=folders, mounts=mounts)


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    """What users of a permitted folder can make there: folders and links."""
    made = tmp_path / "pool"
    (made / "alice" / "data").mkdir(parents=True)
    (made / "link").symlink_to("/etc")
    (made / "near").symlink_to("alice")
    return made


def lines(folder: str, *mounts: Mount) -> list[str]:
    with found_folders(session(folder, *mounts), "node1") as found:
        return found.decode().split("\n")


def test_what_is_mounted_below_a_permitted_folder_is_what_was_found(pool: Path) -> None:
    found = os.stat(pool / "alice" / "data")
    mounts = (Mount(f"{pool}/alice/data/", "/my data"), Mount("cache", "/cache", "volume"), Mount("/", "/host"))
    assert lines(str(pool), *mounts) == [f"{found.st_dev}:{found.st_ino} /my data", "", ""]


@pytest.mark.parametrize(("source", "link"), [("link", "link"), ("link/ssl", "link"), ("near/data", "near")])
def test_a_link_below_a_permitted_folder_is_refused(pool: Path, source: str, link: str) -> None:
    expected = exactly(
        f"session_mounts: '{pool}/{source}': must have no symbolic link below {pool}, and {pool}/{link} on node1 is one "
        "(policy of this site)."
    )
    with pytest.raises(InputError, match=expected):
        lines(str(pool), Mount(f"{pool}/{source}", "/data"))


def test_links_of_the_administrator_are_followed(pool: Path, tmp_path: Path) -> None:
    (tmp_path / "srv").symlink_to(pool)
    for folder in (f"{tmp_path}/srv", f"{pool}/near"):
        below = "/alice/data" if folder.endswith("srv") else "/data"
        assert lines(folder, Mount(folder + below, "/data"))[0].endswith(":%d /data" % os.stat(folder + below).st_ino)


def test_without_a_policy_nothing_is_looked_at() -> None:
    assert lines("", Mount("/no/such/link", "/data")) == ["", ""]


def test_a_folder_that_is_gone_is_named(pool: Path) -> None:
    with pytest.raises(InputError, match=f"{pool}/gone: No such file or directory"):
        lines(str(pool), Mount(f"{pool}/gone/x", "/data"))


@pytest.mark.parametrize("link", ["/opt", "/opt/cluster-compute", "/srv", "/srv/data"])
def test_an_image_with_a_link_where_something_is_mounted_is_refused(link: str) -> None:
    asked: list[str] = []

    def path_stat(_identity: str, path: str, _subject: str) -> dict[str, Any]:
        asked.append(path)
        return {"linkTarget": "/x" if path == link else ""}

    engine: Any = SimpleNamespace(path_stat=path_stat, agent="node1")
    with pytest.raises(StateError, match=f"^main1: {link} is a symbolic link in the image or the container"):
        check_image_paths(engine, session("/pool", Mount("/pool/x", "/srv/data")), plan(request()).main, "0123")
    assert asked[-1] == link
