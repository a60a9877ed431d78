# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The proof that every agent sees the same data folder: a marker written on one is read on all."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import os
import stat
import time
from typing import Dict, List, Sequence

from ansible_collections.cluster.compute.plugins.module_utils._core.errors import ConflictError, InputError
from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json

_INTERVAL = 0.2
_READABLE = os.O_RDONLY | os.O_DIRECTORY


def leave_marks(folders: Sequence[str], token: str) -> Dict[str, Json]:
    """Write a marker into every folder; one that cannot be written into is told by its inode and times instead."""
    return {folder: _leave(folder, token) for folder in folders}


def find_marks(marks: Dict[str, Json], token: str, agent: str, patience: float) -> None:
    """Find every marker here, or say which folder is another one.

    A network file system may show a new file late (an NFS client caches a folder for up to ``acdirmax`` seconds, but asks
    anew for a name it has not seen), hence ``patience`` in seconds.
    """
    deadline = time.monotonic() + patience
    for folder, mark in marks.items():
        while not _is_here(folder, mark, token):
            if time.monotonic() >= deadline:
                message = (
                    "session_mounts: %s: on %s it is another folder than on %s; mount the same one on every agent, or "
                    "give an NFS mount." % (folder, agent, mark["agent"])
                )
                raise ConflictError(message, agent)
            time.sleep(_INTERVAL)


def clear_marks(folders: Sequence[str], token: str) -> List[str]:
    """Remove the markers; those that were there are returned."""
    cleared = []
    for folder in folders:
        try:
            os.unlink(os.path.join(folder, _name(token)))
            cleared.append(folder)
        except OSError:
            continue
    return cleared


def unwritable(folders: Sequence[str], uid: int, gid: int) -> List[str]:
    """The folders in which this user may not make files, by owner and mode: root squashing and ACLs are not looked at."""
    refused = []
    for folder in folders:
        entry = os.stat(folder)
        if entry.st_uid == uid:
            allowed = entry.st_mode & stat.S_IWUSR
        elif entry.st_gid == gid:
            allowed = entry.st_mode & stat.S_IWGRP
        else:
            allowed = entry.st_mode & stat.S_IWOTH
        if not allowed:
            refused.append(folder)
    return refused


def _leave(folder: str, token: str) -> Json:
    try:
        handle = os.open(folder, _READABLE)
    except OSError as error:
        raise InputError("session_mounts", folder, "it must be a folder: %s" % error.strerror) from error
    try:
        os.close(os.open(_name(token), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=handle))
        return {"written": True}
    except OSError:
        entry = os.fstat(handle)
        return {"written": False, "inode": entry.st_ino, "changed": entry.st_mtime_ns}
    finally:
        os.close(handle)


def _is_here(folder: str, mark: Json, token: str) -> bool:
    try:
        if mark["written"]:
            # Listing makes a network file system look again; asking for a name alone may be answered from its cache.
            return _name(token) in os.listdir(folder)
        entry = os.stat(folder)
    except OSError:
        return False
    return (entry.st_ino, entry.st_mtime_ns) == (mark["inode"], mark["changed"])


def _name(token: str) -> str:
    return ".cluster-compute-%s" % token
