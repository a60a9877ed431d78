# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The packages of an environment are installed by digest: its own Dockerfile with one small package, on the image that it extends."""

from __future__ import annotations

import re
import shutil
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import docker
import images
import pytest
from controller import ROOT
from docker.errors import ImageNotFound
from engine_lab import run_step
from locks import lock

FOLDER = ROOT / "roles/image/files/environments/pytorch"
LAB = "cluster-compute/lab:1.0"
PACKAGE = re.compile(r"^termcolor==.*?(?=^\S)", re.MULTILINE | re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The files of the build."""
    images.environment("lab")
    locked = PACKAGE.search((FOLDER.parent / "tensorflow/requirements.lock").read_text())
    assert locked is not None
    shutil.copy(FOLDER / "Dockerfile", tmp_path)
    shutil.copy("/etc/ssl/certs/ca-certificates.crt", tmp_path / "certificates.pem")
    (tmp_path / "requirements.lock").write_text(locked.group())
    (tmp_path / "requirements.txt").write_text(locked.group().split()[0])
    return tmp_path


@pytest.fixture
def name(engine_host: str) -> Iterator[str]:
    found = f"cluster-compute-test/digests-{uuid.uuid4().hex[:8]}:1"
    yield found
    with suppress(ImageNotFound):
        docker.APIClient(base_url=engine_host, version="auto").remove_image(found, force=True)


def built(engine_host: str, folder: Path, name: str, **arguments: str) -> dict[str, Any]:
    given = {"BASE": LAB, **arguments}
    # A test of a launch that builds this image removes it.
    with lock("environment-lab"):
        return run_step("image.build", name=name, path=str(folder), build_arguments=given, docker_host=engine_host)


def test_a_package_with_its_digest_is_installed(engine_host: str, folder: Path, name: str) -> None:
    assert built(engine_host, folder, name).get("changed") is True


def test_a_package_with_another_content_is_refused(engine_host: str, folder: Path, name: str) -> None:
    lock = folder / "requirements.lock"
    lock.write_text(re.sub(r"sha256:\w+", "sha256:" + "0" * 64, lock.read_text()))
    failed = built(engine_host, folder, name)
    assert failed.get("failed") is True
    assert re.search(
        r"cannot be built: ERROR: termcolor==\S+ at \S+ does not have the digest that the requirements name",
        failed["msg"],
    )
    assert built(engine_host, folder, name, REQUIREMENTS="requirements.txt").get("changed") is True, "by choice"
