# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The folder on the head that holds the session store, and the logs of sessions that have ended.

Provisioning or the first use creates it: shared with a group (mode 2770, of root) or private (mode 0700). Everything in it has the
same rights.
"""

from __future__ import annotations

import grp
import os
import re
import stat
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Iterator, List

from .._shared.codec import Document
from .._shared.constants import DOCKER_HOST, STATE_DIR
from .._shared.errors import StateError

SHARED, PRIVATE = 0o2770, 0o700
_UNIX = "unix://"
_OWN = re.compile(r"sessions\.db.*|policy\.json|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def state_dir(wanted: str | None) -> str:
    """The folder of the store: the given path, else the folder that all users of the head share."""
    return os.path.expanduser(wanted) if wanted else STATE_DIR


def is_shared_store(entry: os.stat_result) -> bool:
    """Return whether a folder is for its group and for no other user."""
    return stat.S_IMODE(entry.st_mode) & (SHARED | 0o007) == SHARED


def file_mode(folder: os.stat_result) -> int:
    """The mode of a file in the folder."""
    return 0o660 if is_shared_store(folder) else 0o600


def prepare_directory(folder: str, path: str) -> None:
    """Create the file of the store, for this user alone or for the group of the folder.

    Neither may be a link, which could lead root to write elsewhere. An existing folder keeps its mode, because other users may
    need it (``/tmp``, ``/srv``).
    """
    entry = _folder(folder)
    if not is_shared_store(entry) and stat.S_IMODE(entry.st_mode) & 0o077 and not _is_ours(path):
        raise StateError(
            f"The state directory {folder} exists and is open to other users, and the store must be private: set a directory that "
            "does not exist, or that only you can read (mode 0700).", folder)  # fmt: skip
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, file_mode(entry))
    except PermissionError as error:
        raise _refused(folder, entry) from error
    except OSError as error:
        raise StateError(f"The session store {path} cannot be opened: {error.strerror}.", path) from error
    with os.fdopen(handle):
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
            raise StateError(f"The session store {path} is no file, or has a second name: remove it.", path)
        set_rights(handle, entry)


def check_readable(folder: str) -> None:
    """Refuse a folder that this user cannot enter: its store would look empty. There may be no folder."""
    if os.path.isdir(folder) and not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        raise _refused(folder, os.lstat(folder))
    if folder == STATE_DIR and os.geteuid() != 0 and not os.path.isdir(folder):
        raise _missing(folder)


def is_filled(path: str) -> bool:
    """Return whether there is a store with its tables: a process may have ended right after it created the file."""
    try:
        entry = os.lstat(path)
    except OSError:
        return False
    if not stat.S_ISREG(entry.st_mode):
        raise StateError(f"The session store {path} is a link or no file: remove it.", path)
    return entry.st_size > 0


def set_rights(handle: int, folder: os.stat_result) -> None:
    """Give an open file the group and the mode of the files in this folder, if it is this user's or this user is root."""
    status = os.fstat(handle)
    if os.geteuid() not in (0, status.st_uid):
        return
    if is_shared_store(folder) and status.st_gid != folder.st_gid:
        os.fchown(handle, -1, folder.st_gid)
    wanted = file_mode(folder)
    if stat.S_IMODE(status.st_mode) & 0o777 != wanted:
        os.fchmod(handle, wanted)


def make_folder(folder: str, gid: int | None) -> None:
    """Create a folder for this group, or for this user alone."""
    os.makedirs(folder, mode=PRIVATE, exist_ok=True)
    if gid is not None:
        share(folder, gid)


@contextmanager
def opened(name: str, parent: int | None = None, kind: int = os.O_DIRECTORY) -> Iterator[int]:
    """A folder, or another kind of file, which may not be a link."""
    handle = os.open(name, os.O_RDONLY | kind | os.O_NOFOLLOW, dir_fd=parent)
    try:
        yield handle
    finally:
        os.close(handle)


def share(folder: str, gid: int) -> None:
    """Share a folder of this user, and the store in it, with a group."""
    with opened(folder) as handle:
        _share(handle, gid)


def _share(handle: int, gid: int) -> None:
    """Share an open folder with its files, and with folders of logs; links stay as they are."""
    os.fchown(handle, -1, gid)
    os.fchmod(handle, SHARED)
    for name in os.listdir(handle):
        status = os.stat(name, dir_fd=handle, follow_symlinks=False)
        if stat.S_ISDIR(status.st_mode):
            with opened(name, handle) as folder:
                _share(folder, gid)
        elif stat.S_ISREG(status.st_mode) and status.st_nlink == 1:
            with opened(name, handle, kind=0) as file:
                set_rights(file, os.fstat(handle))


def engine_group(docker_host: str = "") -> int | None:
    """The group that may use the engine of this host, from the engine's socket; None if only root may, or there is no socket."""
    address = docker_host or os.environ.get("DOCKER_HOST") or DOCKER_HOST
    try:
        status = os.stat(address[len(_UNIX) :]) if address.startswith(_UNIX) else None
    except OSError:
        return None
    is_open = status is not None and stat.S_ISSOCK(status.st_mode) and status.st_mode & 0o060 == 0o060
    return status.st_gid if status is not None and is_open and status.st_gid else None


