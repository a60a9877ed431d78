# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reports in files: complete or not at all, with their mode, and never through a link."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from samples import exactly

from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import ComputeError
from ansible_collections.cluster.compute.plugins.plugin_utils._hosts import files
from ansible_collections.cluster.compute.plugins.plugin_utils._hosts.files import location, write


def test_a_file_is_written_with_its_mode_whatever_the_umask_is(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        assert write(str(tmp_path / "a.prom"), "x\n", 0o644, check=False) is True
    finally:
        os.umask(before)
    assert (tmp_path / "a.prom").stat().st_mode & 0o777 == 0o644
    assert write(str(tmp_path / "a.prom"), "x\n", 0o644, check=False) is False


def test_a_link_or_a_pipe_in_the_place_of_the_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("x\n")
    (tmp_path / "link").symlink_to(tmp_path / "kept")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe"):
        assert write(str(tmp_path / name), "x\n", 0o600, check=False) is True
        assert (tmp_path / name).read_text() == "x\n"
        assert not (tmp_path / name).is_symlink()
    assert write(str(tmp_path / "link"), "y\n", 0o600, check=False) is True
    assert (tmp_path / "kept").read_text() == "x\n"


@pytest.mark.parametrize("name", ["null", "stdout"])
def test_no_device_of_the_machine_is_replaced(name: str) -> None:
    message = f"/dev/{name} cannot be written: it is in /dev, the directory of devices; name another file."
    with pytest.raises(ComputeError, match=exactly(message)):
        write(f"/dev/{name}", "x\n", 0o644, check=True)


@pytest.mark.parametrize("is_root", [True, False])
def test_root_follows_no_link_on_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_root: bool) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0 if is_root else 1000)
    (tmp_path / "real").mkdir()
    (tmp_path / "way").symlink_to(tmp_path / "real")
    path = tmp_path / "way" / "a.prom"
    if is_root:
        reason = "a directory in this path is a link, which root does not follow"
        message = f"{path} cannot be written: {reason}; name {tmp_path}/real/a.prom."
        with pytest.raises(ComputeError, match=exactly(message)):
            write(str(path), "x\n", 0o644, check=False)
    else:
        assert write(str(path), "x\n", 0o644, check=False) is True
    assert (tmp_path / "real/a.prom").exists() != is_root


def test_a_relative_path_begins_where_the_command_was_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "way").symlink_to(tmp_path / "real")
    monkeypatch.setenv("PWD", str(tmp_path / "way"))
    assert location("../a.prom") == f"{tmp_path}/a.prom"
    assert location("a.prom") == f"{tmp_path}/real/a.prom"


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.prom"
    write(str(path), "old\n", 0o644, check=False)

    def full(*_args: object, **_options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fchmod", full)
    message = f"{path} cannot be written: No space left on device; name another file."
    with pytest.raises(ComputeError, match=exactly(message)):
        write(str(path), "new\n", 0o644, check=False)
    assert {one.name: one.read_text() for one in tmp_path.iterdir()} == {"a.prom": "old\n"}
