# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps that pull, copy, build and commit images."""

from __future__ import annotations

import os
from typing import Optional, Sequence

from .._agent.counted_program import run_program
from .._agent.engine import commit as commits
from .._agent.engine import images
from .._agent.engine.counting import run_counted
from .._agent.engine.image_build import Build, BuildEngine, build_image
from .._agent.engine.images import ImageArchive, ImageEngine, Login, WantedPull
from .._shared.codec import Json
from .._shared.documents.image import ALWAYS, MISSING, NEVER
from .._shared.documents.step_documents import BuiltImage, Change, ChangedImage, CommitSpec, MeasuredImage
from .._shared.errors import EngineError, InputError
from .._shared.units import show_bytes
from .._shared.waiting import deadline_in
from .step import AgentHandle


def describe(agent: AgentHandle, name: str) -> ChangedImage:
    """C(image) describes the image with this name on the agent."""
    return ChangedImage(image=images.describe_image(_engine(agent), name))


def pull(
    agent: AgentHandle,
    name: str,
    policy: str = MISSING,
    image_id: str = "",
    content: str = "",
    digests: Sequence[str] = (),
    deadline: int = 1800,
    progress: str = "",
    username: Optional[str] = None,
    password: Optional[str] = None,
    identity_token: Optional[str] = None,
) -> ChangedImage:
    """Pull an image by its policy; with ``image_id``, the agent must have that image. A registry that refuses is C(image.reason)."""
    engine = _engine(agent)
    before = images.describe_image(engine, name)
    fits = before.present and (not image_id or before.is_same(image_id, content))
    if policy == NEVER or (policy == MISSING and fits):
        return ChangedImage(image=before)
    if agent.check:
        return ChangedImage(True, before)
    login = Login(username or "", password or "", identity_token or "")
    reason = images.pull_image(engine, WantedPull(name, login, digests, progress), deadline_in(deadline))
    if reason and policy == ALWAYS:
        raise EngineError(reason, agent.name)
    after = images.describe_image(engine, name, reason)
    return ChangedImage(after.id != before.id, after)


def ask(
    agent: AgentHandle,
    name: str,
    username: Optional[str] = None,
    password: Optional[str] = None,
    identity_token: Optional[str] = None,
) -> ChangedImage:
    """Ask the registry for an image, without a pull: C(image.reason) is why it refuses."""
    engine, login = _engine(agent), Login(username or "", password or "", identity_token or "")
    return ChangedImage(image=images.describe_image(engine, name, images.image_refusal(engine, name, login)))


def export(agent: AgentHandle, image_id: str, path: str, size: int = 0) -> Change:
    """Write an image of about this size to an archive, which only the owner of its directory can read."""
    exists = os.path.exists(path)
    if not exists and not agent.check:
        images.save(_engine(agent, images.STALL), image_id, path, size)
    return Change(not exists)


def load(agent: AgentHandle, name: str, path: str, image_id: str, content: str = "", owner: str = "") -> ChangedImage:
    """Load an archive that must hold the image with this ID, and name it.

    With ``owner``, the name must not be that of another's image, and the owner's images without a name are removed.
    """
    engine = _engine(agent, images.STALL)
    before = images.describe_image(engine, name)
    if before.is_same(image_id, content):
        return ChangedImage(image=before)
    if owner:
        commits.check_image_name(_commit_engine(agent), name, owner)
    after = before if agent.check else images.load_image(engine, ImageArchive(name, path, image_id, content))
    if owner and not agent.check:
        commits.sweep(_commit_engine(agent), owner)
    return ChangedImage(True, after)


def build(
    agent: AgentHandle,
    name: str,
    path: str,
    build_arguments: Optional[Json] = None,
    deadline: int = 7200,
    progress: str = "",
) -> BuiltImage:
    """Build an image from a directory with a Dockerfile, unless an image has this name."""
    engine = agent.connect(BuildEngine)
    before = engine.image(name)
    if before is not None:
        return BuiltImage(id=before["Id"], message=f"{name} exists.")
    if not os.path.isfile(os.path.join(path, "Dockerfile")):
        raise InputError("path", path, "must be a directory with a file Dockerfile")
    if agent.check:
        return BuiltImage(True, "", f"{name} would be built from {path}.")
    identity = build_image(engine, Build(name, path, build_arguments or {}, deadline), progress)
    return BuiltImage(True, identity, f"{name} was built from {path}.")


def check_name(agent: AgentHandle, name: str, owner: str) -> Change:
    """Refuse the name of an image that the agent has, unless it was made of a container of this owner's session."""
    commits.check_image_name(_commit_engine(agent), name, owner)
    return Change()


def measure(agent: AgentHandle, wanted: CommitSpec) -> MeasuredImage:
    """C(size) and C(message) say how large an image of a container can become. Refused if there is not enough space."""
    found = commits.find_committed(_commit_engine(agent), wanted)
    base = ", ".join((found.base.get("RepoTags") or [found.base["Id"][:19]])[:1])
    below = "one layer" if found.squash else f"on top of {base}"
    message = f"Image {wanted.image} of {wanted.container}: up to {show_bytes(found.size)}, {below}"
    return MeasuredImage(found.size, message)


def commit(agent: AgentHandle, wanted: CommitSpec, deadline: int = 3600, progress: str = "") -> ChangedImage:
    """Make an image of a container of a session."""
    engine, written = _commit_engine(agent), commits.Written()
    origin = commits.find_committed(engine, wanted)
    made = run_counted(
        lambda: commits.make(engine, wanted, origin, written), lambda: written.amount, progress, deadline_in(deadline)
    )
    if not made:
        message = "%s: image %s was not made within %d s; raise session_commit_timeout."
        raise EngineError(message % (agent.name, wanted.image, deadline), agent.name)
    return ChangedImage(True, images.describe_image(engine, wanted.image))


def fill(agent: AgentHandle, argv: Sequence[str], folder: str, deadline: int = 7200, progress: str = "") -> Change:
    """Run a program that fills a directory, within a deadline. It counts the bytes in C(progress)."""
    if not argv:
        raise InputError("argv", argv, "must name a program")
    if not agent.check:
        run_program(agent.name, argv, folder, deadline, progress)
    return Change(changed=True)


def _engine(agent: AgentHandle, least: int = 0) -> ImageEngine:
    return agent.connect(ImageEngine, least)


def _commit_engine(agent: AgentHandle) -> commits.CommitEngine:
    return agent.connect(commits.CommitEngine, images.STALL)