def _is_ours(path: str) -> bool:
    """Return whether this user's store is there already, so that its folder was accepted before."""
    try:
        entry = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISREG(entry.st_mode) and entry.st_uid == os.geteuid()


def _folder(folder: str) -> os.stat_result:
    """The state directory, which is created if it is missing: for root, it is the one that all users of the engine share.

    An existing folder is not changed. It is refused if it is another user's, unless root or that user shares it.
    """
    try:
        if folder == STATE_DIR and not os.path.lexists(folder):
            if os.geteuid() != 0:
                raise _missing(folder)
            make_folder(folder, engine_group())
        os.makedirs(folder, mode=PRIVATE, exist_ok=True)
    except FileExistsError:
        pass
    except OSError as error:
        raise StateError(f"The state directory {folder} cannot be created: {error.strerror}.", folder) from error
    entry = os.lstat(folder)
    is_folder, is_own = stat.S_ISDIR(entry.st_mode), entry.st_uid == os.geteuid()
    if is_folder and folder == STATE_DIR and not is_own and not is_shared_store(entry):
        raise _refused(folder, entry)
    if not is_folder or not (is_own or (entry.st_uid == 0 and is_shared_store(entry))):
        raise StateError(
            f"The state directory {folder} is a link or belongs to another user: remove it, or set another directory.",
            folder,
        )
    return entry


def _missing(folder: str) -> StateError:
    message = "This head has no session store (%s): run provision_agents.yml as a user who can become root."
    return StateError(message % folder, folder)


def _refused(folder: str, entry: os.stat_result) -> StateError:
    """Why this user cannot use the store."""
    if is_shared_store(entry):
        message = "The session store in %s is shared by group %s: add this user to that group, or become root."
        return StateError(message % (folder, _group_name(entry.st_gid)), folder)
    message = (
        "The session store in %s is private to another user: run provision_agents.yml as a user who can become root; it "
        "shares the store with the users of the engine."
    )
    return StateError(message % folder, folder)


def _group_name(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)


@dataclass(frozen=True)
class Folder(Document):
    """Mode and group of a folder: an empty mode if there is none, and the group -1 if it is not shared."""

    mode: str
    gid: int

    @classmethod
    def of(cls, folder: str) -> Folder:
        try:
            entry = os.lstat(folder)
        except FileNotFoundError:
            return cls("", -1)
        if not stat.S_ISDIR(entry.st_mode):
            raise StateError(f"The state directory {folder} is a link or no directory: remove it.", folder)
        return cls(f"{stat.S_IMODE(entry.st_mode):04o}", entry.st_gid if is_shared_store(entry) else -1)


def desired(folder: str, gid: int | None) -> Folder:
    """The folder as it should be. ``gid`` is the group of the engine, if it has one."""
    before = Folder.of(folder)
    if before.gid >= 0 or (before.mode and not _is_the_stores(folder, before)):
        return before
    if gid is None or not (os.geteuid() == 0 or gid in os.getgroups()):
        return before if before.mode else Folder(f"{PRIVATE:04o}", -1)
    return Folder(f"{SHARED:04o}", gid)


def provide_directory(folder: str, wanted: Folder) -> None:
    """Create the directory, or change its mode and group."""
    try:
        make_folder(folder, wanted.gid if wanted.gid >= 0 else None)
    except OSError as error:
        message = f"The state directory {folder} cannot be created or shared: {error.strerror}; run this as root."
        raise StateError(message, folder) from error


def _is_the_stores(folder: str, before: Folder) -> bool:
    """Return whether nothing but the store is in the folder, so that its mode may change."""
    if folder == STATE_DIR:
        return True
    entry = os.lstat(folder)
    is_own = entry.st_uid == os.geteuid() and before.mode in (f"{PRIVATE:04o}", f"{SHARED:04o}")
    return is_own and all(_OWN.fullmatch(name) for name in os.listdir(folder))


# A line: number, kind, ADVISORY, READ or WRITE, PID, MAJOR:MINOR:INODE, and the range of bytes. A process that waits has an arrow.
_LOCKS = "/proc/locks"


def lock_holders(path: str, table: str = _LOCKS) -> List[str]:
    """One entry for each process, such as ``process 712 (python3) locks it``; none if the kernel does not say."""
    try:
        inode = str(os.stat(path).st_ino)
        with open(table, encoding="ascii", errors="replace") as lines:
            locks = [line.split() for line in lines]
    except OSError:
        return []
    # A process of another PID namespace has the number 0 there.
    holders = {
        int(lock[4]) for lock in locks if lock[1] != "->" and lock[5].rpartition(":")[2] == inode and lock[4] != "0"
    }
    return ["process %d%s locks it" % (pid, _program(pid)) for pid in sorted(holders - {-1, os.getpid()})]


def _program(pid: int) -> str:
    try:
        with open("/proc/%d/comm" % pid, encoding="utf-8", errors="replace") as name:
            return f" ({name.read().strip()})"
    except OSError:
        return ""
