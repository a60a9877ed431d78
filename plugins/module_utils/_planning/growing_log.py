# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The log of a container while it grows: which lines of an answer are new."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import calendar
import re
import time
from typing import List

from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json
from ansible_collections.cluster.compute.plugins.module_utils._core.text import visible

# Lines of one answer, and characters of one line.
MOST = 500
WIDEST = 2000
# As an engine writes it: always nine digits after the point, so that the order of texts is the order of times.
_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.\d{9}Z$")


class GrowingLog:
    """Remembers the time of the last line; the log is read from ``since``, a time in the engine's form, or from its beginning."""

    def __init__(self, since: str = "") -> None:
        self._last = since

    def query(self, session: str, hostname: str) -> Json:
        """The options of ``logs_info`` for what may be new."""
        found = _TIME.match(self._last)
        since = calendar.timegm(time.strptime(found.group(1), "%Y-%m-%dT%H:%M:%S")) if found else 0
        return {"session": session, "containers": [hostname], "timestamps": True, "since": since, "tail": MOST}

    def news(self, hostname: str, text: str) -> List[str]:
        """The new lines, for people; the container wrote them, so control characters are escapes.

        >>> log = GrowingLog()
        >>> log.news("main1", "2026-01-01T00:00:00.000000001Z a\\n"), log.news("main1", "2026-01-01T00:00:00.000000001Z a\\n")
        (['main1: a'], [])
        """
        lines = [line.partition(" ") for line in text.split("\n") if line]
        fresh = [(moment, line) for moment, _blank, line in lines if _TIME.match(moment) and moment > self._last]
        if not fresh:
            return []
        # With as many lines as were asked for, and all of them new, earlier ones may be missing.
        is_cut = len(fresh) >= MOST
        self._last = max(moment for moment, _line in fresh)
        # A program may return to the beginning of its line, as progress bars do: each part is a line here.
        parts = [part for _moment, line in fresh for part in visible(line.strip("\r")).split("\n")]
        shown = ["%s: %s" % (hostname, _short(part)) for part in parts[-MOST:]]
        return (["%s: (earlier lines are left out; session_logs.yml shows them)" % hostname] if is_cut else []) + shown


def _short(line: str) -> str:
    return line if len(line) <= WIDEST else "%s… (%d characters more)" % (line[:WIDEST], len(line) - WIDEST)
