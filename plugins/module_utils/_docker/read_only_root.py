# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What stays writable in a container whose root file system is read-only (``session_read_only_root``).

Files of a session can be unpacked in such a container only inside of a volume, by PID 1 and by the engine
(https://github.com/moby/moby/blob/master/daemon/archive.go). So each folder that gets files is a volume without a name: the
engine fills it from the image and removes it with the container. Folders for temporary files are in memory.
"""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import posixpath
from typing import Collection, Dict, Iterable, List, Mapping, Tuple

from .._core.constants import LABEL_CONTAINER
from .._core.documents import Json
from .._core.model import Container, Plan, Session
from .._core.paths import covers

# The options of each tmpfs, and the part of the container's memory that it may use: a divisor.
_TEMPORARY: Mapping[str, Tuple[str, int]] = {
    "/run": ("rw,noexec,nosuid,nodev,size=%d,mode=0755", 8),
    "/tmp": ("rw,exec,nosuid,nodev,size=%d,mode=1777", 2),
    "/var/tmp": ("rw,exec,nosuid,nodev,size=%d,mode=1777", 8),
}


def writable_folders(session: Session) -> Tuple[str, ...]:
    """The folders that are volumes of each container. A data folder takes the place of what it covers."""
    if not session.read_only_root:
        return ()
    homes = posixpath.dirname(session.user.home)
    # Each with the path that the session needs in it. /job has the hostfile of DeepSpeed, /var/log the logs of apps.
    # /etc is the first: its files are the last to be installed.
    needed = {"/etc": "/etc", homes: session.user.home, "/job": "/job", "/var/log": "/var/log"}
    return tuple(folder for folder, path in needed.items() if not _is_mounted(session, path))


def volume_mounts(plan: Plan, container: Container) -> List[Json]:
    """The volumes of a container. Their labels say whose they are if the container is lost without them."""
    labels = {**plan.network.labels, LABEL_CONTAINER: container.id}
    return [
        {"Type": "volume", "Target": folder, "VolumeOptions": {"Labels": labels}}
        for folder in writable_folders(plan.session)
    ]


def temporary_folders(session: Session, memory: int) -> Dict[str, str]:
    """The options of each tmpfs of a container with this memory."""
    if not session.read_only_root:
        return {}
    return {
        folder: options % (memory // divisor)
        for folder, (options, divisor) in _TEMPORARY.items()
        if not _is_mounted(session, folder)
    }


def goes_with_container(volume: Json, mounted: Collection[str]) -> bool:
    """Whether the engine removes a volume with the container that mounts it; ``mounted`` are the volumes of those containers."""
    return bool(_container_of(volume)) and volume["Name"] in mounted


def orphans(volumes: Iterable[Json], containers: Collection[str], used: Collection[str]) -> List[str]:
    """The volumes that these containers had, and that nothing mounts: they were removed without them, as ``docker rm`` does."""
    return [volume["Name"] for volume in volumes if _container_of(volume) in containers and volume["Name"] not in used]


def _container_of(volume: Json) -> str:
    return str((volume.get("Labels") or {}).get(LABEL_CONTAINER, ""))


def _is_mounted(session: Session, path: str) -> bool:
    return any(covers(mount.target, path) for mount in session.mounts)
