# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Make an image of a session's container: the image that it was made from, and a layer of what is kept.

The engine's own commit would keep every file and the whole configuration. Here the engine exports the container, and loads an
archive that holds the new layer and a configuration of its own. The image gets its name from the process that made it, so what an
engine still loads when that process is killed takes no name from a later image. The next commit of its owner on this agent removes it,
and so does the end of its session.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import tarfile
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import IO, Collection, Dict, Iterable, Iterator, List, Sequence, Set, Tuple

from ..._shared import label
from ..._shared.codec import Json
from ..._shared.documents.step_documents import CommitSpec
from ..._shared.errors import ConflictError, EngineError, StateError
from ..._shared.units import show_bytes
from .images import CHUNK, ImageEngine, at_work, image_folder
from .kept_files import Layer, without_paths
from .reports import committed, hostname_of, image_labels, is_member

_OCI = "org.opencontainers.image."
_OWNER, _SESSION = label.ORIGIN + ".owner", label.ORIGIN + ".session"
# What stays free of each disk. Of the engine's disk, an image takes twice its size: the archive is unpacked beside it.
MARGIN = 256 << 20
_MOST_CHANGES = 1_000_000
_TRAILER = b"\0" * 2 * tarfile.BLOCKSIZE
# The fields of an image's configuration. The engine adds fields that only containers have.
_CONFIG = (
    *("User", "ExposedPorts", "Env", "Entrypoint", "Cmd", "Volumes", "WorkingDir", "Labels", "StopSignal"),
    *("Healthcheck", "OnBuild", "Shell", "ArgsEscaped"),
)


@dataclass
class Written:
    """The bytes of the layer so far."""

    amount: int = 0


@dataclass(frozen=True)
class Origin:
    """The container on the engine, the description of its image, and the most bytes that the new layer can have."""

    identity: str
    base: Json
    squash: bool
    size: int


class CommitEngine(ImageEngine):
    """The engine's requests for an image of a container."""

    def changes(self, identity: str) -> Tuple[Set[str], List[str]]:
        """The paths that a container has changed or added, and those that it has deleted, without their first slash."""
        with self._asking("list the changes of a container") as client:
            found = client.diff(identity) or ()
        deleted = [change["Path"][1:] for change in found if change["Kind"] == 2]
        return {change["Path"][1:] for change in found if change["Kind"] != 2}, deleted

    def exported(self, identity: str) -> Iterator[bytes]:
        with self._asking("export a container") as client:
            yield from client.export(identity, CHUNK)

    def nameless(self) -> List[Json]:
        """Images of sessions' containers that have no name: replaced, or their process was killed while the engine loaded them.

        The engine also lists images that have been pushed or pulled, whose name is a digest: they are not left over.
        """
        with self._asking("list its images") as client:
            found = client.images(filters={"dangling": True, "label": _OWNER})
        return [one for one in found if not set(one.get("RepoDigests") or ()) - {"<none>@<none>"}]


def check_image_name(engine: CommitEngine, image: str, owner: str) -> None:
    """Raise StateError if the engine has an image of this name that was not made of the owner's own sessions."""
    there = engine.image(image)
    if there is not None and not (committed(there) and image_labels(there)[_OWNER] == owner):
        message = "%s has an image %s that is not of a session of %s; choose another name."
        raise StateError(message % (engine.agent, image, owner), engine.agent)


def find_committed(engine: CommitEngine, wanted: CommitSpec) -> Origin:
    """Return what an image can be made of. Raises StateError if it must not be made, or if there is not enough space."""
    members = filter(is_member, engine.containers(wanted.session))
    listed = [one for one in members if hostname_of(one["Labels"]) == wanted.container]
    if not listed or listed[0]["Labels"].get(label.OWNER) != wanted.owner:
        message = "%s has no container %s of session %s of %s; sessions.yml lists the sessions."
        raise StateError(message % (engine.agent, wanted.container, wanted.name, wanted.owner), engine.agent)
    info, sizes = engine.info(), engine.sizes(listed[0]["Id"])
    base = engine.image(listed[0]["ImageID"])
    if base is None:
        message = "%s no longer has the image of %s; launch the session from an image that exists."
        raise StateError(message % (engine.agent, wanted.container), engine.agent)
    # With containerd, an archive must hold all layers of its image.
    is_whole = wanted.squash or info.has_snapshotter
    origin = Origin(listed[0]["Id"], base, is_whole, int(sizes.get("SizeRootFs" if is_whole else "SizeRw") or 0))
    _check_space(engine, wanted, origin.size, image_folder(info))
    return origin


