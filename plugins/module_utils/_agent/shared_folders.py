# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Checks that all agents see the same data folder: a mark that is written on one agent is found on the others."""

from __future__ import annotations

import os
import stat
from contextlib import ExitStack, suppress
from functools import partial
from typing import Any, Callable, Dict, List, Sequence, Tuple

from .._shared.codec import Json
from .._shared.errors import ComputeError, ConflictError, InputError
from .._shared.subprocess_call import PATIENCE, ForkedCall, SilentError, call_with_timeout, unresponsive_mount
from .._shared.waiting import deadline_in, wait_until
from .engine.data_folders import open_permitted, permitted_above

_INTERVAL = 0.2
_READABLE = os.O_RDONLY | os.O_DIRECTORY


def write_marks(
    folders: Sequence[str], token: str, agent: str, seconds: float = PATIENCE, permitted: Sequence[str] = ()
) -> Tuple[Dict[str, Json], bool]:
    """Write a mark into each folder; returns the marks, and whether a mark was written that did not exist.

    A folder into which this user cannot write is recognized by its inode and the time of its last change. Each folder has
    ``seconds`` to answer. Below a folder of ``permitted``, whose users can make links, no link is followed.
    """
    opens = {folder: partial(_open, folder, agent, permitted_above(folder, permitted)) for folder in folders}
    written = [(folder, _written(folder, opens[folder], token, agent, seconds)) for folder in folders]
    return {folder: mark for folder, (mark, _new) in written}, any(new for _folder, (_mark, new) in written)


def find_marks(marks: Dict[str, Json], token: str, agent: str, patience: float, seconds: float = PATIENCE) -> None:
    """Find all marks on this agent; a ConflictError names a folder that differs.

    A network file system may show a new file late (an NFS client caches a folder for up to ``acdirmax`` seconds), hence
    ``patience`` in seconds, for all folders together. Each look has ``seconds`` for an answer.
    """
    deadline = deadline_in(patience)
    for folder, mark in marks.items():
        look = partial(_in_time, partial(_is_here, folder, mark, token), folder, agent, seconds)
        if not wait_until(look, deadline, _INTERVAL, _INTERVAL):
            message = (
                "session_mounts: {}: on {} it is another directory than on {}; mount the same directory on every agent, or "
                "use an NFS mount.".format(folder, agent, mark["agent"])
            )
            raise ConflictError(message, agent)


def remove_marks(
    folders: Sequence[str], token: str, agent: str = "", seconds: float = PATIENCE, permitted: Sequence[str] = ()
) -> List[str]:
    """Remove the marks; returns the folders that had a mark. A folder that does not answer keeps it."""
    opens = {folder: partial(_open, folder, agent, permitted_above(folder, permitted)) for folder in folders}
    pending = {folder: ForkedCall(partial(_remove, opens[folder], token)) for folder in folders}
    deadline = deadline_in(seconds)
    removed = []
    for folder, one in pending.items():
        with suppress(OSError, SilentError, InputError):
            one.value(deadline)
            removed.append(folder)
    return removed


def read_only(folders: Sequence[str], agent: str, seconds: float = PATIENCE) -> List[str]:
    """The folders that this host has mounted read-only: no container can write there, whatever its user."""
    found = [os.statvfs_result(_in_time(partial(os.statvfs, one), one, agent, seconds)) for one in folders]
    return [folder for folder, one in zip(folders, found) if one.f_flag & os.ST_RDONLY]


def unwritable(folders: Sequence[str], uid: int, gid: int, agent: str, seconds: float = PATIENCE) -> List[str]:
    """The folders in which this user cannot create files, by owner and mode; root squashing and ACLs are not considered."""
    refused = []
    for folder in folders:
        found = os.stat_result(_in_time(partial(os.stat, folder), folder, agent, seconds))
        allowed = stat.S_IWUSR if found.st_uid == uid else stat.S_IWGRP if found.st_gid == gid else stat.S_IWOTH
        if not found.st_mode & allowed:
            refused.append(folder)
    return refused


def _open(folder: str, agent: str, permitted: str, opened: ExitStack) -> int:
    """A descriptor of a folder, for nothing but a look at it. An InputError names a link below the permitted folder."""
    if permitted:
        return open_permitted(permitted, folder.rstrip("/"), agent, opened)
    found = os.open(folder, os.O_PATH | os.O_CLOEXEC)
    opened.callback(os.close, found)
    return found


def _remove(opening: Callable[[ExitStack], int], token: str) -> None:
    with ExitStack() as opened:
        os.unlink(_name(token), dir_fd=opening(opened))


def _in_time(call: Callable[[], Any], folder: str, agent: str, seconds: float) -> Any:
    """The value of a call that looks at a folder; a ComputeError if the folder does not answer."""
    try:
        return call_with_timeout(call, seconds)
    except SilentError as error:
        raise ComputeError(unresponsive_mount(folder, agent), agent) from error


def _written(
    folder: str, opening: Callable[[ExitStack], int], token: str, agent: str, seconds: float
) -> Tuple[Json, bool]:
    try:
        mark, new = _in_time(partial(_write, opening, token), folder, agent, seconds)
    except OSError as error:
        raise InputError("session_mounts", folder, f"it must be a directory: {error.strerror}") from error
    return mark, new


def _write(opening: Callable[[ExitStack], int], token: str) -> Tuple[Json, bool]:
    """A file server that squashes root can keep root of this host out of a folder of mode 700, and shows its inode."""
    with ExitStack() as opened:
        place = opening(opened)
        try:
            folder = os.open(".", _READABLE, dir_fd=place)
        except PermissionError:
            return _recognized(os.fstat(place)), False
        opened.callback(os.close, folder)
        try:
            os.close(os.open(_name(token), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=folder))
        except FileExistsError:
            return {"written": True}, False
        except OSError:
            return _recognized(os.fstat(folder)), False
        return {"written": True}, True


def _recognized(entry: os.stat_result) -> Json:
    return {"written": False, "inode": entry.st_ino, "changed": entry.st_mtime_ns}


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
    return f".cluster-compute-{token}"
