# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""When a session may start at the earliest, and how long it may wait: the variables and their rules."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Tuple

from .._core.declaration import declared, declared_whole
from .._core.errors import InputError
from .._core.names import check_session_name
from .._core.value_rules import check_whole
from . import rules

_YEAR = 365 * 86400
_MOST_NAMES = 100
_NORMAL = "%Y-%m-%dT%H:%M:%SZ"
_RULE = (
    "must be a date and time with a time zone, as in 2026-12-24T18:00:00+01:00, or a whole number of seconds after the request, "
    "up to %d" % _YEAR
)


def check_after(variable: str, value: Any) -> Tuple[str, ...]:
    """The names of other sessions, each once."""
    names = tuple(dict.fromkeys(check_session_name(variable, name) for name in rules.check_names(variable, value)))
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
        return str(check_whole(variable, text, 0, _YEAR))
    try:
        # Python 3.8 reads no Z.
        moment = datetime.fromisoformat(re.sub(r"[Zz]\Z", "+00:00", text))
        if moment.tzinfo is None:
            raise InputError(variable, text, _RULE)
        return moment.astimezone(timezone.utc).strftime(_NORMAL)
    except (ValueError, OverflowError):
        raise InputError(variable, value, _RULE) from None


@dataclass(frozen=True)
class StartSettings:
    """What a session waits for besides capacity, and for how long it waits."""

    after: Tuple[str, ...] = declared(
        "list",
        [],
        "Names of sessions of the same owner that run a command. The session waits until the newest session of each name has "
        "succeeded. If one of them fails, ends without a result or does not exist, the session fails.",
        check_after,
        elements="str",
        kept=True,
    )
    not_before: str = declared(
        "str",
        "",
        "Earliest start: a date and time in ISO 8601 with a time zone, such as V(2026-12-24T18:00:00+01:00), or a number of seconds "
        "after the request, up to 31536000, which is a year.",
        check_not_before,
        kept=True,
    )
    pending_timeout: int = declared_whole(
        0,
        (0, _YEAR),
        "Seconds after the request, or after O(session_not_before) if that is later, for which the session may be PENDING, from 0, "
        "which means no limit, to 31536000, which is a year. A session that waits longer leaves the queue with ERROR.",
        kept=True,
    )

    def earliest(self, requested: float) -> float:
        """The earliest start of a session that was requested at a time, both in seconds since the epoch."""
        if not self.not_before:
            return requested
        if self.not_before.isdigit():
            return requested + int(self.not_before)
        moment = datetime.strptime(self.not_before, _NORMAL).replace(tzinfo=timezone.utc)
        return max(requested, moment.timestamp())
