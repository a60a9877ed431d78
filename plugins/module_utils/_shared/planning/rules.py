# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules of single variables: the normal form of a value, or one message with variable, value and rule.

The rules for amounts, names, and general values are in ``units.py``, ``names.py`` and ``value_rules.py``.
"""

from __future__ import annotations

import re
from datetime import datetime, timezone
from typing import Any, Tuple

from ..documents.plan import User
from ..errors import InputError
from ..names import check_session_name
from ..units import parse_port_range
from ..value_rules import Bounds, check_entry, check_list, check_names, check_whole
from .addresses import check_pools

# The longest time that a session may wait, and the normal form of a moment.
YEAR = 365 * 86400
UTC_FORMAT = "%Y-%m-%dT%H:%M:%SZ"
_MOST_NAMES = 100
_RULE = (
    "must be a date and time with a time zone, as in 2026-12-24T18:00:00+01:00, or a whole number of seconds after the request, "
    "up to %d" % YEAR
)


def seconds_up_to(most: int) -> Bounds[float]:
    """The rule of a number of seconds, which may have a fraction."""
    return Bounds(_check_seconds, 0, most)


def _check_seconds(variable: str, value: Any, least: int, most: int) -> float:
    try:
        seconds = float(str(value))
    except ValueError:
        seconds = -1.0
    if not least <= seconds <= most:
        raise InputError(variable, value, "must be a number of seconds from %d to %d" % (least, most))
    return seconds


def check_notify(variable: str, value: Any) -> str:
    """A URL or a command. It may contain a token, so that messages do not repeat it."""
    if not isinstance(value, str) or re.search(r"[\x00-\x1f\x7f]", value):
        raise InputError(variable, "…", "must be a URL or a command on one line, without control characters")
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]*)://", value)
    if scheme and not re.fullmatch(r"https?://[^\s/]+\S*", value):
        raise InputError(
            variable, scheme.group() + "…", "must be a URL that begins with http:// or https://, or a command"
        )
    return value


def check_user(variable: str, value: Any) -> User:
    entry = check_entry(variable, value, ("uid", "gid"), ())
    most = 2**31 - 1
    uid = check_whole(f"{variable}: uid", entry.get("uid", 1000), 1, most)
    return User(uid=uid, gid=check_whole(f"{variable}: gid", entry.get("gid", uid), 1, most))


def is_name_pattern(value: Any) -> bool:
    """
    >>> is_name_pattern("sweep-*"), is_name_pattern("sweep-1")
    (True, False)
    """
    return isinstance(value, str) and bool(set("*?[") & set(value))


def check_name_pattern(variable: str, value: Any) -> str:
    """A pattern of a shell for the names of sessions."""
    if not re.fullmatch(r"[A-Za-z0-9._*?!\[\]-]{1,64}", value):
        raise InputError(variable, value, "must be a name, or a pattern of a name's characters with '*', '?' and '[…]'")
    return str(value)


def check_network_pool(variable: str, value: Any) -> Tuple[str, ...]:
    return tuple(check_pools(check_list(variable, value)))


def check_port_range(variable: str, value: Any) -> str:
    """``FIRST-LAST``."""
    return "%d-%d" % parse_port_range(value, variable)


def check_after(variable: str, value: Any) -> Tuple[str, ...]:
    """The names of other sessions, each once."""
    names = tuple(dict.fromkeys(check_session_name(variable, name) for name in check_names(variable, value)))
    if len(names) > _MOST_NAMES:
        raise InputError(variable, ", ".join(names), "must have at most %d names" % _MOST_NAMES)
    return names


def check_not_before(variable: str, value: Any) -> str:
    """A time in UTC, or a number of seconds after the request.

    >>> check_not_before("session_not_before", "2026-12-24 18:00:00+01:00"), check_not_before("session_not_before", 3600)
    ('2026-12-24T17:00:00Z', '3600')
    """
    text = "" if isinstance(value, bool) else str(value).strip()
    if not text and not isinstance(value, bool):
        return ""
    if re.fullmatch(r"[0-9]{1,18}", text):
        return str(check_whole(variable, text, 0, YEAR))
    try:
        # Python 3.8 reads no Z.
        moment = datetime.fromisoformat(re.sub(r"[Zz]\Z", "+00:00", text))
        if moment.tzinfo is None:
            raise InputError(variable, text, _RULE)
        # Not by strftime, which writes the year 206 in three digits, in which strptime does not read it.
        return moment.astimezone(timezone.utc).replace(microsecond=0, tzinfo=None).isoformat() + "Z"
    except (ValueError, OverflowError):
        raise InputError(variable, value, _RULE) from None


def check_nodes(variable: str, value: Any) -> str:
    """``MIN:MAX``.

    >>> check_nodes("session_torchrun_nodes", "2:4")
    '2:4'
    """
    found = re.fullmatch(r"([1-9][0-9]{0,3}):([1-9][0-9]{0,3})", value) if isinstance(value, str) else None
    if value != "" and (found is None or int(found.group(1)) > int(found.group(2))):
        raise InputError(variable, value, "must be MIN:MAX, as in 1:3, with MIN at least 1 and at most MAX")
    return str(value)
