# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A hostile stream writes nothing outside of its folder."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import ComputeError
from ansible_collections.cluster.compute.plugins.plugin_utils._client.tar_stream import TarReader, pack


def member(name: str, content: bytes = b"", **attributes: object) -> tuple[tarfile.TarInfo, bytes]:
    made = tarfile.TarInfo(name)
    made.size = len(content)
    for attribute, value in attributes.items():
        setattr(made, attribute, value)
    return made, content


def stream(*members: tuple[tarfile.TarInfo, bytes], form: int = tarfile.GNU_FORMAT) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=form) as archive:
        for info, content in members:
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def unpack(folder: Path, content: bytes) -> TarReader:
    folder.mkdir(exist_ok=True)
    return TarReader(io.BytesIO(content), str(folder), "res", "sub1").run()


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "../res", "res/../../x", "other", "res/./../../y", "/".join(["res"] + ["d"] * 300)]
)
def test_a_path_that_was_not_asked_for_ends_the_copy(tmp_path: Path, name: str) -> None:
    with pytest.raises(ComputeError, match="sub1 sends a path that was not asked for"):
        unpack(tmp_path / "in", stream(member(name, b"x")))
    assert list((tmp_path / "in").iterdir()) == []


def test_links_and_devices_are_left_out(tmp_path: Path) -> None:
    done = unpack(
        tmp_path / "in",
        stream(
            member("res", type=tarfile.DIRTYPE),
            member("res/out", type=tarfile.SYMTYPE, linkname="/etc"),
            member("res/hard", type=tarfile.LNKTYPE, linkname="/etc/passwd"),
            member("res/null", type=tarfile.CHRTYPE),
            member("res/file", b"kept"),
        ),
    )
    assert (done.files, done.bytes, done.left_out) == (1, 4, 3)
    assert os.listdir(tmp_path / "in" / "res") == ["file"]


def test_a_symlink_in_the_way_is_replaced_and_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("old")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "res").symlink_to(outside)
    unpack(tmp_path / "in", stream(member("res/file", b"new")))
    assert ((outside / "file").read_text(), (tmp_path / "in/res/file").read_text()) == ("old", "new")
    (tmp_path / "in/res/file").unlink()
    (tmp_path / "in/res/file").symlink_to(outside / "file")
    unpack(tmp_path / "in", stream(member("res/file", b"newer")))
    assert ((outside / "file").read_text(), (tmp_path / "in/res/file").read_text()) == ("old", "newer")


def test_a_target_that_is_a_symlink_is_refused(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "in").symlink_to(tmp_path / "outside")
    with pytest.raises(OSError, match=r"Not a directory|symbolic"):
        TarReader(io.BytesIO(stream(member("res", b"x"))), str(tmp_path / "in"), "res", "sub1").run()
    assert os.listdir(tmp_path / "outside") == []


def test_modes_of_a_container_make_nothing_setuid(tmp_path: Path) -> None:
    unpack(tmp_path / "in", stream(member("res", b"#!", mode=0o6777)))
    assert (tmp_path / "in" / "res").stat().st_mode & 0o7022 == 0


@pytest.mark.parametrize("form", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_long_names_are_kept_where_the_stream_has_them(tmp_path: Path, form: int) -> None:
    name = "res/" + "n" * 90
    unpack(tmp_path / "in", stream(member("res", type=tarfile.DIRTYPE), member(name, b"1"), form=form))
    assert (tmp_path / "in" / name).read_bytes() == b"1"
    if form == tarfile.GNU_FORMAT:
        longer = "res/" + "d" * 150 + "/" + "n" * 200
        unpack(tmp_path / "in", stream(member(longer, b"2")))
        assert (tmp_path / "in" / longer).read_bytes() == b"2"


def test_a_name_that_would_fill_the_memory_is_refused(tmp_path: Path) -> None:
    huge = tarfile.TarInfo("././@LongLink")
    huge.type, huge.size = tarfile.GNUTYPE_LONGNAME, 1 << 33
    with pytest.raises(ComputeError, match="sub1 sends a name of 8589934592 bytes"):
        unpack(tmp_path / "in", huge.tobuf(tarfile.GNU_FORMAT))


@pytest.mark.parametrize("content", [b"x" * 700, stream(member("res", b"y" * 2000))[:1200], b"\1" * 512])
def test_a_stream_that_is_none_or_breaks_off(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(ComputeError, match=r"sub1 sends (no tar stream|a stream that breaks off)"):
        unpack(tmp_path / "in", content)
    assert list((tmp_path / "in").iterdir()) == []


def test_what_is_packed_comes_back(tmp_path: Path) -> None:
    (tmp_path / "res" / "a b").mkdir(parents=True)
    (tmp_path / "res" / "a b" / ("ü" * 80)).write_bytes(b"123")
    buffer = io.BytesIO()
    assert pack(str(tmp_path / "res"), buffer) == (1, 3)
    assert unpack(tmp_path / "in", buffer.getvalue()).files == 1
    assert (tmp_path / "in" / "res" / "a b" / ("ü" * 80)).read_bytes() == b"123"


@pytest.mark.parametrize("seconds", [1 << 80, -(1 << 40)])
def test_a_time_that_no_file_can_have_is_bounded(tmp_path: Path, seconds: int) -> None:
    assert unpack(tmp_path / "in", stream(member("res/x", b"y", mtime=seconds))).files == 1
    assert 0 <= (tmp_path / "in/res/x").stat().st_mtime <= 1 << 32


def test_a_name_with_a_null_byte_ends_the_copy_with_a_message(tmp_path: Path) -> None:
    name = b"res/a\0b"
    header = member("././@LongLink", type=tarfile.GNUTYPE_LONGNAME)[0]
    header.size = len(name)
    block = header.tobuf(tarfile.GNU_FORMAT) + name.ljust(tarfile.BLOCKSIZE, b"\0")
    with pytest.raises(ComputeError, match=r"sub1 sends a path that was not asked for, res/a\\x00b$"):
        unpack(tmp_path / "in", block + stream(member("res/x", b"x")))


@pytest.mark.parametrize("field", ["f_bavail", "f_favail"])
@pytest.mark.parametrize("sent", [member("res/x", b"x"), member("res/x", type=tarfile.DIRTYPE)])
def test_a_copy_leaves_some_of_the_disk_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, field: str, sent: tuple[tarfile.TarInfo, bytes]
) -> None:
    full = {"f_blocks": 1000, "f_frsize": 4096, "f_bavail": 900, "f_files": 1000, "f_favail": 900, field: 49}
    monkeypatch.setattr(os, "statvfs", lambda _path: SimpleNamespace(**full))
    with pytest.raises(ComputeError, match=r"^sub1 sends more than the disk of .*/in can hold$"):
        unpack(tmp_path / "in", stream(sent))
    assert list((tmp_path / "in").iterdir()) == []
