# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An image is built from a Dockerfile with a real engine."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import docker
import pytest
from docker.errors import ImageNotFound
from engine_lab import IMAGE, make_image, run_step

from ansible_collections.cluster.compute.plugins.module_utils._shared.waiting import deadline_in, wait_until

AGENT = "agent1"
LABEL = f"cluster-compute-test={uuid.uuid4().hex}"


@pytest.fixture(scope="module")
def client(engine_host: str) -> Iterator[docker.APIClient]:
    made = docker.APIClient(base_url=engine_host, version="auto")
    make_image(made)
    yield made
    # The engine keeps the steps before the one that failed, as for `docker build`.
    for step in made.images(filters={"label": LABEL, "dangling": True}):
        made.remove_image(step["Id"])


@pytest.fixture
def name(client: docker.APIClient) -> Iterator[str]:
    found = f"cluster-compute-test/built-{uuid.uuid4().hex[:8]}:1"
    yield found
    with suppress(ImageNotFound):
        client.remove_image(found, force=True)


def built(
    engine_host: str, folder: Path, name: str, *steps: str, check: bool = False, **options: Any
) -> dict[str, Any]:
    """The name is an argument of the build, so that no step is that of another test."""
    text = "\n".join(["ARG BASE", "FROM $BASE", f"LABEL {LABEL}", "USER 0", "ARG MARK", "ARG WORD", *steps]) + "\n"
    (folder / "Dockerfile").write_text(text)
    arguments = {"BASE": IMAGE, "MARK": name, "WORD": 7}
    given = {
        "name": name,
        "path": str(folder),
        "build_arguments": arguments,
        "agent": AGENT,
        "docker_host": engine_host,
    }
    return run_step("image.build", check=check, **{**given, **options})


def containers(client: docker.APIClient, mark: str) -> list[str]:
    """The containers of a build, whose argument is in their commands."""
    return [item["Id"] for item in client.containers(all=True) if mark in item["Command"]]


def test_an_image_is_built_once(client: docker.APIClient, engine_host: str, name: str, tmp_path: Path) -> None:
    steps = ("COPY file /file", "RUN echo $MARK $WORD > /word", 'CMD ["cat", "/word"]')
    (tmp_path / "file").write_text("here")
    planned = built(engine_host, tmp_path, name, *steps, check=True)
    assert (planned["changed"], planned["id"]) == (True, "")
    assert planned["message"] == f"{name} would be built from {tmp_path}."
    assert not client.images(name)
    first = built(engine_host, tmp_path, name, *steps)
    assert first["changed"] is True, first
    assert first["id"] == client.inspect_image(name)["Id"]
    again = built(engine_host, tmp_path, name, *steps)
    assert (again["changed"], again["id"]) == (False, first["id"])


def test_a_failure_names_its_cause_and_leaves_no_container(
    client: docker.APIClient, engine_host: str, name: str, tmp_path: Path
) -> None:
    mark = uuid.uuid4().hex
    done = built(engine_host, tmp_path, name, f"RUN echo {mark}; echo 'E: no package x'; echo cleaning; exit 100")
    assert done["msg"] == f"{AGENT}: {name} cannot be built: E: no package x (exit code 100)."
    assert containers(client, mark) == []
    done = built(engine_host, tmp_path, name, "COPY absent /absent")
    assert done["msg"].startswith(f"{AGENT}: {name} cannot be built: COPY failed: ")
    done = built(engine_host, tmp_path, name, path=str(tmp_path / "elsewhere"))
    assert "must be a directory with a file Dockerfile" in done["msg"]


def test_a_build_that_is_late_is_ended(client: docker.APIClient, engine_host: str, name: str, tmp_path: Path) -> None:
    mark = uuid.uuid4().hex
    done = built(engine_host, tmp_path, name, f"RUN echo {mark}; sleep 600", deadline=5)
    reason = "it has not ended within 5 s; raise image_build_timeout, or check the network of the agent"
    assert done["msg"] == f"{AGENT}: {name} cannot be built: {reason}."
    assert wait_until(lambda: containers(client, mark) == [], deadline_in(60))
