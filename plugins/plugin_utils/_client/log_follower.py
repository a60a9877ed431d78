# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The logs of containers while they grow: which lines of an answer are new."""

from __future__ import annotations

import calendar
import re
import time
from dataclasses import replace
from typing import Dict, List, Sequence, Set

from ...module_utils._shared.documents.step_documents import ContainerLog, LogRequest
from ...module_utils._shared.errors import escape_control

# Lines of one answer, and characters of one line.
MOST = 500
WIDEST = 2000
# As an engine writes it: always nine digits after the point, so that the order of texts is the order of times.
_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.\d{9}Z$")


class GrowingLog:
    """Remembers the time of the last line; the log is read from ``since``, a time in the engine's form, or from its beginning."""

    def __init__(self, since: str = "") -> None:
        self._last = since

    def query(self, session: str, hostname: str) -> LogRequest:
        """Return what to read for what may be new."""
        return LogRequest(session, (hostname,), tail=MOST, since=self.since, timestamps=True)

    @property
    def since(self) -> int:
        """The second of the last line, in seconds since the epoch; 0 without a line."""
        found = _TIME.match(self._last)
        try:
            return calendar.timegm(time.strptime(found.group(1), "%Y-%m-%dT%H:%M:%S")) if found else 0
        except ValueError:  # a day or an hour that does not exist
            return 0

    def unseen(self, hostname: str, text: str) -> List[str]:
        """The new lines, for people; the container wrote them, so control characters are escapes.

        >>> log = GrowingLog()
        >>> log.unseen("main1", "2026-01-01T00:00:00.000000001Z a\\n"), log.unseen("main1", "2026-01-01T00:00:00.000000001Z a\\n")
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
        parts = [part for _moment, line in fresh for part in escape_control(line.strip("\r")).split("\n")]
        shown = [f"{hostname}: {_short(part)}" for part in parts[-MOST:]]
        return ([f"{hostname}: (earlier lines are left out; session_logs.yml shows them)"] if is_cut else []) + shown


class FollowedLogs:
    """The logs of a session's containers on several agents. The first answer of an agent has the last lines of each log."""

    def __init__(self, session: str, hostnames: Sequence[str], tail: int) -> None:
        self._wanted = LogRequest(session, tuple(hostnames), timestamps=True)
        self._tail = tail
        self._logs: Dict[str, Dict[str, GrowingLog]] = {}
        self._unreadable: Set[str] = set()

    def query(self, agent: str) -> LogRequest:
        """Return what to read for what may be new on an agent."""
        known = self._logs.get(agent, {}).values()
        since = min((log.since for log in known), default=0)
        return replace(self._wanted, since=since, tail=MOST if known else min(self._tail, MOST))

    def unseen(self, agent: str, logs: Sequence[ContainerLog]) -> List[str]:
        """The new lines of an agent's answer, for people. A log that cannot be read says why, once.

        >>> followed = FollowedLogs("uuid", [], 10)
        >>> followed.unseen("node1", [ContainerLog("main1", "running", "2026-01-01T00:00:00.000000001Z a\\n")])
        ['main1: a']
        """
        lines: List[str] = []
        for log in logs:
            grown = self._logs.setdefault(agent, {}).setdefault(log.hostname, GrowingLog())
            if log.text.startswith("(") and log.hostname not in self._unreadable:
                self._unreadable.add(log.hostname)
                lines.append(f"{log.hostname}: {escape_control(log.text.strip())}")
            lines += grown.unseen(log.hostname, log.text)
        return lines


def _short(line: str) -> str:
    return line if len(line) <= WIDEST else "%s… (%d characters more)" % (line[:WIDEST], len(line) - WIDEST)
