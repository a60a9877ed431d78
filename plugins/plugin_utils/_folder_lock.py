# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lock of a folder on the controller, which several controllers and their workers share."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import errno
import fcntl

from ..module_utils._core.waiting import deadline_in, retry_until

# Holders of the lock write a few small files. One that holds it longer is stopped, or its file system does not answer.
PATIENCE = 30.0


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
