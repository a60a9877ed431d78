# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The folder of the session store as provisioning leaves it."""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass

from .._core.constants import STATE_DIR
from .._core.documents import Document
from .._core.errors import StateError
from .state_folder import PRIVATE, SHARED, is_shared, make_folder, share
from .store import Store

_OWN = re.compile(r"sessions\.db.*|policy\.json|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


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
            raise StateError(f"The state folder {folder} is a link or no folder: remove it.", folder)
        return cls(f"{stat.S_IMODE(entry.st_mode):04o}", entry.st_gid if is_shared(entry) else -1)


def desired(folder: str, gid: int | None) -> Folder:
    """The folder as it should be. ``gid`` is the group of the engine, if it has one."""
    before = Folder.of(folder)
    may_share = gid is not None and (os.geteuid() == 0 or gid in os.getgroups())
    if before.gid >= 0 or (before.mode and not _is_the_stores(folder, before)):
        return before
    if not may_share or gid is None:
        return before if before.mode else Folder(f"{PRIVATE:04o}", -1)
    return Folder(f"{SHARED:04o}", gid)


def provide(folder: str, wanted: Folder) -> None:
    """Make the folder so, and the store in it."""
    try:
        make_folder(folder, None)
        if wanted.gid >= 0:
            share(folder, wanted.gid)
    except OSError as error:
        message = f"The state folder {folder} cannot be created or shared: {error.strerror}; run this as root."
        raise StateError(message, folder) from error
    Store(folder).close()


def _is_the_stores(folder: str, before: Folder) -> bool:
    """Whether nothing but the store is in the folder, so that its mode may change."""
    if folder == STATE_DIR:
        return True
    entry = os.lstat(folder)
    is_own = entry.st_uid == os.geteuid() and before.mode in (f"{PRIVATE:04o}", f"{SHARED:04o}")
    return is_own and all(_OWN.fullmatch(name) for name in os.listdir(folder))
