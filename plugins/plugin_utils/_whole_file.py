# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Write a file into an open directory, complete or not at all. A link in its place is replaced and never followed."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import os
import secrets
from contextlib import suppress

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


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
