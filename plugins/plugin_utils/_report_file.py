# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reports in files of the controller."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import json
import os
import tempfile
from contextlib import suppress
from typing import Any

from ..module_utils._core.errors import ComputeError


def nice(document: Any) -> str:
    """A document as JSON for people and programs."""
    return json.dumps(document, indent=4, sort_keys=True)


def location(path: str) -> str:
    """A path of the controller, relative to the working directory of the command and not to the playbook."""
    return os.path.abspath(os.path.join(os.environ.get("PWD", os.getcwd()), os.path.expanduser(path)))


def write(path: str, text: str, mode: int, *, check: bool) -> bool:
    """Write a file of the controller, complete or not at all. Check mode writes none. Returns whether it changes the file."""
    whole = location(path)
    with suppress(OSError), open(whole, "rb") as written:
        if written.read() == text.encode():
            return False
    if check:
        return True
    try:
        handle, temporary = tempfile.mkstemp(dir=os.path.dirname(whole), prefix=".cluster-compute-")
        with os.fdopen(handle, "wb") as file:
            os.fchmod(handle, mode)
            file.write(text.encode())
        os.replace(temporary, whole)
    except OSError as error:
        raise ComputeError(f"{whole} cannot be written: {error.strerror}; name another file.") from error
    return True
