# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parsing of image references."""

from __future__ import annotations

import doctest

import pytest

from ansible_collections.cluster.compute.plugins.module_utils._shared import image_reference
from ansible_collections.cluster.compute.plugins.module_utils._shared.image_reference import (
    copy_name,
    digest_of,
    registry_of,
    split,
)

HASH = "sha256:" + "a" * 64


@pytest.mark.parametrize(
    ("reference", "registry", "parts"),
    [
        ("busybox", "docker.io", ("busybox", "latest")),
        ("team/train:2", "docker.io", ("team/train", "2")),
        ("localhost/train", "localhost", ("localhost/train", "latest")),
        ("127.0.0.1:5000/train", "127.0.0.1:5000", ("127.0.0.1:5000/train", "latest")),
        ("127.0.0.1:5000/train:2", "127.0.0.1:5000", ("127.0.0.1:5000/train", "2")),
        ("quay.io/a/b@" + HASH, "quay.io", ("quay.io/a/b", HASH)),
        ("quay.io/a/b:1@" + HASH, "quay.io", ("quay.io/a/b", HASH)),
    ],
)
def test_parts(reference: str, registry: str, parts: tuple[str, str]) -> None:
    assert (registry_of(reference), split(reference)) == (registry, parts)


def test_names_of_copies() -> None:
    assert copy_name("a:1") == "a:1"
    assert copy_name("a@" + HASH) == "cluster-compute/by-digest:" + "a" * 64
    assert copy_name(HASH) == ""


def test_digests() -> None:
    assert digest_of("library/a", ["b@sha256:1", "a@sha256:2"]) == "sha256:2"
    assert digest_of("127.0.0.1:5000/a", ["a@sha256:2"]) == ""


def test_examples() -> None:
    assert doctest.testmod(image_reference).failed == 0
