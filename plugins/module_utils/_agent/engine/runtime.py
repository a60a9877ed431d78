# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The SSH runtime of an agent: a volume with the programs of the reference image and the scripts of this collection.

The volume's name ends with a digest of its content, so another content is another volume, and a container keeps the one that
it was created with. A second, empty volume marks a volume that is completely filled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, List, Mapping, Sequence

from ..._shared import label
from ..._shared.codec import Json, digest
from ..._shared.constants import RUNTIME_PATH, RUNTIME_VOLUME_PREFIX
from ..._shared.errors import ConflictError, EngineError, StateError
from .archives import Entry, pack_archive
from .reports import content_of

if TYPE_CHECKING:
    from .client import Engine

COMPLETE = "-complete"
_FILLER = "-fill"
_SHELL = f"#!{RUNTIME_PATH}/bin/sh\n"


@dataclass(frozen=True)
class Scripts:
    """The part of the SSH runtime that comes from the collection: scripts by their path in it, and BusyBox's applets."""

    texts: Mapping[str, str]
    applets: Sequence[str] = ()

    @property
    def edition(self) -> str:
        return digest([dict(self.texts), list(self.applets)])

    def archive(self, version: str) -> bytes:
        """A tar archive of the scripts, with the version as its last file. Scripts in C(bin) are run by the runtime's own shell."""
        links = [Entry("/bin/" + applet, target="busybox") for applet in self.applets]
        return pack_archive(
            [*links, *(_file(*item) for item in [*sorted(self.texts.items()), ("version", version + "\n")])]
        )


def _file(path: str, text: str) -> Entry:
    is_program = path.startswith("bin/")
    data = _SHELL + text.partition("\n")[2] if is_program else text
    return Entry("/" + path, data.encode(), 0o755 if is_program else 0o644)


def find_runtime(engine: Engine, edition: str = "") -> str:
    """The newest complete volume with these scripts, or with any scripts if ``edition`` is empty; empty if there is none."""
    return newest_runtime(engine.volumes(label.RUNTIME), edition)


def newest_runtime(volumes: Sequence[Json], edition: str) -> str:
    """The newest complete volume among those with the label of a runtime."""
    names = {volume["Name"] for volume in volumes}
    complete = [
        volume
        for volume in volumes
        if volume["Name"] + COMPLETE in names and edition in ("", (volume.get("Labels") or {}).get(label.EDITION))
    ]
    return max(complete, key=lambda volume: str(volume.get("CreatedAt")), default={"Name": ""})["Name"]


def is_installed(engine: Engine, image: Json, edition: str) -> bool:
    """Return whether the volume that belongs to the image and these scripts is complete, and no other runtime is there."""
    version = digest([content_of(image), edition])
    name = RUNTIME_VOLUME_PREFIX + version
    found = {
        volume["Name"]: (volume.get("Labels") or {}).get(label.RUNTIME) for volume in engine.volumes(label.RUNTIME)
    }
    return found == {name: version, name + COMPLETE: version}


def install_runtime(engine: Engine, image: str, scripts: Scripts, *, check: bool) -> Json:
    """Fill the volume that belongs to the image and the scripts, if it is not complete, and remove older ones without a user."""
    found = engine.image(image)
    if found is None:
        if check:
            return {"changed": True, "volume": "", "removed": []}
        message = "Agent %s does not have image %s; run provision_agents.yml."
        raise EngineError(message % (engine.agent, image), engine.agent)
    version = digest([content_of(found), scripts.edition])
    name = RUNTIME_VOLUME_PREFIX + version
    same_name = engine.volume(name)
    if same_name is not None and (same_name.get("Labels") or {}).get(label.RUNTIME) != version:
        message = (
            "%s: the engine has a volume %s without the label %s=%s, so it is not the SSH runtime; remove or rename it."
        )
        raise StateError(message % (engine.agent, name, label.RUNTIME, version), engine.agent)
    volumes = engine.volumes(label.RUNTIME)
    is_filled = newest_runtime([volume for volume in volumes if volume["Name"] in (name, name + COMPLETE)], "") == name
    if not is_filled and not check:
        _fill(engine, name, image, scripts, version)
    others = [volume["Name"] for volume in volumes if volume["Name"] not in (name, name + COMPLETE)]
    removed = [] if check else _remove_unused(engine, others)
    return {"changed": not is_filled or bool(removed), "volume": name, "removed": removed}


def _fill(engine: Engine, name: str, image: str, scripts: Scripts, version: str) -> None:
    """Fill a volume and mark it as complete. What an interrupted run has left is removed before.

    When the engine creates a container, it copies the image's files at a mount point into the empty volume that is mounted
    there. The container is never started.
    """
    engine.remove(name + _FILLER)
    labels = {label.RUNTIME: version, label.EDITION: scripts.edition}
    try:
        engine.remove_volume(name)
    except ConflictError:
        # A container mounts it, so it was complete before: only its mark was lost.
        engine.create_volume(name + COMPLETE, labels)
        return
    mount = {"Type": "volume", "Source": name, "Target": RUNTIME_PATH, "VolumeOptions": {"Labels": labels}}
    body = {"Image": image, "Cmd": ["true"], "HostConfig": {"Mounts": [mount], "NetworkMode": "none"}}
    filler = engine.create(name + _FILLER, body)
    try:
        engine.put_archive(filler, RUNTIME_PATH, scripts.archive(version))
        if engine.read_file(filler, RUNTIME_PATH + "/version") != (version + "\n").encode():
            message = "%s: the volume %s was not filled from image %s; check the log of that engine."
            raise EngineError(message % (engine.agent, name, image), engine.agent)
    finally:
        engine.remove(filler)
    engine.create_volume(name + COMPLETE, labels)


def _remove_unused(engine: Engine, names: Sequence[str]) -> List[str]:
    """Remove runtimes that no container mounts, with their marks. The others stay for their sessions."""
    removed = []
    for name in sorted(name for name in names if name.startswith(RUNTIME_VOLUME_PREFIX)):
        marked = name[: -len(COMPLETE)] if name.endswith(COMPLETE) else ""
        if marked in names and marked not in removed:
            continue
        try:
            engine.remove_volume(name)
        except ConflictError:
            continue
        removed.append(name)
    return [name for name in removed if not name.endswith(COMPLETE)]
