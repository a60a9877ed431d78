# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps that pull, copy and build images."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import os
from typing import Sequence

from .._agents.counted_program import run_program
from .._agents.image_distribution import ALWAYS, MISSING, NEVER, same
from .._core.documents import Json
from .._core.errors import EngineError, InputError
from .._core.waiting import deadline_in
from .._docker import images
from .._docker.image_build import COUNT_TIMEOUT, BuildEngine
from .._docker.image_build import build as build_image
from .._docker.images import ImageEngine
from .step import Agent


def describe(agent: Agent, name: str) -> Json:
    """C(image) describes the image with this name on the agent."""
    return {"image": images.describe(_engine(agent), name)}


def pull(
    agent: Agent,
    name: str,
    policy: str = MISSING,
    image_id: str = "",
    content: str = "",
    digests: Sequence[str] = (),
    deadline: int = 1800,
    progress: str = "",
    username: str | None = None,
    password: str | None = None,
    identity_token: str | None = None,
) -> Json:
    """Pull an image by its policy; with ``image_id``, the agent must have that image. A registry that refuses is C(image.reason)."""
    engine = _engine(agent)
    before = images.describe(engine, name)
    fits = before["present"] and (not image_id or same(before, {"present": True, "id": image_id, "content": content}))
    if policy == NEVER or (policy == MISSING and fits):
        return {"image": before}
    if agent.check:
        return {"changed": True, "image": before}
    login = {"username": username, "password": password, "identity_token": identity_token}
    options = {"name": name, "digests": digests, "progress": progress, **login}
    impatient = ImageEngine(agent.docker_host, images.REGISTRY_TIMEOUT, agent.name)
    reason = images.pull(engine, impatient, options, deadline_in(deadline))
    if reason and policy == ALWAYS:
        raise EngineError(reason, agent.name)
    after = images.describe(engine, name, reason)
    return {"changed": after["id"] != before["id"], "image": after}


def export(agent: Agent, image_id: str, path: str, size: int = 0) -> Json:
    """Write an image of about this size to an archive, which only the owner of its directory can read."""
    exists = os.path.exists(path)
    if not exists and not agent.check:
        images.save(_engine(agent, images.STALL), image_id, path, size)
    return {"changed": not exists, "path": path}


def load(agent: Agent, name: str, path: str, image_id: str, content: str = "") -> Json:
    """Load an archive that must hold the image with this ID, and name it."""
    engine = _engine(agent, images.STALL)
    before = images.describe(engine, name)
    if same(before, {"present": True, "id": image_id, "content": content}):
        return {"changed": False, "image": before}
    options = {"name": name, "path": path, "id": image_id, "content": content}
    return {"changed": True, "image": before if agent.check else images.load(engine, options)}


def build(
    agent: Agent, name: str, path: str, build_arguments: Json | None = None, deadline: int = 7200, progress: str = ""
) -> Json:
    """Build an image from a directory with a Dockerfile, unless an image has this name."""
    engine = BuildEngine(agent.docker_host, agent.timeout, agent.name)
    before = engine.image(name)
    if before is not None:
        return {"id": before["Id"], "message": f"{name} exists."}
    if not os.path.isfile(os.path.join(path, "Dockerfile")):
        raise InputError("path", path, "must be a directory with a file Dockerfile")
    if agent.check:
        return {"changed": True, "id": "", "message": f"{name} would be built from {path}."}
    counter = BuildEngine(agent.docker_host, min(agent.timeout, COUNT_TIMEOUT), agent.name)
    options = {
        "name": name,
        "path": path,
        "build_arguments": build_arguments or {},
        "deadline": deadline,
        "progress": progress,
        "agent": agent.name,
    }
    identity = build_image(engine, counter, options)
    return {"changed": True, "id": identity, "message": f"{name} was built from {path}."}


def fill(agent: Agent, argv: Sequence[str], folder: str, deadline: int = 7200, progress: str = "") -> Json:
    """Run a program that fills a directory, within a deadline. It counts the bytes in C(progress)."""
    if not argv:
        raise InputError("argv", argv, "must name a program")
    if not agent.check:
        run_program({"argv": argv, "folder": folder, "deadline": deadline, "progress": progress, "agent": agent.name})
    return {"changed": True}


def _engine(agent: Agent, least: int = 0) -> ImageEngine:
    return ImageEngine(agent.docker_host, max(agent.timeout, least), agent.name)


STEPS = {"build": build, "describe": describe, "export": export, "fill": fill, "load": load, "pull": pull}