def make(engine: CommitEngine, wanted: CommitSpec, origin: Origin, written: Written) -> None:
    """Make the image. Waits for a process on this agent that makes or copies one, and removes images that are left without a name."""
    try:
        with at_work(fcntl.LOCK_EX), tempfile.TemporaryFile(dir=_folder()) as layer:
            _fill(engine, origin, layer, written)
            config = json.dumps(configuration(wanted, origin, _digest(layer), datetime.now(timezone.utc))).encode()
            identity = _loaded(engine, wanted.owner, _archive(config, layer))
            check_image_name(engine, wanted.image, wanted.owner)
            engine.tag(identity or "sha256:" + hashlib.sha256(config).hexdigest(), wanted.image)
            _remove_nameless(engine, wanted.owner, ())
    except OSError as error:
        message = "%s: %s cannot hold the layer of image %s: %s; free some space there."
        raise StateError(message % (engine.agent, _folder(), wanted.image, error.strerror or error)) from error
    except tarfile.TarError as error:
        message = "%s: a program shortened a file of %s while the engine read it; stop the programs that write, and run this again."
        raise StateError(message % (engine.agent, wanted.container), engine.agent) from error


def _loaded(engine: CommitEngine, owner: str, archive: Iterator[bytes]) -> str:
    try:
        return engine.load(archive)
    except EngineError:  # an engine with containerd's store keeps an image that it could not unpack
        with suppress(EngineError):
            _remove_nameless(engine, owner, ())
        raise


def sweep(engine: CommitEngine, owner: str = "", sessions: Collection[str] = ()) -> None:
    """Remove images without a name of an owner, or of sessions, unless a process on this agent makes or copies one now."""
    with suppress(EngineError), at_work(fcntl.LOCK_EX | fcntl.LOCK_NB) as is_alone:
        if is_alone:
            _remove_nameless(engine, owner, sessions)


def _remove_nameless(engine: CommitEngine, owner: str, sessions: Collection[str]) -> None:
    for listed in engine.nameless():
        labels = listed["Labels"]
        if labels[_OWNER] != owner and labels.get(_SESSION) not in sessions:
            continue
        if committed(engine.image(listed["Id"]) or {}):
            with suppress(ConflictError):  # a container of the former image runs
                engine.remove_image(listed["Id"])


def _fill(engine: CommitEngine, origin: Origin, file: IO[bytes], written: Written) -> None:
    """Write the layer. What a container writes meanwhile is bounded by what the disks have been checked for."""
    changed, deleted = (None, []) if origin.squash else engine.changes(origin.identity)
    if changed is not None and len(changed) > _MOST_CHANGES:
        message = "%s: the container has changed more than %d files; set session_commit_squash."
        raise StateError(message % (engine.agent, _MOST_CHANGES), engine.agent)

    def spend(size: int) -> None:
        written.amount += size
        if written.amount > origin.size + MARGIN // 4:
            message = "%s: the container has grown while it was read; stop the programs that write, and run this again."
            raise StateError(message % engine.agent, engine.agent)

    layer = Layer(file, changed, spend)
    if layer.add_export(_whole(engine, origin)):
        layer.add_names(_whole(engine, origin))
    layer.add_deleted(deleted)
    if layer.tainted:
        _rewrite(file, layer.tainted)


def _rewrite(file: IO[bytes], names: Set[str]) -> None:
    with tempfile.TemporaryFile(dir=_folder()) as copy:
        file.seek(0)
        without_paths(file, copy, names)
        copy.seek(0)
        file.seek(0)
        file.truncate()
        shutil.copyfileobj(copy, file, CHUNK)


def _whole(engine: CommitEngine, origin: Origin) -> Iterator[bytes]:
    """The export of a container. Raises TarError if the engine has ended it early, which it does without an error."""
    tail = b""
    for piece in engine.exported(origin.identity):
        tail = (tail + piece)[-len(_TRAILER) :]
        yield piece
    if tail != _TRAILER:
        raise tarfile.ReadError("the archive has no end")


