# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The archive of an image on its way between agents: it may hold one image, and give no image a name.

An engine that loads an archive gives its images all names that it contains, and takes these names from other images.
"""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import json
import posixpath
import tarfile
from typing import IO, Any, Callable, Dict, List

from ansible_collections.cluster.compute.plugins.module_utils._core.errors import StateError

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
    except (tarfile.TarError, OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
        message = "%s: the archive of the image cannot be read (%s); check the engine that it comes from."
        raise StateError(message % (where, error), where) from error
    if _MANIFEST not in names:
        raise StateError("%s: the archive holds no image; check the engine that it comes from." % where, where)


def _rewritten(file: IO[bytes], member: tarfile.TarInfo) -> str:
    """Replace the content of a member without a change of its size, and return the member's name."""
    name = posixpath.normpath("/" + member.name)[1:]
    if member.type not in _PLAIN or member.sparse is not None or member.size > _LONGEST:
        raise ValueError("%s is no plain file" % name)
    file.seek(member.offset_data)
    content = file.read(member.size)
    changed = _WITHOUT_NAMES[name](content)
    if len(changed) > member.size:
        raise ValueError("%s has an unexpected form" % name)
    file.seek(member.offset_data)
    file.write(changed.ljust(member.size))
    return name


def _manifest(content: bytes) -> bytes:
    """The manifest of Docker's own format."""
    images = _one_image(json.loads(content))
    return _packed([{**image, "RepoTags": None} if "RepoTags" in image else image for image in images])


def _index(content: bytes) -> bytes:
    """The index of the OCI's format, in which annotations name an image."""
    index: Dict[str, Any] = json.loads(content)
    _one_image(index["manifests"])
    index["manifests"] = [
        {key: value for key, value in one.items() if key != "annotations"} for one in index["manifests"]
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
