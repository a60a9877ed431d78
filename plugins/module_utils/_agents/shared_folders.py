# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Checks that all agents see the same data folder: a mark that is written on one agent is found on the others."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import os
import stat
from functools import partial
from typing import Dict, List, Sequence, Tuple

from ansible_collections.cluster.compute.plugins.module_utils._core.errors import ConflictError, InputError
from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json
from ansible_collections.cluster.compute.plugins.module_utils._core.waiting import deadline_in, wait_until

_INTERVAL = 0.2
_READABLE = os.O_RDONLY | os.O_DIRECTORY


def write_marks(folders: Sequence[str], token: str) -> Tuple[Dict[str, Json], bool]:
    """Write a mark into each folder; returns the marks, and whether a mark was written that did not exist.

    A folder into which this user cannot write is recognized by its inode and the time of its last change.
    """
    written = [(folder, _write(folder, token)) for folder in folders]
    return {folder: mark for folder, (mark, _new) in written}, any(new for _folder, (_mark, new) in written)


def find_marks(marks: Dict[str, Json], token: str, agent: str, patience: float) -> None:
    """Find all marks on this agent; a ConflictError names a folder that differs.

    A network file system may show a new file late (an NFS client caches a folder for up to ``acdirmax`` seconds), hence
    ``patience`` in seconds, for all folders together.
    """
    deadline = deadline_in(patience)
    for folder, mark in marks.items():
        if not wait_until(partial(_is_here, folder, mark, token), deadline, _INTERVAL, _INTERVAL):
            message = (
                "session_mounts: %s: on %s it is another folder than on %s; mount the same folder on every agent, or "
                "use an NFS mount." % (folder, agent, mark["agent"])
            )
            raise ConflictError(message, agent)


def remove_marks(folders: Sequence[str], token: str) -> List[str]:
    """Remove the marks; returns the folders that had a mark."""
    removed = []
    for folder in folders:
        try:
            os.unlink(os.path.join(folder, _name(token)))
            removed.append(folder)
        except OSError:
            continue
    return removed


def unwritable(folders: Sequence[str], uid: int, gid: int) -> List[str]:
    """The folders in which this user cannot create files, by owner and mode; root squashing and ACLs are not considered."""
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


def _write(folder: str, token: str) -> Tuple[Json, bool]:
    """The folder's mark, and whether it is new."""
    try:
        handle = os.open(folder, _READABLE)
    except OSError as error:
        raise InputError("session_mounts", folder, "it must be a folder: %s" % error.strerror) from error
    try:
        os.close(os.open(_name(token), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=handle))
        return {"written": True}, True
    except FileExistsError:
        return {"written": True}, False
    except OSError:
        entry = os.fstat(handle)
        return {"written": False, "inode": entry.st_ino, "changed": entry.st_mtime_ns}, False
    finally:
        os.close(handle)


def _is_here(folder: str, mark: Json, token: str) -> bool:
    try:
        if mark["written"]:
            # A listing makes a network file system look again; a lookup of the name may be answered from a cache.
            return _name(token) in os.listdir(folder)
        entry = os.stat(folder)
    except OSError:
        return False
    return (entry.st_ino, entry.st_mtime_ns) == (mark["inode"], mark["changed"])


def _name(token: str) -> str:
    return ".cluster-compute-%s" % token
