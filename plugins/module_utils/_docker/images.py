# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An agent's images: pulled from a registry, or written to and read from an archive, and told from others of the same name."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import os
import re
import time
from typing import Any, Dict

from ansible_collections.cluster.compute.plugins.module_utils._core.errors import ComputeError, EngineError, StateError
from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json, digest
from ansible_collections.cluster.compute.plugins.module_utils._docker.client import Engine, UnreachableError
from ansible_collections.cluster.compute.plugins.module_utils._docker.error_text import clean
from ansible_collections.cluster.compute.plugins.module_utils._docker.image_reference import (
    copy_name,
    digest_of,
    registry_of,
    split,
)
from ansible_collections.cluster.compute.plugins.module_utils._docker.reports import architecture, image_entry

# A registry that has not told an image's digest within this does not answer.
REGISTRY_TIMEOUT = 10
# An engine may be busy with a layer of many gigabytes, and say nothing meanwhile.
STALL = 600
CHUNK = 1 << 20
LOADED = re.compile(r"Loaded image ID: (sha256:[0-9a-f]{64})")


class ImageEngine(Engine):
    """The requests that concern images."""

    def resolve(self, reference: str, auth: Dict[str, str] | None) -> str:
        """The digest that the registry has for a reference now."""
        with self._asking("ask %s for image %s" % (registry_of(reference), reference)) as client:
            found = client.inspect_distribution(reference, auth_config=auth)
            return str((found.get("Descriptor") or {}).get("digest") or "")

    def pull(self, repository: str, tag: str, auth: Dict[str, str] | None, deadline: float) -> None:
        what = "pull image %s%s%s" % (repository, "@" if ":" in tag else ":", tag)
        with self._asking(what) as client:
            header = self._sdk.auth.encode_header(auth) if auth else None
            header = header or self._sdk.auth.get_config_header(client, registry_of(repository))
            answer = client._post(
                client._url("/images/create"),
                params={"fromImage": repository, "tag": tag},
                headers={"X-Registry-Auth": header} if header else {},
                stream=True,
                timeout=STALL,
            )
            client._raise_for_status(answer)
            self._follow(client._stream_helper(answer, decode=True), what, deadline)

    def load(self, archive: Any) -> str:
        """The id of what an archive of one image held."""
        with self._asking("load an image") as client:
            said = self._follow(client.load_image(archive), "load an image", time.monotonic() + STALL)
        found = LOADED.search(said)
        return found.group(1) if found else ""

    def save(self, identity: str, archive: Any) -> None:
        with self._asking("save image %s" % identity[:19]) as client:
            for chunk in client.get_image(identity, CHUNK):
                archive.write(chunk)

    def tag(self, identity: str, name: str) -> None:
        repository, tag = split(name)
        with self._asking("name image %s %s" % (identity[:19], name)) as client:
            client.tag(identity, repository, tag, force=True)

    def _follow(self, events: Any, what: str, deadline: float) -> str:
        """What the engine says of its progress, to the end."""
        said = []
        for event in events:
            said.append(str(event.get("stream") or ""))
            if event.get("error"):
                reason = clean(str(event["error"])).rstrip(".")
                raise EngineError("%s could not %s: %s." % (self._speaker(""), what, reason), self.agent)
            if time.monotonic() > deadline:
                message = "%s did not %s in time; raise session_pull_timeout, or look at its network."
                raise EngineError(message % (self._speaker(""), what), self.agent)
        return "".join(said)


def describe(engine: Engine, name: str, reason: str = "") -> Json:
    """An agent's image of this name, or that it has none, and what else a copy must know of the agent."""
    image = engine.image(name) if name else None
    found = image or {}
    return {
        **image_entry(name, image),
        "agent": engine.agent,
        "content": content_of(found) if found else "",
        "digests": found.get("RepoDigests") or [],
        "size": int(found.get("Size") or 0),
        "host": architecture(os.uname().machine),
        "free": free_space(engine),
        "reason": reason,
    }


def content_of(image: Json) -> str:
    """What makes an image the same on engines that number images in different ways: its layers and how it is run."""
    layers = (image.get("RootFS") or {}).get("Layers") or []
    config = image.get("Config") or {}
    kept = {key: config.get(key) for key in ("Env", "Cmd", "Entrypoint", "User", "WorkingDir", "Labels")}
    return digest([layers, kept]) if layers else ""


def free_space(engine: Engine) -> int:
    """The lesser of what is free for the engine, and in the home where an archive arrives; -1: not known."""
    folders = (engine.info().get("DockerRootDir") or "/var/lib/docker", os.path.expanduser("~"))
    found = []
    for folder in folders:
        try:
            status = os.statvfs(folder)
            found.append(status.f_bavail * status.f_frsize)
        except OSError:
            continue
    return min(found, default=-1)


def pull(engine: ImageEngine, asking: ImageEngine, options: Json, deadline: float) -> str:
    """Pull the image, by digest where it must be the one that another agent has; gives back why it failed."""
    reference, auth = options["name"], _auth(options)
    repository, tag = split(reference)
    wanted = digest_of(repository, options["digests"])
    try:
        known = wanted or _resolve(asking, reference, auth)
        engine.pull(repository, known if wanted else tag, auth, deadline)
        if wanted and ":" not in tag:
            engine.tag("%s@%s" % (repository, wanted), reference)
    except UnreachableError:
        raise
    except ComputeError as error:
        return error.message
    return ""


def _resolve(engine: ImageEngine, reference: str, auth: Dict[str, str] | None) -> str:
    """Asked first and with little patience: a pull itself waits for a registry that does not answer for minutes."""
    try:
        return engine.resolve(reference, auth)
    except UnreachableError as error:
        message = "%s: registry %s does not answer within %d s." % (
            engine.agent,
            registry_of(reference),
            REGISTRY_TIMEOUT,
        )
        raise EngineError(message, engine.agent) from error


def _auth(options: Json) -> Dict[str, str] | None:
    if options["identity_token"]:
        return {"identitytoken": options["identity_token"]}
    if options["username"]:
        return {"username": options["username"], "password": options["password"] or ""}
    return None


def save(engine: ImageEngine, identity: str, path: str, size: int) -> None:
    """Write an archive that its folder's owner alone may read."""
    folder = os.path.dirname(path)
    status = os.statvfs(folder)
    if status.f_bavail * status.f_frsize < size:
        message = "%s: %s has no room for an archive of %d bytes; free some space there."
        raise StateError(message % (engine.agent, folder, size), engine.agent)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as archive:
        owner = os.stat(folder)
        if os.geteuid() == 0:
            os.fchown(archive.fileno(), owner.st_uid, owner.st_gid)
        engine.save(identity, archive)


def load(engine: ImageEngine, options: Json) -> Json:
    """Read an archive, see that it is the right image, and only then give it its name."""
    with open(options["path"], "rb") as archive:
        identity = engine.load(archive)
    loaded = engine.image(identity or options["id"]) or {}
    if loaded.get("Id") != options["id"] and (not loaded or content_of(loaded) != options["content"]):
        message = "%s: the copy of image %s is not the same image as its source's (%s); look at its engine's log."
        raise StateError(message % (engine.agent, options["name"], options["id"][:19]), engine.agent)
    name = copy_name(options["name"])
    if name:
        engine.tag(loaded["Id"], name)
    return describe(engine, options["name"])
