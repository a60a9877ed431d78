# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Logs of sessions that have ended: kept beside the store, with its rights, and never through a link."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._head.kept_logs import keep_logs, kept_logs, surplus_logs
from ansible_collections.cluster.compute.plugins.module_utils._shared.documents.step_documents import ContainerLog
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import StateError

LOG = [{"logs": [{"hostname": "main1", "text": "again"}]}]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "state"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_logs_are_kept_and_read_again(folder: Path) -> None:
    keep_logs(str(folder), "id", [{"logs": [{"hostname": "main1", "text": "hello\nü\n"}]}, {}, {"logs": None}])
    keep_logs(str(folder), "id", [{"logs": [{"hostname": "sub1", "text": ""}]}, *LOG])
    assert mode(folder / "id") == 0o700
    assert mode(folder / "id" / "main1.log") == 0o600
    assert kept_logs(str(folder), "id") == [
        ContainerLog("main1", "ended", "again"),
        ContainerLog("sub1", "ended", ""),
    ]
    assert kept_logs(str(folder), "missing") == []


def test_logs_in_a_shared_folder_are_for_its_group(folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o2770)
    umask = os.umask(0o077)
    try:
        keep_logs(str(folder), "id", LOG)
    finally:
        os.umask(umask)
    assert (mode(folder / "id"), mode(folder / "id/main1.log")) == (0o2770, 0o660)


@pytest.mark.parametrize("hostname", ["../../escape", "/tmp/escape"])
def test_logs_stay_in_their_folder(tmp_path: Path, folder: Path, hostname: str) -> None:
    keep_logs(str(folder), "id", [{"logs": [{"hostname": hostname, "text": "x"}]}])
    assert [path.name for path in tmp_path.rglob("*.log")] == ["escape.log"]
    assert (folder / "id/escape.log").exists()


@pytest.mark.parametrize("link", ["id", "id/main1.log"])
def test_links_are_not_followed(tmp_path: Path, folder: Path, link: str) -> None:
    target = tmp_path / "elsewhere"
    target.mkdir() if link == "id" else target.write_text("precious")
    (folder / link).parent.mkdir(parents=True)
    (folder / link).symlink_to(target)
    with pytest.raises(StateError, match="Not all logs could be kept in"):
        keep_logs(str(folder), "id", LOG)
    with pytest.raises(StateError, match="cannot be read"):
        kept_logs(str(folder), "id")
    assert list(target.iterdir()) == [] if link == "id" else target.read_text() == "precious"


def test_the_private_folder_of_an_end_that_was_killed_keeps_no_other_user_from_a_pass() -> None:
    """The folder stays private until an end gives it the rights of the store."""
    names = ["0" * 8 + "-0000-0000-0000-" + 12 * digit for digit in "01"]
    user = os.geteuid()
    with TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        for name in names:
            keep_logs(folder, name, LOG)
        (Path(folder) / names[0]).chmod(0o000)
        (Path(folder) / names[1]).chmod(0o755)
        os.seteuid(user or 65534)
        try:
            assert surplus_logs(folder, set(), 1) == [names[1]]
        finally:
            os.seteuid(user)
            (Path(folder) / names[0]).chmod(0o700)


def test_a_pipe_in_the_place_of_a_log_does_not_block(folder: Path) -> None:
    (folder / "id").mkdir(parents=True)
    os.mkfifo(folder / "id/main1.log")
    with pytest.raises(StateError, match="Not all logs could be kept in"):
        keep_logs(str(folder), "id", LOG)
