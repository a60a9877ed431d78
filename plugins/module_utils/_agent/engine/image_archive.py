# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The archive of an image on its way between agents: it may hold one image, and give no image a name.

An engine that loads an archive gives its images all names that it contains, and takes these names from other images.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import tarfile
from typing import IO, Any, Callable, Dict, FrozenSet, List

from ..._shared.errors import StateError

# The parser of an engine takes a key in any case, such as ``repotags``.
_TAGS, _NOTES = "repotags", "annotations"
_MANIFEST, _INDEX, _REPOSITORIES = "manifest.json", "index.json", "repositories"
# Of the files that name images: docker's own are smaller by far.
_LONGEST = 1 << 20
_PLAIN = (tarfile.REGTYPE, tarfile.AREGTYPE)


def remove_names(path: str, where: str) -> None:
    """Remove every name from an archive, in place. Raises a StateError if it is no archive of one image."""
    try:
        with tarfile.open(path, "r:") as archive, open(path, "r+b") as file:
            members = [member for member in archive if posixpath.normpath("/" + member.name)[1:] in _WITHOUT_NAMES]
            names = [_rewritten(file, member) for member in members]
    except (tarfile.TarError, OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        message = "%s: the archive of the image cannot be read (%s); check the engine that it comes from."
        raise StateError(message % (where, error), where) from error
    if _MANIFEST not in names:
        raise StateError(f"{where}: the archive holds no image; check the engine that it comes from.", where)


def proven_ids(path: str, digest: str) -> FrozenSet[str]:
    """The IDs that engines give to the image of an archive, if the archive proves that this is the image of a digest; else none.

    An engine that stores images in containerd names an image by its manifest, and any other by its configuration, whose content it
    has checked itself. The chain from the digest to both is in the archive, and each document has the digest of its name.
    """
    try:
        with tarfile.open(path, "r:") as archive:
            (listed,) = _one_image(json.loads(_content(archive, _INDEX))["manifests"])
            manifest = str(listed["digest"])
            if manifest != digest and manifest not in [one["digest"] for one in _blob(archive, digest)["manifests"]]:
                return frozenset()
            content = _blob(archive, manifest)
            if "manifests" in content:
                return frozenset((digest, manifest))
            return frozenset((digest, manifest, str(content["config"]["digest"])))
    except (tarfile.TarError, OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return frozenset()


def _blob(archive: tarfile.TarFile, digest: str) -> Dict[str, Any]:
    """The document of a digest, in an archive of the OCI's layout. Raises ValueError if it has another one."""
    kind, _colon, number = digest.partition(":")
    content = _content(archive, f"blobs/{kind}/{number}")
    if kind != "sha256" or hashlib.sha256(content).hexdigest() != number:
        raise ValueError(f"a document with another digest than {digest}")
    document: Dict[str, Any] = json.loads(content)
    return document


def _content(archive: tarfile.TarFile, name: str) -> bytes:
    member = archive.getmember(name)
    file = archive.extractfile(member) if member.type in _PLAIN and member.size <= _LONGEST else None
    if file is None:
        raise ValueError(f"{name} is no plain file")
    return file.read()


def _rewritten(file: IO[bytes], member: tarfile.TarInfo) -> str:
    """Replace the content of a member without a change of its size, and return the member's name."""
    name = posixpath.normpath("/" + member.name)[1:]
    if member.type not in _PLAIN or member.sparse is not None or member.size > _LONGEST:
        raise ValueError(f"{name} is no plain file")
    file.seek(member.offset_data)
    content = file.read(member.size)
    changed = _WITHOUT_NAMES[name](content)
    if len(changed) > member.size:
        raise ValueError(f"{name} has an unexpected form")
    file.seek(member.offset_data)
    file.write(changed.ljust(member.size))
    return name


def _manifest(content: bytes) -> bytes:
    """The manifest of Docker's own format."""
    images = _one_image(json.loads(content))
    return _packed(
        [{key: None if key.casefold() == _TAGS else value for key, value in image.items()} for image in images]
    )


def _index(content: bytes) -> bytes:
    """The index of the OCI's format, in which annotations name an image."""
    index: Dict[str, Any] = json.loads(content)
    if len({key.casefold() for key in index}) < len(index):
        raise ValueError("it has a key twice")
    index["manifests"] = [
        {key: value for key, value in one.items() if key.casefold() != _NOTES} for one in _one_image(index["manifests"])
    ]
    return _packed(index)


def _one_image(images: List[Dict[str, Any]]) -> List[Dict[str, Any]]:
    if len(images) != 1:
        raise ValueError("it holds %d images in place of one" % len(images))
    return images


def _packed(document: Any) -> bytes:
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()


_WITHOUT_NAMES: Dict[str, Callable[[bytes], bytes]] = {
    _MANIFEST: _manifest,
    _INDEX: _index,
    _REPOSITORIES: lambda _content: b"{}",
}
