# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The images of an agent: pull from a registry, write to and load from an archive, and compare by content."""

from __future__ import annotations

import errno
import fcntl
import math
import os
import re
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import IO, Any, Callable, Collection, Dict, Iterator, Mapping, Sequence, Set, Tuple

from ..._shared.documents.image import AgentImage
from ..._shared.errors import ComputeError, EngineError, StateError
from ..._shared.image_reference import copy_name, digest_of, own_digest, registry_of, split
from ..._shared.paths import read
from ..._shared.units import show_bytes
from .client import Engine, LateError, UnreachableError
from .connection import AbsentError, failure_of
from .counting import run_counted
from .image_archive import proven_ids, remove_names
from .reports import EngineInfo, architecture, content_of, image_entry

# Seconds in which a registry must return an image's digest; after that it counts as not answering.
REGISTRY_TIMEOUT = 10
# Seconds without progress of an engine: it may be busy with a layer of many gigabytes.
STALL = 600
CHUNK = 1 << 20
# Reasons for which more space helps: no block, the owner's quota, and the longest file of the file system or of the process.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_CONTAINERD, CONTAINERD_CONFIG = "/run/containerd/containerd.sock", "/etc/containerd/config.toml"
Listener = Callable[[Mapping[str, Any]], None]
LOADED = re.compile(r"Loaded image ID: (sha256:[0-9a-f]{64})")


# Ansible's own directory for this login, which agent_state=absent cleans.
_OWN_FOLDERS, _LOCK = ("~/.ansible", "~/.ansible/tmp"), "~/.ansible/tmp/cluster-compute-images.lock"


@contextmanager
def at_work(how: int) -> Iterator[bool]:
    """Hold a file of this login on this agent as flock(2) does, which no other user can open, and return whether it is held.

    An image gets its name only when it is complete. Until then, nothing else shows whether the process that loads it lives.
    """
    held = -1
    try:
        with suppress(OSError):  # no home
            held = _lock_file()
        yield held >= 0 and _is_locked(held, how)
    finally:
        if held >= 0:
            os.close(held)


