# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The folder on the head that holds the session store, and the logs of sessions that have ended."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import os
import stat
from typing import List, Sequence

from ansible_collections.cluster.compute.plugins.module_utils._core.errors import StateError
from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json

SYSTEM_DIR = "/var/lib/cluster-compute"


def state_dir(wanted: str | None) -> str:
    """The folder of the store: the given path, else the system's folder for root and the user's own for other users."""
    if wanted:
        return os.path.expanduser(wanted)
    if os.geteuid() == 0:
        return SYSTEM_DIR
    return os.path.expanduser("~/.local/state/cluster-compute")


def make_private(folder: str, path: str) -> None:
    """Create a file of mode 0600 in a folder of this user. Neither may be a link, which could lead root to write elsewhere.

    An existing folder keeps its mode, because other users may need it (``/tmp``, ``/srv``).
    """
    _make_folder(folder)
    if stat.S_IMODE(os.lstat(folder).st_mode) & 0o077 and not _is_ours(path):
        raise StateError(
            "The state folder %s exists and is open to other users, and the store must be private: set a folder that does "
            "not exist, or that only you can read (mode 0700)." % folder, folder)  # fmt: skip
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise StateError("The session store %s cannot be opened: %s." % (path, error.strerror), path) from error
    with os.fdopen(handle):
        if stat.S_IMODE(os.fstat(handle).st_mode) & 0o077:
            os.fchmod(handle, 0o600)


def keep_logs(folder: str, results: Sequence[Json]) -> None:
    """Keep the log of each container as a file in the folder of its session."""
    _make_folder(folder)
    try:
        for result in results:
            for log in result.get("logs") or []:
                _keep_log(folder, log)
    except OSError as error:
        message = "Not all logs could be kept in %s: %s; free some space there." % (folder, error.strerror)
        raise StateError(message, folder) from error


def _keep_log(folder: str, log: Json) -> None:
    path = os.path.join(folder, os.path.basename("%s.log" % log["hostname"]))
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    with os.fdopen(os.open(path, flags, 0o600), "w", encoding="utf-8") as file:
        file.write(log["text"])


def kept_logs(folder: str) -> List[Json]:
    """The logs that ``keep_logs`` kept, by hostname; empty if there are none."""
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    logs = []
    for name in names:
        if name.endswith(".log"):
            with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
                logs.append({"hostname": name[: -len(".log")], "state": "ended", "text": file.read()})
    return logs


def _is_ours(path: str) -> bool:
    """Whether this user's store is there already, so that its folder was accepted before."""
    try:
        entry = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISREG(entry.st_mode) and entry.st_uid == os.geteuid()


def _make_folder(folder: str) -> None:
    """Create a folder of mode 0700. An existing folder is not changed, and refused if it is not this user's."""
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
    except FileExistsError:
        pass
    except OSError as error:
        raise StateError("The state folder %s cannot be created: %s." % (folder, error.strerror), folder) from error
    entry = os.lstat(folder)
    if not stat.S_ISDIR(entry.st_mode) or entry.st_uid != os.geteuid():
        raise StateError(
            "The state folder %s is a link or belongs to another user: remove it, or set another folder." % folder,
            folder,
        )
