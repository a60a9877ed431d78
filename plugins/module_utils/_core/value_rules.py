# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules of plain values: each returns the normal form of a value, or raises one sentence with variable, value and rule."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Callable, Generic, TypeVar

from .errors import InputError
from .units import parse_bytes, show_bytes

LEAST_LOG, LEAST_DISK = 64 << 10, 16 << 20
# The grammar of https://github.com/distribution/reference: a registry, components in lower case, a tag, a digest.
_COMPONENT = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_IMAGE = re.compile(
    rf"(?=.{{1,512}}\Z)(?:(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\])(?::[0-9]+)?/)?{_COMPONENT}(?:/{_COMPONENT})*"
    r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@[a-z0-9]+:[0-9a-f]{32,})?"
)


def check_whole(variable: str, value: Any, least: int, most: int) -> int:
    number = value
    if isinstance(value, str) and re.fullmatch(r"[+-]?[0-9]{1,18}", value.strip()):
        number = int(value.strip())
    if isinstance(number, bool) or not isinstance(number, int) or not least <= number <= most:
        raise InputError(variable, value, "must be a whole number from %d to %d" % (least, most))
    return number


_Number = TypeVar("_Number", int, float)


@dataclass(frozen=True)
class Bounds(Generic[_Number]):
    """The rule of a number. Editors read its bounds in the schema of a session file."""

    rule: Callable[[str, Any, int, int], _Number]
    least: int
    most: int

    def __call__(self, variable: str, value: Any) -> _Number:
        return self.rule(variable, value, self.least, self.most)


def within(least: int, most: int) -> Bounds[int]:
    """The rule of a whole number."""
    return Bounds(check_whole, least, most)


def one_of(*choices: str) -> Callable[[str, Any], str]:
    def check(variable: str, value: Any) -> str:
        if value not in choices:
            raise InputError(variable, value, f"must be one of: {', '.join(choices)}")
        return str(value)

    return check


def check_boolean(variable: str, value: Any) -> bool:
    known = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    if str(value).lower() not in known:
        raise InputError(variable, value, "must be true or false")
    return known[str(value).lower()]


def check_text(variable: str, value: Any) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise InputError(variable, value, "must be a string")
    return value


def check_image(variable: str, value: Any) -> str:
    if not isinstance(value, str) or not _IMAGE.fullmatch(value):
        raise InputError(variable, value, "must be an image reference, as in registry/name:tag or name@sha256:…")
    return value


def check_log_size(variable: str, value: Any) -> int:
    size = parse_bytes(value, variable)
    if size < LEAST_LOG:
        raise InputError(variable, value, f"must be at least {show_bytes(LEAST_LOG)}")
    return size


def check_disk(variable: str, value: Any) -> int:
    size = parse_bytes(value, variable)
    if 0 < size < LEAST_DISK:
        raise InputError(variable, value, f"must be 0 for no limit, or at least {show_bytes(LEAST_DISK)}")
    return size
