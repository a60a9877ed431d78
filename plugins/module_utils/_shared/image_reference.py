# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse references of images: registry, repository, tag and digest.

The grammar is https://github.com/distribution/reference.
"""

from __future__ import annotations

from typing import List, Sequence, Tuple

HUB = "docker.io"
BY_DIGEST = "cluster-compute/by-digest:"


def registry_of(reference: str) -> str:
    first, slash, _rest = reference.partition("/")
    is_host = slash and ("." in first or ":" in first or first == "localhost")
    return first if is_host else HUB


def split(reference: str) -> Tuple[str, str]:
    """The repository of a reference, and the tag or digest in it."""
    name, _at, digest = reference.partition("@")
    head, colon, tag = name.rpartition(":")
    if not colon or "/" in tag:
        head, tag = name, ""
    return head, digest or tag or "latest"


def names_of(reference: str) -> List[str]:
    """The names under which an engine may have an image. A copy has no registry digest: its tag holds the digest instead.

    >>> names_of("a@sha256:0")
    ['a@sha256:0', 'cluster-compute/by-digest:0']
    """
    _repository, at, digest = reference.partition("@sha256:")
    return [reference, BY_DIGEST + digest] if at else [reference]


def copy_name(reference: str) -> str:
    """The name that a copy gets; empty if the reference is an image ID."""
    if reference.startswith("sha256:"):
        return ""
    return names_of(reference)[-1]


def own_digest(reference: str) -> str:
    """The digest that a reference names; empty if it names none.

    >>> own_digest("a:1@sha256:0"), own_digest("a:1")
    ('sha256:0', '')
    """
    return reference.partition("@")[2]


def digest_of(repository: str, digests: Sequence[str]) -> str:
    """The digest of an image in this repository, from the digests that an engine lists for the image."""
    wanted = _familiar(repository)
    found = (text.partition("@") for text in digests)
    return next((digest for name, _at, digest in found if _familiar(name) == wanted), "")


def _familiar(repository: str) -> str:
    for prefix in ("index.docker.io/", HUB + "/", "library/"):
        if repository.startswith(prefix):
            repository = repository[len(prefix) :]
    return repository
