# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reports in files of the controller."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import json
import os
import stat
from contextlib import contextmanager, suppress
from typing import Any, Iterator

from ..module_utils._core.errors import ComputeError
from ._whole_file import replace

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_REGULAR = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


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
    parts = path.split("/")[1:] if os.geteuid() == 0 else [path]
    handle = os.open("/", _DIRECTORY)
    try:
        for part in filter(None, parts):
            inner = os.open(part, _DIRECTORY | (os.O_NOFOLLOW if os.geteuid() == 0 else 0), dir_fd=handle)
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
