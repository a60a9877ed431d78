# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An image is exported, loaded and pulled with a real engine."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import docker
import pytest
from docker.errors import ImageNotFound
from engine_lab import archive, run_module, run_step

NAME = "cluster-compute-test/travels:1"
DIGEST = "cluster-compute-test/travels@sha256:" + "ab" * 32
BY_DIGEST = "cluster-compute/by-digest:" + "ab" * 32
OTHER = "cluster-compute-test/other:1"


@pytest.fixture(scope="module")
def client(engine_host: str) -> docker.APIClient:
    return docker.APIClient(base_url=engine_host, version="auto")


@pytest.fixture
def travels(client: docker.APIClient) -> Iterator[str]:
    """A tiny image's id."""
    repository, _colon, tag = NAME.partition(":")
    client.import_image_from_data(archive({"etc/marker": (b"here", 0o644)}), repository=repository, tag=tag)
    yield client.inspect_image(NAME)["Id"]
    for name in (NAME, BY_DIGEST):
        try:
            client.remove_image(name, force=True)
        except ImageNotFound:
            continue


def saved(engine_host: str, identity: str, folder: Path) -> Path:
    path = folder / "image.tar"
    common: dict[str, Any] = {"docker_host": engine_host, "agent": "me"}
    done = run_step("image.export", image_id=identity, path=str(path), size=1, **common)
    assert not done.get("failed"), done
    assert done["changed"]
    return path


def test_an_exported_image_is_loaded_under_its_name(
    client: docker.APIClient, engine_host: str, travels: str, tmp_path: Path
) -> None:
    path = saved(engine_host, travels, tmp_path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    client.remove_image(NAME, force=True)
    assert run_step("image.describe", name=NAME, docker_host=engine_host)["image"]["present"] is False
    options = {"name": NAME, "agent": "me", "docker_host": engine_host}
    loaded = run_step("image.load", path=str(path), image_id=travels, **options)
    assert loaded["image"]["present"] is True
    assert loaded["image"]["id"] == travels
    assert loaded["changed"] is True
    assert run_step("image.load", path=str(path), image_id=travels, **options)["changed"] is False
    assert run_step("image.describe", **options)["image"]["id"] == travels


def test_an_archive_that_exists_is_kept(engine_host: str, travels: str, tmp_path: Path) -> None:
    path = saved(engine_host, travels, tmp_path)
    again = run_step("image.export", image_id=travels, path=str(path), docker_host=engine_host)
    assert again["changed"] is False


def test_an_archive_of_another_image_is_refused(engine_host: str, travels: str, tmp_path: Path) -> None:
    path = saved(engine_host, travels, tmp_path)
    options = {"name": OTHER, "agent": "me", "docker_host": engine_host}
    loaded = run_step("image.load", path=str(path), image_id="sha256:" + "0" * 64, content="0", **options)
    assert "the archive holds another image than" in loaded["msg"]
    assert run_step("image.describe", **options)["image"]["present"] is False


def test_a_copy_that_does_not_prove_its_digest_is_refused(
    client: docker.APIClient, engine_host: str, travels: str, tmp_path: Path
) -> None:
    path = saved(engine_host, travels, tmp_path)
    client.remove_image(NAME, force=True)
    options = {"name": DIGEST, "agent": "me", "docker_host": engine_host}
    loaded = run_step("image.load", path=str(path), image_id=travels, **options)
    assert loaded["msg"].startswith(f"me: the copy of image {DIGEST} does not prove that it has this digest")
    assert travels not in client.images(quiet=True, all=True)


def test_an_archive_that_names_another_image_takes_no_name(
    client: docker.APIClient, engine_host: str, travels: str, tmp_path: Path
) -> None:
    """The engine of another agent may send an archive that gives its image the name of an image that is here."""
    victim = "cluster-compute-test/victim:1"
    repository, _colon, tag = victim.partition(":")
    client.tag(travels, repository, tag)
    path = tmp_path / "image.tar"
    path.write_bytes(b"".join(client.get_image(victim)))
    assert victim.encode() in path.read_bytes()
    client.import_image_from_data(archive({"etc/own": (b"mine", 0o644)}), repository=repository, tag=tag)
    own = client.inspect_image(victim)["Id"]
    client.remove_image(NAME, force=True)
    options = {"path": str(path), "agent": "me", "docker_host": engine_host}
    try:
        refused = run_step("image.load", name=NAME, image_id="sha256:" + "0" * 64, content="0", **options)
        assert "the archive holds another image than" in refused["msg"]
        assert travels not in client.images(quiet=True, all=True)
        loaded = run_step("image.load", name=NAME, image_id=travels, **options)
        assert loaded["image"]["id"] == travels, loaded
        assert client.inspect_image(victim)["Id"] == own
    finally:
        client.remove_image(victim, force=True)


def test_a_registry_that_does_not_answer(engine_host: str) -> None:
    options = {"name": "127.0.0.1:9/none:1", "agent": "me", "docker_host": engine_host}
    asked = run_module("image", state="present", **options)
    assert asked["image"]["present"] is False
    assert "could not ask 127.0.0.1:9 for image 127.0.0.1:9/none:1" in asked["image"]["reason"]
    assert run_module("image", state="present", pull="always", **options)["failed"] is True
    never = run_module("image", state="present", pull="never", **options)
    assert never["image"]["reason"] == ""
    assert run_module("image", state="present", check=True, **options)["changed"] is True
