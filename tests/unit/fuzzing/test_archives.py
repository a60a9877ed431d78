# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Changed tar streams of containers and archives of images: refused in one message, and nothing outside of the folder is written."""

from __future__ import annotations

import io
import json
import os
import posixpath
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hostile import Choices, assert_one_message, assert_visible, changed, changed_bytes, fuzzed

from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.image_archive import (
    proven_ids,
    remove_names,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import ComputeError, StateError
from ansible_collections.cluster.compute.plugins.plugin_utils._client.copying import _failed
from ansible_collections.cluster.compute.plugins.plugin_utils._client.tar_stream import TarReader

BLOCK = tarfile.BLOCKSIZE
NAMES = (
    "res",
    "res/x",
    "res/./x",
    "res/../x",
    "/etc/x",
    "res/" + "d/" * 60 + "x",
    "res/" + "n" * 300,
    "res/\udcff",
    "res/a\nb",
    "other",
)
TYPES = (b"0", b"5", b"1", b"2", b"3", b"6", b"L", b"K", b"x", b"g", b"S", b"7", b"\0", b"z")
SIZES = (
    b"00000000000\0",
    b"00000000005\0",
    b"77777777777\0",
    b"\x80" + b"\0" * 10 + b"\x05",
    b"\xff" * 12,
    b"\x80" + b"\xff" * 11,
    b"            ",
)
DIGEST = "sha256:" + "0" * 64


def member(name: str, content: bytes = b"", kind: bytes = b"0", link: str = "") -> bytes:
    made = tarfile.TarInfo(name)
    made.size, made.type, made.linkname = len(content), kind, link
    return made.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape") + content + b"\0" * (-len(content) % BLOCK)


STREAM = b"".join((
    member("res", kind=b"5"), member("res/file", b"content"), member("res/link", kind=b"2", link="/etc"), member("res/" + "n" * 120, b"x" * 600),
    member("res/hard", kind=b"1", link="res/file"), member("res/dir", kind=b"5"), member("res/dir/file", b"y"), b"\0" * 1024,
))  # fmt: skip


def checksummed(header: bytes) -> bytes:
    """A header whose checksum is right, without which it is refused before anything else is read."""
    return header[:148] + b"%06o\0 " % tarfile.calc_chksums(header)[0] + header[156:512]


def hostile_stream(choices: Choices) -> bytes:
    """The stream with other headers, whose checksums are right, or with other bytes."""
    blocks = [STREAM[at : at + BLOCK] for at in range(0, len(STREAM), BLOCK)]
    for _change in range(1 + choices.below(3)):
        at, kind = choices.below(len(blocks)), choices.below(6)
        header = blocks[at].ljust(BLOCK, b"\0")
        if kind == 0:
            header = os.fsencode(choices.of(NAMES))[:100].ljust(100, b"\0") + header[100:]
        elif kind == 1:
            header = header[:156] + choices.of(TYPES) + header[157:]
        elif kind == 2:
            header = header[:124] + choices.of(SIZES) + header[136:]
        elif kind == 3:
            header = header[:136] + choices.of(SIZES) + header[148:]
        elif kind == 4:
            blocks[at:at] = blocks[: choices.below(6)]
            continue
        else:
            blocks[at] = changed_bytes(blocks[at], choices)
            continue
        blocks[at] = checksummed(header)
    return b"".join(blocks)


@contextmanager
def folder() -> Iterator[Path]:
    """In memory, if the machine has such a file system: most of the time, a disk would remove folders."""
    made = Path(tempfile.mkdtemp(prefix="cluster-compute-fuzz-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None))
    try:
        yield made
    finally:
        shutil.rmtree(made)


@fuzzed(1200)
def test_a_stream_of_a_container_writes_below_its_folder_or_is_refused(choices: Choices) -> None:
    content = hostile_stream(choices)
    with folder() as base:
        target = base / "sub1"
        target.mkdir()
        try:
            done = TarReader(io.BytesIO(content), str(target), "res", "sub1").run()
        except (ComputeError, OSError) as error:
            problem = _failed("sub1", error).problem
            assert_one_message(problem)
        else:
            assert done.bytes <= len(content)
        assert os.listdir(base) == ["sub1"]
        assert set(os.listdir(target)) <= {"res"}
        for where, folders, files in os.walk(target):
            assert not [name for name in (*folders, *files) if os.path.islink(os.path.join(where, name))]
            assert not [name for name in files if name.startswith(".copy-")]


def image(choices: Choices) -> bytes:
    entry = {"Config": "blobs/sha256/abc", "RepoTags": ["debian:12"], "Layers": ["layer.tar"]}
    descriptor = {
        "digest": DIGEST,
        "size": 7,
        "annotations": {"io.containerd.image.name": "docker.io/library/debian:12"},
    }
    index: Any = {"schemaVersion": 2, "manifests": [descriptor]}
    manifest: Any = [entry]
    which = choices.below(5)
    if which == 0:
        index = changed(index, choices)
    elif which == 1:
        manifest = changed(manifest, choices)
    elif which == 4:
        # The engine's parser of JSON takes a key in any case, and the last of several.
        tags, notes = choices.of(("repotags", "RepoTag\u017f", "REPOTAGS")), choices.of(("Annotations", "ANNOTATIONS"))
        entry[tags], descriptor[notes] = entry["RepoTags"], descriptor["annotations"]
        index = {**index, choices.of(("Manifests", "x")): [descriptor, descriptor]}
    files = {
        "manifest.json": manifest,
        "index.json": index,
        "repositories": {"debian": {"12": "abc"}},
        "layer.tar": "x",
    }
    made = b"".join(member(name, json.dumps(content).encode()) for name, content in files.items())
    made += member("blobs/sha256/" + "0" * 64, b'{"config": {"digest": "sha256:1"}}') + b"\0" * 1024
    return changed_bytes(made, choices) if which == 2 else made


@fuzzed(1500)
def test_the_archive_of_an_image_has_no_name_or_is_refused(choices: Choices) -> None:
    with folder() as base:
        path = base / "image.tar"
        path.write_bytes(image(choices))
        size = path.stat().st_size
        assert all(isinstance(one, str) for one in proven_ids(str(path), DIGEST))
        try:
            remove_names(str(path), "agent1")
        except StateError as error:
            assert_one_message(error.message)
            return
        assert path.stat().st_size == size
        with tarfile.open(path) as archive:
            found = {
                posixpath.normpath("/" + one.name): archive.extractfile(one).read() for one in archive if one.isreg()
            }  # type: ignore[union-attr]
        listed, index = json.loads(found["/manifest.json"]), json.loads(found.get("/index.json", b'{"manifests": []}'))
        assert [value for one in listed for name, value in one.items() if name.casefold() == "repotags" and value] == []
        assert [name for name in index if name.casefold() == "manifests"] == ["manifests"]
        assert [name for one in index["manifests"] for name in one if name.casefold() == "annotations"] == []


def test_the_samples_are_accepted() -> None:
    with folder() as base:
        done = TarReader(io.BytesIO(STREAM), str(base), "res", "sub1").run()
        assert (done.files, done.left_out) == (3, 2)
        path = base / "image.tar"
        path.write_bytes(image(Choices(b"\0\3")))
        remove_names(str(path), "agent1")
    assert_visible({})