def _lock_file() -> int:
    for folder in _OWN_FOLDERS:
        with suppress(FileExistsError):
            os.mkdir(os.path.expanduser(folder), 0o700)
    return os.open(os.path.expanduser(_LOCK), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def _is_locked(file: int, how: int) -> bool:
    try:
        fcntl.flock(file, how)
    except OSError:
        return False
    return True


class ImageEngine(Engine):
    """The engine's requests for images."""

    def ask_registry(self, reference: str, auth: Dict[str, str] | None) -> None:
        """Ask the registry for an image. Raises an EngineError if the registry refuses."""
        with self._asking(f"ask {registry_of(reference)} for image {reference}") as client:
            client.inspect_distribution(reference, auth_config=auth)

    def pull(
        self, repository: str, tag: str, auth: Dict[str, str] | None, deadline: float, listen: Listener | None = None
    ) -> None:
        image, registry = f"image {repository}{'@' if ':' in tag else ':'}{tag}", registry_of(repository)
        try:
            with self._asking(f"pull {image}") as client:
                header = self._sdk.auth.encode_header(auth) if auth else None
                header = header or self._sdk.auth.get_config_header(client, registry)
                answer = client._post(
                    client._url("/images/create"),
                    params={"fromImage": repository, "tag": tag},
                    headers={"X-Registry-Auth": header} if header else {},
                    stream=True,
                    timeout=max(1.0, min(STALL, deadline - time.monotonic())),
                )
                client._raise_for_status(answer)
                self._follow(client._stream_helper(answer, decode=True), f"pull {image}", deadline, listen)
        except LateError as error:  # an engine that waits for a registry is silent, and answers all other requests
            message = f"{self.agent} did not pull {image} in time; raise session_pull_timeout, or check its network."
            if time.monotonic() < deadline:
                silent = "%s: registry %s has sent nothing of %s for %g s; check the network to it."
                message = silent % (self.agent, registry, image, STALL)
            raise EngineError(message, self.agent) from error

    def load(self, archive: Any) -> str:
        """Load an archive of one image, and return the image's ID; empty if the engine does not name it."""
        with self._asking("load an image") as client:
            output = self._follow(client.load_image(archive), "load an image")
        found = LOADED.search(output)
        return found.group(1) if found else ""

    def saved(self, identity: str) -> Iterator[bytes]:
        with self._asking(f"save image {identity[:19]}") as client:
            yield from client.get_image(identity, CHUNK)

    def image_ids(self) -> Set[str]:
        with self._asking("list its images") as client:
            return set(client.images(quiet=True, all=True))

    def remove_image(self, identity: str) -> None:
        """Remove an image that no container uses. An image that is gone is no error."""
        with self._asking(f"remove image {identity[:19]}") as client:
            self._or_none(client.remove_image, identity)

    def tag(self, identity: str, name: str) -> None:
        repository, tag = split(name)
        with self._asking(f"name image {identity[:19]} {name}") as client:
            client.tag(identity, repository, tag, force=True)

    def _follow(self, events: Any, what: str, deadline: float = math.inf, listen: Listener | None = None) -> str:
        """The text of a request's progress, read to the end. TimeoutError at the deadline; the connection's timeout bounds silence."""
        lines = []
        for event in events:
            lines.append(str(event.get("stream") or ""))
            if listen is not None:
                listen(event)
            reason = failure_of(event)
            if reason:
                raise EngineError(f"{self._speaker('')} could not {what}: {reason}.", self.agent)
            if time.monotonic() > deadline:
                raise TimeoutError
        return "".join(lines)


def describe_image(engine: Engine, name: str, reason: str = "") -> AgentImage:
    """An agent's image of this name, if it has one, and what must be known of the agent for a copy."""
    image = engine.image(name) if name else None
    found, info = image or {}, engine.info()
    return AgentImage(
        **vars(image_entry(name, image)),
        agent=engine.agent,
        content=content_of(found) if found else "",
        digests=tuple(found.get("RepoDigests") or ()),
        size=int(found.get("Size") or 0),
        host=architecture(info.architecture or os.uname().machine),
        free=free_space(info),
        reason=reason,
    )


def image_folder(info: EngineInfo) -> str:
    """Where an engine stores the layers of images: with containerd's store, the directory of the containerd that it uses."""
    # Older engines do not name the address. They use the containerd of their host if there is one.
    is_of_host = info.containerd == _CONTAINERD if info.containerd else os.path.exists(_CONTAINERD)
    if not (is_of_host and info.has_snapshotter):
        return info.data_root
    found = re.search(r"^root *= *[\"']([^\"']+)", read(CONTAINERD_CONFIG), re.MULTILINE)
    return found.group(1) if found else "/var/lib/containerd"


def free_space(info: EngineInfo) -> int:
    """Bytes free where the engine stores images or in the home, where archives arrive, whichever is less; -1 if unknown."""
    folders = (image_folder(info), os.path.expanduser("~"))
    return min((free for free in map(free_below, folders) if free >= 0), default=-1)


def free_below(folder: str) -> int:
    """Bytes free in the file system of a folder; -1 if it cannot be read."""
    try:
        status = os.statvfs(folder)
    except OSError:
        return -1
    return status.f_bavail * status.f_frsize


@dataclass(frozen=True)
class Login:
    """A login for a registry; without a user and a token, the agent's own."""

    username: str = ""
    password: str = ""
    identity_token: str = ""

    @property
    def auth(self) -> Dict[str, str] | None:
        """The login as the engine takes it."""
        if self.identity_token:
            return {"identitytoken": self.identity_token}
        return {"username": self.username, "password": self.password} if self.username else None


@dataclass(frozen=True)
class WantedPull:
    """An image to pull; with ``digests``, it must be that of another agent. The bytes of the pull are counted in ``progress``."""

    name: str
    login: Login = Login()
    digests: Sequence[str] = ()
    progress: str = ""


def pull_image(engine: ImageEngine, asked: WantedPull, deadline: float) -> str:
    """Pull an image, by digest if it must be another agent's image. Returns why the pull failed; empty on success."""
    reference, auth = asked.name, asked.login.auth
    repository, tag = split(reference)
    # What another agent reports never replaces the digest that was asked for.
    wanted = tag if ":" in tag else digest_of(repository, asked.digests)
    try:
        _check_registry(engine, f"{repository}@{wanted}" if wanted else reference, auth)
        count = PullCount()
        pulling = partial(engine.pull, repository, wanted or tag, auth, deadline, count.add)
        run_counted(pulling, count.text, asked.progress, math.inf)
        if wanted and ":" not in tag:
            engine.tag(f"{repository}@{wanted}", reference)
    except UnreachableError:
        raise
    except ComputeError as error:
        return error.message
    return ""


def image_refusal(engine: ImageEngine, name: str, login: Login) -> str:
    """Why the registry of an image would refuse its pull; empty if it would not."""
    try:
        _check_registry(engine, name, login.auth)
    except ComputeError as error:
        return error.message
    return ""


def _check_registry(engine: ImageEngine, reference: str, auth: Dict[str, str] | None) -> None:
    """Check that the registry answers, with a short timeout: a pull waits for minutes for a registry that does not answer."""
    try:
        engine.hasty(REGISTRY_TIMEOUT).ask_registry(reference, auth)
    except UnreachableError as error:
        words = (engine.agent, registry_of(reference), REGISTRY_TIMEOUT)
        raise EngineError("%s: registry %s does not answer within %d s." % words, engine.agent) from error


def save(engine: ImageEngine, identity: str, path: str, size: int) -> None:
    """Write an archive that only the owner of its folder can read."""
    folder = os.path.dirname(path)
    if free_below(folder) < size:
        message = "%s: %s does not have %s free for an archive of the image; free some space there."
        raise StateError(message % (engine.agent, folder, show_bytes(size)), engine.agent)
    try:
        with _new_file(path) as archive:
            owner = os.stat(folder)
            if os.geteuid() == 0:
                os.fchown(archive.fileno(), owner.st_uid, owner.st_gid)
            archive.writelines(engine.saved(identity))
    except OSError as error:
        message = "%s: %s cannot hold the archive of the image: %s%s."
        advised = "; free some space there" if error.errno in _FULL else ""
        raise StateError(message % (engine.agent, folder, error.strerror or error, advised), engine.agent) from error


@contextmanager
def _new_file(path: str) -> Iterator[IO[bytes]]:
    """A file that only its owner can read. An error removes it: a part of an archive would count as an archive."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
    except BaseException:
        with suppress(OSError):
            os.unlink(path)
        raise


@dataclass(frozen=True)
class ImageArchive:
    """An archive at a path that must hold the image with this ID or content, which gets the name."""

    name: str
    path: str
    id: str
    content: str = ""


def load_image(engine: ImageEngine, wanted: ImageArchive) -> AgentImage:
    """Load an archive without its names, check that it holds the right image, and only then tag the image."""
    remove_names(wanted.path, engine.agent)
    digest = own_digest(wanted.name)
    proven = proven_ids(wanted.path, digest) if digest else frozenset()
    if digest and not proven:
        message = (
            "%s: the copy of image %s does not prove that it has this digest, because the engine that it comes from does not store "
            "images in containerd; let this agent pull the image."
        )
        raise StateError(message % (engine.agent, wanted.name), engine.agent)
    with at_work(fcntl.LOCK_SH | fcntl.LOCK_NB):  # a commit holds its lock for minutes
        try:
            return _loaded(engine, wanted, proven)
        except AbsentError:  # that commit has removed the image before it had its name
            return _loaded(engine, wanted, proven)


def _loaded(engine: ImageEngine, wanted: ImageArchive, proven: Collection[str]) -> AgentImage:
    digest, before = own_digest(wanted.name), engine.image_ids()
    try:
        with open(wanted.path, "rb") as archive:
            identity = engine.load(archive)
    except EngineError:
        _remove_partial(engine, before, wanted.content)
        raise
    found = engine.image(identity or wanted.id)
    if identity and found is None:
        raise AbsentError(f"Image {identity[:19]} was removed while it was loaded; run this again.", engine.agent)
    loaded = found or {}
    is_other = loaded.get("Id") != wanted.id and (not loaded or content_of(loaded) != wanted.content)
    if is_other or (digest and loaded.get("Id") not in proven):
        if identity and identity not in before:
            engine.remove_image(identity)
        message = "%s: the archive holds another image than %s (%s); check the log of that engine."
        raise StateError(message % (engine.agent, wanted.name, wanted.id[:19]), engine.agent)
    name = copy_name(wanted.name)
    if name:
        engine.tag(loaded["Id"], name)
    return describe_image(engine, wanted.name)


def _remove_partial(engine: ImageEngine, before: Collection[str], content: str) -> None:
    """Remove the image that an engine with containerd's store keeps, without a name, when it could not unpack the image."""
    with suppress(ComputeError):
        for identity in engine.image_ids().difference(before):
            image = engine.image(identity) or {}
            if not image.get("RepoTags") and content_of(image) == content:
                engine.remove_image(identity)


class PullCount:
    """The bytes of each layer: those that have arrived, and all. The engine names a layer's size when it begins to fetch it."""

    def __init__(self) -> None:
        self._layers: Dict[str, Tuple[int, int]] = {}

    def add(self, event: Mapping[str, Any]) -> None:
        """Take an event of the engine: https://docs.docker.com/reference/api/engine/, "Create an image".

        >>> count = PullCount()
        >>> count.add({"id": "4f4f", "status": "Downloading", "progressDetail": {"current": 20, "total": 90}})
        >>> count.text()
        '20 90'
        """
        layer, status, detail = str(event.get("id") or ""), event.get("status"), event.get("progressDetail") or {}
        if status == "Downloading" and detail.get("total"):
            self._layers[layer] = (int(detail.get("current") or 0), int(detail["total"]))
        elif status in ("Download complete", "Pull complete") and layer in self._layers:
            size = self._layers[layer][1]
            self._layers[layer] = (size, size)

    def text(self) -> str:
        layers = list(self._layers.values())  # the pull goes on in its own thread
        return "%d %d" % (sum(now for now, _all in layers), sum(size for _now, size in layers))