def configuration(wanted: CommitSpec, origin: Origin, digest: str, now: datetime) -> Json:
    """The configuration of the base image with labels of origin. It has nothing of the container."""
    base = origin.base
    kept = {name: base["Config"][name] for name in _CONFIG if (base.get("Config") or {}).get(name) is not None}
    date, below = now.isoformat(), [] if origin.squash else list(base["RootFS"]["Layers"])
    history = {"created": date, "created_by": "cluster-compute commit"}
    return {
        **{key.lower(): base[key] for key in ("Architecture", "Os", "Variant") if base.get(key)},
        "created": date,
        "config": {**kept, "Labels": {**_foreign(image_labels(base)), **_origin_labels(wanted, base, date)}},
        "rootfs": {"type": "layers", "diff_ids": [*below, digest]},
        "history": [*({"created_by": "layer of " + base["Id"]} for _layer in below), history],
    }


def _foreign(labels: Dict[str, str]) -> Dict[str, str]:
    """The labels of a base image without the collection's own, which C(docker commit) copies from a container."""
    ours = (label.SESSION, label.CONTAINER, label.LAUNCH, label.SCHEMA, label.ORIGIN)
    return {name: text for name, text in labels.items() if not name.startswith(ours)}


def _origin_labels(wanted: CommitSpec, base: Json, date: str) -> Dict[str, str]:
    names, digests = base.get("RepoTags") or [], base.get("RepoDigests") or []
    own = {"session": wanted.session, "owner": wanted.owner, "name": wanted.name, "container": wanted.container}
    return {
        **{f"{label.ORIGIN}.{key}": text for key, text in own.items()},
        **({_OCI + "base.name": names[0]} if names else {}),
        _OCI + "base.digest": digests[0].partition("@")[2] if digests else base["Id"],
        _OCI + "created": date,
    }


def _archive(config: bytes, layer: IO[bytes]) -> Iterator[bytes]:
    """The archive that the engine loads. It finds the layers of the base image by their digests: they have no files here."""
    identity, size = hashlib.sha256(config).hexdigest(), layer.seek(0, os.SEEK_END)
    below = len(json.loads(config)["rootfs"]["diff_ids"]) - 1
    layers = [*("%s/%d.tar" % (identity, number) for number in range(below)), identity + "/layer.tar"]
    manifest = json.dumps([{"Config": identity + ".json", "RepoTags": None, "Layers": layers}]).encode()
    layer.seek(0)
    files: Sequence[Tuple[str, int, Iterable[bytes]]] = (
        (layers[-1], size, _blocks(layer)),
        (identity + ".json", len(config), [config]),
        ("manifest.json", len(manifest), [manifest]),
    )
    for path, length, blocks in files:
        entry = tarfile.TarInfo(path)
        entry.size = length
        yield entry.tobuf(tarfile.GNU_FORMAT)
        yield from blocks
        if length % tarfile.BLOCKSIZE:  # older releases of requests send an empty block as the end of the body
            yield b"\0" * (-length % tarfile.BLOCKSIZE)
    yield _TRAILER


def _digest(file: IO[bytes]) -> str:
    file.seek(0)
    found = hashlib.sha256()
    for block in _blocks(file):
        found.update(block)
    return "sha256:" + found.hexdigest()


def _blocks(file: IO[bytes]) -> Iterator[bytes]:
    return iter(lambda: file.read(CHUNK), b"")


def _check_space(engine: CommitEngine, wanted: CommitSpec, size: int, root: str) -> None:
    """Raise a StateError if a disk would have less than the margin left. A directory that cannot be seen is not checked."""
    needed: Dict[int, int] = {}
    places = {}
    for folder, amount in ((root, 2 * size), (_folder(), size)):
        with suppress(OSError):
            device, status = os.stat(folder).st_dev, os.statvfs(folder)
            needed[device] = needed.get(device, MARGIN) + amount
            places[device] = folder, status.f_bavail * status.f_frsize
    for device, (folder, free) in places.items():
        if free < needed[device]:
            message = "%s has %s free in %s, but image %s needs up to %s for a while; free some space there."
            amounts = show_bytes(free), folder, wanted.image, show_bytes(needed[device])
            raise StateError(message % (engine.agent, *amounts), engine.agent)


def _folder() -> str:
    """Where the layer is kept until it is loaded, as a file without a name: in the home, where copies of images arrive, too."""
    return os.path.expanduser("~")
