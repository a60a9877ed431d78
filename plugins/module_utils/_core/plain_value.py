# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What holds for the value of every variable: its numbers and texts can be computed with, printed and stored."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from functools import wraps
from typing import Any, Callable, Iterator, List, Mapping, Tuple

from .errors import InputError

_MOST = 1 << 63
# The longest text: scripts are the longest values, and a plan with all values travels with each call of a module.
_LONGEST = 1 << 20
# Values in lists and dictionaries, and their nesting.
_MOST_VALUES, _DEEPEST = 100_000, 20

Check = Callable[[str, Any], Any]


def checked(check: Check) -> Check:
    """The rule of a variable, with these rules before it."""
    if hasattr(check, "__wrapped__"):
        return check

    @wraps(check)
    def both(variable: str, value: Any) -> Any:
        check_plain(variable, value)
        return check(variable, value)

    return both


def check_plain(variable: str, value: Any) -> None:
    """Raise InputError for a number without a use, and for text that has no encoding or is too long."""
    for count, (depth, item) in enumerate(_walk(value)):
        if count > _MOST_VALUES or depth > _DEEPEST:
            raise InputError(variable, "a nested value", "must have at most %d values" % _MOST_VALUES)
        if isinstance(item, (int, float)) and not -_MOST < item < _MOST:
            raise InputError(variable, item, "must be a number below 2^63")
        if isinstance(item, str):
            _check_text(variable, item)


def _check_text(variable: str, text: str) -> None:
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise InputError(variable, text, "must be Unicode text without lone surrogates") from None
    if size > _LONGEST:
        raise InputError(variable, text, "must have at most %d bytes" % _LONGEST)


def _walk(value: Any) -> Iterator[Tuple[int, Any]]:
    """The value and all values in it, with their depth. A value that contains itself goes on until the caller stops."""
    waiting: List[Tuple[int, Any]] = [(0, value)]
    while waiting:
        depth, item = waiting.pop()
        yield depth, item
        if isinstance(item, Mapping):
            waiting += [(depth + 1, part) for pair in item.items() for part in pair]
        elif isinstance(item, (list, tuple)):
            waiting += [(depth + 1, part) for part in item]
