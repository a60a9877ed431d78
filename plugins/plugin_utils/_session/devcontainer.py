# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The variables of a launch that come from a C(devcontainer.json) on the controller."""

from __future__ import annotations

import os
import stat
from typing import Any, Dict

from ...module_utils._shared.errors import InputError, escape_control
from .._hosts.conductor import Play
from .._hosts.holder import login
from .._variables.devcontainer import LONGEST, VARIABLE, devcontainer
from .session_file import LIKE

_FOLDER = ".devcontainer"


def of_devcontainer(play: Play) -> Dict[str, Any]:
    """The variables of the file that the user names; none without. Warns once of all keys that have no effect."""
    path = play.value(VARIABLE)
    if not path:
        return {}
    if play.value(LIKE):
        raise InputError(VARIABLE, path, f"must not be given with {LIKE}: both give the same variables")
    full = os.path.abspath(os.path.expanduser(str(path)))
    variables, ignored = devcontainer(_read(full), _project(full), os.environ, play.value("session_image"), login())
    if ignored:
        names = escape_control(", ".join(ignored))[:1000]
        play.warn(f"{path}: a session does not support these keys, and ignores them: {names}.")
    return variables


def _read(path: str) -> str:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, encoding="utf-8-sig") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise InputError(VARIABLE, path, "must be a regular file")
            return file.read(LONGEST + 1)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise InputError(VARIABLE, path, f"must be a file that the controller can read: {reason}") from None


def _project(path: str) -> str:
    """The directory that has C(.devcontainer.json), C(.devcontainer/devcontainer.json) or C(.devcontainer/NAME/devcontainer.json)."""
    folder = os.path.dirname(path)
    for above in (folder, os.path.dirname(folder)):
        if os.path.basename(above) == _FOLDER:
            return os.path.dirname(above)
    return folder
