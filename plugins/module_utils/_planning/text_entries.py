# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lists and dictionaries as lines of text, which a form or C(-e name=value) can give."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import json
from typing import Any, Callable, Dict, List

from .._core.errors import InputError


def from_text(variable: str, value: Any) -> Any:
    """The value of a variable that a user has written as text, one entry in each line. Other values stay as they are.

    >>> from_text("session_apps", "jupyterlab\\n")
    ['jupyterlab']
    >>> from_text("session_environment", "A=1\\nB=x=y")
    {'A': '1', 'B': 'x=y'}
    """
    read = _READ.get(variable)
    if read is None or not isinstance(value, str):
        return value
    return read(variable, [line.strip() for line in value.splitlines() if line.strip()])


def _entries(variable: str, lines: List[str]) -> List[Any]:
    return [_entry(variable, line) for line in lines]


def _entry(variable: str, line: str) -> Any:
    if not line.startswith("{"):
        return line
    try:
        return json.loads(line)
    except ValueError as error:
        raise InputError(variable, line, f"must be JSON, because it begins with {{: {error}") from error


def _pairs(variable: str, lines: List[str]) -> Dict[str, str]:
    for line in lines:
        if "=" not in line:
            raise InputError(variable, line, "must be NAME=value, one in each line")
    return {name.strip(): text for name, _equals, text in (line.partition("=") for line in lines)}


_READ: Dict[str, Callable[[str, List[str]], Any]] = {
    "session_apps": _entries,
    "session_environment": _pairs,
    "session_mounts": _entries,
}
