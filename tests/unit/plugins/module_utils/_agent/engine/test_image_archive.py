# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An archive that another agent has made gives no image a name."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._agent.engine.image_archive import (
    proven_ids,
    remove_names,
)
from ansible_collections.cluster.compute.plugins.module_utils._shared.errors import StateError

ENTRY = {"Config": "blobs/sha256/abc", "RepoTags": ["debian:12", "größe:1"], "Layers": ["layer.tar"]}
DESCRIPTOR = {
    "mediaType": "application/vnd.oci.image.manifest.v1+json",
    "digest": "sha256:abc",
    "size": 7,
    "annotations": {"io.containerd.image.name": "docker.io/library/debian:12"},
}
GOOD: dict[str, Any] = {
    "layer.tar": "content",
    "manifest.json": [ENTRY],
    "index.json": {"schemaVersion": 2, "manifests": [DESCRIPTOR]},
    "repositories": {"debian": {"12": "abc"}},
}


def written(path: Path, files: dict[str, Any], mode: str = "w", **fields: Any) -> Path:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for name, content in files.items():
            data = (content if isinstance(content, str) else json.dumps(content)).encode()
            member = tarfile.TarInfo(name)
            member.size = len(data)
            for field, value in fields.items():
                setattr(member, field, value)
            archive.addfile(member, io.BytesIO(data) if member.isreg() else None)
    return path


def contents(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as archive:
        return {member.name: archive.extractfile(member).read() for member in archive}  # type: ignore[union-attr]


@pytest.mark.parametrize("prefix", ["", "./"])
def test_names_are_removed_and_everything_else_stays(tmp_path: Path, prefix: str) -> None:
    path = written(tmp_path / "image.tar", {prefix + name: content for name, content in GOOD.items()})
    size = path.stat().st_size
    remove_names(str(path), "agent1")
    found = {name[len(prefix) :]: content for name, content in contents(path).items()}
    assert json.loads(found["manifest.json"]) == [{**ENTRY, "RepoTags": None}]
    manifest = {key: value for key, value in DESCRIPTOR.items() if key != "annotations"}
    assert json.loads(found["index.json"]) == {"schemaVersion": 2, "manifests": [manifest]}
    assert json.loads(found["repositories"]) == {}
    assert found["layer.tar"] == b"content"
    assert path.stat().st_size == size
    remove_names(str(path), "agent1")


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({}, "the archive holds no image"),
        ({"layer.tar": "content"}, "the archive holds no image"),
        ({"manifest.json": [ENTRY, ENTRY]}, "it holds 2 images in place of one"),
        ({"manifest.json": []}, "it holds 0 images in place of one"),
        ({"manifest.json": "no JSON"}, "cannot be read"),
        ({"manifest.json": [1]}, "cannot be read"),
        ({"manifest.json": "[" * 100000}, "cannot be read"),
        ({"manifest.json": [ENTRY], "index.json": {"manifests": [DESCRIPTOR] * 2}}, "it holds 2 images"),
        ({"manifest.json": [ENTRY], "repositories": ""}, "repositories has an unexpected form"),
        ({"manifest.json": " " * (2 << 20)}, "manifest.json is no plain file"),
    ],
)
def test_anything_but_one_image_is_refused(tmp_path: Path, files: dict[str, Any], reason: str) -> None:
    with pytest.raises(StateError, match=reason):
        remove_names(str(written(tmp_path / "image.tar", files)), "agent1")


def test_a_link_in_place_of_the_manifest_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "image.tar", {"manifest.json": ""}, type=tarfile.SYMTYPE, linkname="other.json")
    with pytest.raises(StateError, match="is no plain file"):
        remove_names(str(path), "agent1")


def test_a_compressed_archive_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="cannot be read"):
        remove_names(str(written(tmp_path / "image.tar", GOOD, "w:gz")), "agent1")


def blob(document: object) -> tuple[str, str, str]:
    """The name, the content and the digest of a document."""
    text = json.dumps(document)
    number = hashlib.sha256(text.encode()).hexdigest()
    return f"blobs/sha256/{number}", text, "sha256:" + number


CONFIG = "sha256:" + "c" * 64
MANIFEST = blob({"config": {"digest": CONFIG}, "layers": []})
INDEX = blob({"manifests": [{"digest": MANIFEST[2]}, {"digest": "sha256:other"}]})
OTHER = blob({"config": {"digest": "sha256:evil"}})


def layout(first: str, *blobs: tuple[str, str, str]) -> dict[str, Any]:
    return {"index.json": {"manifests": [{"digest": first}]}, **{name: text for name, text, _digest in blobs}}


@pytest.mark.parametrize(
    ("digest", "files", "proven"),
    [
        (MANIFEST[2], layout(MANIFEST[2], MANIFEST), {MANIFEST[2], CONFIG}),
        (INDEX[2], layout(MANIFEST[2], MANIFEST, INDEX), {INDEX[2], MANIFEST[2], CONFIG}),
        (INDEX[2], layout(INDEX[2], INDEX), {INDEX[2]}),
        (MANIFEST[2], layout(OTHER[2], MANIFEST, OTHER), set()),
        (INDEX[2], layout(OTHER[2], OTHER, INDEX), set()),
        (INDEX[2], layout(MANIFEST[2], MANIFEST), set()),
        (MANIFEST[2], layout(MANIFEST[2], (MANIFEST[0], OTHER[1], "")), set()),
        (MANIFEST[2], {"manifest.json": [ENTRY]}, set()),
        (MANIFEST[2], {"index.json": {"manifests": [{"digest": MANIFEST[2]}] * 2}, MANIFEST[0]: MANIFEST[1]}, set()),
        ("md5:" + "0" * 32, layout("md5:" + "0" * 32), set()),
    ],
)
def test_an_archive_proves_a_digest_or_not(
    tmp_path: Path, digest: str, files: dict[str, Any], proven: set[str]
) -> None:
    assert proven_ids(str(written(tmp_path / "image.tar", files)), digest) == proven


def test_what_is_no_archive_proves_nothing(tmp_path: Path) -> None:
    (tmp_path / "image.tar").write_bytes(b"x" * 2000)
    assert proven_ids(str(tmp_path / "image.tar"), MANIFEST[2]) == frozenset()


@pytest.mark.parametrize("key", ["repotags", "REPOTAGS", "RepoTag\u017f"])
def test_a_name_below_a_key_in_another_case_is_removed(tmp_path: Path, key: str) -> None:
    """The engine's parser takes such a key for its own."""
    files = {**GOOD, "manifest.json": [{**ENTRY, key: ["debian:12"]}]}
    files["index.json"] = {"manifests": [{**DESCRIPTOR, "Annotations": DESCRIPTOR["annotations"]}]}
    path = written(tmp_path / "image.tar", files)
    remove_names(str(path), "agent1")
    found = contents(path)
    assert b"debian:12" not in found["manifest.json"] + found["index.json"]


@pytest.mark.parametrize("index", [{"manifests": [DESCRIPTOR], "Manifests": [DESCRIPTOR] * 2}, {"x": 1}, [DESCRIPTOR]])
def test_an_index_of_another_form_is_refused(tmp_path: Path, index: Any) -> None:
    path = written(tmp_path / "image.tar", {**GOOD, "index.json": index})
    with pytest.raises(StateError, match=r"^agent1: the archive of the image cannot be read"):
        remove_names(str(path), "agent1")
