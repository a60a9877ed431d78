# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Data folders of the host: those that do not answer, and those below a folder that the policy of the site permits.

An engine that mounts a folder that does not answer waits for it without a deadline. It mounts the folders of a container
again to read or write a file of it, and holds the container's lock meanwhile: after one such request, no other request for
the container is answered, its end included. So the folders are asked first.

Users who can write below a permitted folder can put a link in the place of a folder. Links above and at the permitted folder
are the administrator's. Below it none is followed, and the folder that is found stays open until PID 1 of each container has
compared it with what the engine has mounted: its device and inode.
"""

from __future__ import annotations

import os
import stat
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Collection, Iterable, Iterator, List, Sequence, Set

from ..._shared.codec import Json
from ..._shared.constants import RUNTIME_PATH
from ..._shared.documents.plan import Container, Session
from ..._shared.errors import ComputeError, InputError, StateError, shorten_list
from ..._shared.paths import covers
from ..._shared.subprocess_call import PATIENCE, existing, unresponsive_mount

if TYPE_CHECKING:
    from .client import Engine

_MOST_NAMES = 5


def check_folders_answer(session: Session, agent: str, seconds: float = PATIENCE) -> None:
    """Raise a ComputeError that names a folder of the session that does not answer on this host."""
    _must_answer([mount.source for mount in session.mounts if mount.type == "bind"], agent, seconds)


def check_mounts_answer(listed: Iterable[Json], agent: str, seconds: float = PATIENCE) -> None:
    """Raise a ComputeError that names a folder of these containers that does not answer on this host."""
    _must_answer([folder for container in listed for folder in folders_of(container)], agent, seconds)


def silent_folders(listed: Iterable[Json], seconds: float = PATIENCE) -> Set[str]:
    """The folders of the host that these containers mount and that do not answer; each folder is asked once."""
    return _silent({folder for container in listed for folder in folders_of(container)}, seconds)


def folders_of(listed: Json) -> Set[str]:
    """The folders of the host that a container of the engine's list mounts.

    >>> folders_of({"Mounts": [{"Type": "bind", "Source": "/srv/data"}, {"Type": "volume", "Name": "cache", "Source": ""}]})
    {'/srv/data'}
    """
    mounts = listed.get("Mounts") or []
    return {mount["Source"] for mount in mounts if mount.get("Type") == "bind" and mount.get("Source")}


def waiting_programs(names: Sequence[str], folders: Collection[str], agent: str) -> str:
    """A sentence for users about containers that do not end. Without folders, the engine is silent about them.

    >>> waiting_programs(["alice.train.main1"], ["/srv/data"], "node1")
    'alice.train.main1: on node1 a program waits for /srv/data, which does not answer; run the end again when its file server is back.'
    """
    why = (
        "the container hangs, and the engine answers no request for it; check the disks and the load of that host, "
        "restart it if nothing else helps, and run this again"
    )
    if folders:
        waits = ", ".join(sorted(folders))
        why = f"a program waits for {waits}, which does not answer; run the end again when its file server is back"
    return f"{shorten_list(names, _MOST_NAMES)}: on {agent} {why}."


def _must_answer(folders: Collection[str], agent: str, seconds: float) -> None:
    silent = _silent(folders, seconds)
    if silent:
        raise ComputeError(unresponsive_mount(min(silent), agent), agent)


def _silent(folders: Collection[str], seconds: float) -> Set[str]:
    return {folder for folder, found in existing(sorted(set(folders)), seconds).items() if found is None}


_VARIABLE = "session_mounts"
# The files of a container that does not run yet from which its own files are made: _agent/ssh/installer.py.
_READ = ("/etc/passwd", "/etc/group", "/etc/shadow", "/etc/ssh/ssh_config", "/etc/ssh/ssh_known_hosts")
# What PID 1 writes when it has compared all folders: check_folders in roles/image/files/init.sh.
CHECKED = b"the data folders are those that were checked"


@contextmanager
def found_folders(session: Session, agent: str) -> Iterator[bytes]:
    """The text that PID 1 compares while the folders are open: a line ``DEVICE:INODE TARGET`` for each, and an empty line."""
    lines: List[str] = []
    with ExitStack() as opened:
        for mount in session.mounts if session.permitted_folders else ():
            folder = permitted_above(mount.source, session.permitted_folders)
            if mount.type == "bind" and folder:
                found = os.fstat(open_permitted(folder, mount.source.rstrip("/"), agent, opened))
                lines.append("%d:%d %s\n" % (found.st_dev, found.st_ino, mount.target))
        yield "".join([*lines, "\n"]).encode()


def check_image_paths(engine: Engine, session: Session, container: Container, identity: str) -> None:
    """Refuse a container with a link where the SSH runtime or a data folder is mounted, or where the engine reads a file of it.

    With such links, a folder of users would have the SSH runtime in it, the mount that PID 1 looks at would be another, or the
    container would receive a file of the host: the engine mounts the data folders to read.
    """
    targets = [RUNTIME_PATH, *_READ, *(mount.target for mount in session.mounts)]
    paths = {
        target[:end] for target in targets for end in range(2, len(target) + 1) if target[end : end + 1] in ("", "/")
    }
    for path in sorted(paths):
        found = engine.path_stat(identity, path, container.hostname)
        if found is not None and found.get("linkTarget"):
            message = (
                "%s: %s is a symbolic link in the image or the container, and the policy of this site bounds its data directories; "
                "mount them elsewhere, or use another image."
            )
            raise StateError(message % (container.hostname, path), engine.agent)


def permitted_above(source: str, permitted: Sequence[str]) -> str:
    """The permitted folder in which a data folder lies; empty without one."""
    return next((one for one in permitted if covers(one, source)), "")


def open_permitted(folder: str, source: str, agent: str, opened: ExitStack) -> int:
    """A descriptor of a folder or file, for nothing but a look at it; no link below the permitted folder is followed."""
    path, place = folder, os.O_PATH | os.O_CLOEXEC
    try:
        found = os.open(folder, place)
        opened.callback(os.close, found)
        for name in filter(None, source[len(folder) :].split("/")):
            path = path.rstrip("/") + "/" + name
            found = os.open(name, place | os.O_NOFOLLOW, dir_fd=found)
            opened.callback(os.close, found)
            if stat.S_ISLNK(os.fstat(found).st_mode):
                rule = "must have no symbolic link below %s, and %s on %s is one (policy of this site)"
                raise InputError(_VARIABLE, source, rule % (folder, path, agent))
    except OSError as error:
        rule = "must be a directory that the login on %s can look up below %s (policy of this site); %s: %s"
        raise InputError(_VARIABLE, source, rule % (agent, folder, path, error.strerror)) from error
    return found
