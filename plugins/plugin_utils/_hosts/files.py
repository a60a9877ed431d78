# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files that several controllers and their workers write: complete or not at all, and below the lock of their folder.

A link in the place of a file is replaced and never followed.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import secrets
import stat
from contextlib import contextmanager, suppress
from typing import Any, Iterator

from ...module_utils._shared.errors import ComputeError
from ...module_utils._shared.waiting import deadline_in, retry_until

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# Holders of the lock write a few small files. One that holds it longer is stopped, or its file system does not answer.
PATIENCE = 30.0
DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_REGULAR = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


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


def nice(document: Any) -> str:
    """A document as JSON for people and programs."""
    return json.dumps(document, indent=4, sort_keys=True)


def location(path: str) -> str:
    """A path of the controller, relative to the working directory of the command and not to the playbook."""
    return os.path.abspath(os.path.join(os.path.realpath(os.environ.get("PWD", ".")), os.path.expanduser(path)))


def write(path: str, text: str, mode: int, *, check: bool) -> bool:
    """Write a file of the controller, complete or not at all. Check mode writes none. Returns whether it changes the file.

    A link in the place of the file is replaced. Root follows no link on the way either: its owner could lead root anywhere.
    """
    whole, content = location(path), text.encode()
    try:
        with _opened(os.path.dirname(whole)) as directory:
            name = os.path.basename(whole)
            if _read(name, directory) == content:
                return False
            if not check:
                replace(directory, name, content, mode)
    except OSError as error:
        raise ComputeError(f"{whole} cannot be written: {_remedy(error, whole)}.") from error
    return True


def _remedy(error: OSError, path: str) -> str:
    real = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    if os.geteuid() == 0 and real != path:
        return f"a directory in this path is a link, which root does not follow; name {real}"
    return f"{error.strerror}; name another file"


@contextmanager
def _opened(path: str) -> Iterator[int]:
    """A directory, open for the time of the context. Root opens each part by itself, so that none can become a link meanwhile."""
    if path.strip("/") == "dev":  # root would replace /dev/null or /dev/stdout
        raise OSError(errno.EINVAL, "it is in /dev, the directory of devices")
    parts = path.split("/")[1:] if os.geteuid() == 0 else [path]
    handle = os.open("/", DIRECTORY)
    try:
        for part in filter(None, parts):
            inner = os.open(part, DIRECTORY | (os.O_NOFOLLOW if os.geteuid() == 0 else 0), dir_fd=handle)
            os.close(handle)
            handle = inner
        yield handle
    finally:
        os.close(handle)


def _read(name: str, directory: int) -> bytes | None:
    """The content of a file; None if there is none that can be read, or something else, such as a link or a pipe."""
    with suppress(OSError), open(os.open(name, _REGULAR, dir_fd=directory), "rb") as file:
        if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return file.read()
    return None
