# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The logs of sessions that have ended: a folder for each session, beside the store, with the rights of the store's folder.

Several users may write to the folder, so nothing here follows a link.
"""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import suppress
from typing import Iterable, List, Sequence, Set, Tuple

from .._shared.codec import Json
from .._shared.documents.schema import UUID
from .._shared.documents.step_documents import ContainerLog
from .._shared.errors import StateError
from .state_folder import PRIVATE, SHARED, is_shared_store, opened, set_rights

_SUFFIX = ".log"
# Neither a link nor a pipe that blocks.
_NO_SURPRISE = os.O_NOFOLLOW | os.O_NONBLOCK


def keep_logs(folder: str, session_id: str, results: Sequence[Json]) -> None:
    """Keep the log of each container as a file in the folder of its session."""
    try:
        os.makedirs(folder, mode=PRIVATE, exist_ok=True)
        with opened(folder) as state:
            with suppress(FileExistsError):
                os.mkdir(session_id, PRIVATE, dir_fd=state)
            with opened(session_id, state) as own:
                _keep_all(own, os.fstat(state), [log for result in results for log in result.get("logs") or ()])
    except OSError as error:
        message = "Not all logs could be kept in %s: %s; free some space there."
        raise StateError(message % (os.path.join(folder, session_id), error.strerror), folder) from error


def kept_logs(folder: str, session_id: str) -> List[ContainerLog]:
    """The logs that ``keep_logs`` kept, by hostname; empty if there are none."""
    try:
        with opened(folder) as state, opened(session_id, state) as own:
            return [_read_log(own, name) for name in sorted(os.listdir(own)) if name.endswith(_SUFFIX)]
    except FileNotFoundError:
        return []
    except OSError as error:
        message = f"The logs in {os.path.join(folder, session_id)} cannot be read: {error.strerror}."
        raise StateError(message, folder) from error


def _read_log(own: int, name: str) -> ContainerLog:
    handle = os.open(name, os.O_RDONLY | _NO_SURPRISE, dir_fd=own)
    with os.fdopen(handle, encoding="utf-8", errors="replace") as file:
        return ContainerLog(name[: -len(_SUFFIX)], "ended", file.read())


def _keep_all(own: int, folder: os.stat_result, logs: Sequence[Json]) -> None:
    """Write the logs. The folder of a session gets the rights of the state directory if it is this user's."""
    if is_shared_store(folder) and os.fstat(own).st_uid == os.geteuid():
        os.fchown(own, -1, folder.st_gid)
        os.fchmod(own, SHARED)
    for log in logs:
        name = os.path.basename(f"{log['hostname']}{_SUFFIX}")
        handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _NO_SURPRISE, 0o600, dir_fd=own)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            set_rights(handle, folder)
            file.write(log["text"])


def surplus_logs(folder: str, live: Set[str], log_bytes: int) -> List[str]:
    """The ended sessions whose logs do not fit into ``log_bytes`` beside the logs of sessions that ended later."""
    if not log_bytes:
        return []
    surplus, total = [], 0
    for _changed, session, size in sorted(_log_folders(folder), reverse=True):
        total += size
        if total > log_bytes and session not in live:
            surplus.append(session)
    return surplus


def remove_logs(folder: str, sessions: Iterable[str]) -> None:
    """Remove the kept logs of these sessions."""
    for session in sessions:
        path = os.path.join(folder, session)
        if UUID(session) and _is_folder(path):
            # It does not follow links; what cannot be removed now is tried again by the next pass.
            shutil.rmtree(path, ignore_errors=True)


def _log_folders(folder: str) -> List[Tuple[float, str, int]]:
    """The time, the session and the bytes of each folder of logs."""
    found = []
    for name in os.listdir(folder) if os.path.isdir(folder) else []:
        path = os.path.join(folder, name)
        # The pass of another owner may remove it meanwhile, and a killed end leaves it private to its user.
        with suppress(OSError):
            if UUID(name) and _is_folder(path):
                sizes = [entry.stat(follow_symlinks=False).st_size for entry in os.scandir(path)]
                found.append((os.lstat(path).st_mtime, name, sum(sizes)))
    return found


def _is_folder(path: str) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False
