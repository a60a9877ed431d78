# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files that several controllers and their workers write: complete or not at all, and below the lock of their folder.

A link in the place of a file is replaced and never followed.
"""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import errno
import fcntl
import os
import secrets
from contextlib import suppress

from ..module_utils._core.waiting import deadline_in, retry_until

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# Holders of the lock write a few small files. One that holds it longer is stopped, or its file system does not answer.
PATIENCE = 30.0


def replace(directory: int, name: str, content: bytes, mode: int = 0o600) -> None:
    """Give the file this content and mode."""
    temporary = draft(directory, name, content, mode)
    try:
        os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException:
        os.unlink(temporary, dir_fd=directory)
        raise


def draft(directory: int, name: str, content: bytes, mode: int = 0o600) -> str:
    """Write the content to a new file, and return its name: a dot, the name, and a random suffix."""
    temporary = f".{name}.{secrets.token_hex(8)}"
    handle = os.open(temporary, _NEW, 0o600, dir_fd=directory)
    try:
        with os.fdopen(handle, "wb") as file:
            os.fchmod(handle, mode)
            file.write(content)
            file.flush()
            os.fsync(handle)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=directory)
        raise
    return temporary


def lock_folder(handle: int, seconds: float = PATIENCE) -> None:
    """Take the exclusive lock of an open folder; it ends with the handle. Raises a TimeoutError after these seconds."""
    try:
        retry_until(
            lambda: fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB),
            lambda error: isinstance(error, BlockingIOError),
            deadline_in(seconds),
        )
    except BlockingIOError as error:
        raise TimeoutError(errno.ETIMEDOUT, f"another process has held its lock for {seconds:g} s") from error
