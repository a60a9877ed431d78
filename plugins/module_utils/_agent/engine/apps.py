# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The apps of a container, observed through the files of PID 1: roles/image/files/apps.sh writes them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Dict, List, Sequence

from ..._shared.codec import Json
from ..._shared.documents.report import AppState
from ..._shared.errors import EngineError, NotFoundError, visible_lines
from ..._shared.names import run_folder
from ..._shared.waiting import deadline_in, wait_until
from .client import Engine
from .container_requests import LONGEST_FILE

LOGS = "/var/log/cluster-compute"
READY, FAILED, ENDED, UNKNOWN = "ready", "failed", "ended", "unknown"
_STATES = ("starting", READY, "restarting", FAILED, ENDED)
# Of the log of an app, in a message. Its file is longer than others: roles/image/files/apps.sh rotates it.
_LINES, _WIDTH, _LONGEST_LOG = 3, 200, 8 << 20
_LONGEST_STATUS = 64
# Of the file with the status of all apps: bytes and lines.
_LONGEST_SUMMARY, _MOST_APPS = 16384, 100
_SUMMARY_LINE = re.compile(r"([a-z0-9][a-z0-9-]{0,62}) ([a-z]+)(?: ([0-9]{1,3}))?")
_FIRST_PAUSE = 0.2


@dataclass(frozen=True)
class Apps:
    """The apps of a container of a session. ``container`` is its ID; ``main1`` has the ID of the session."""

    engine: Engine
    session: str
    agent: str
    container: str
    hostname: str = "main1"

    def listed(self) -> Json:
        listed = self.engine.members(self.session).get(self.container)
        if listed is not None and listed["State"] == "running":
            return listed
        message = "%s does not run on agent %s: launch the session again to repair it."
        raise NotFoundError(message % (self.hostname, self.agent), self.agent)

    def read(self, path: str, most: int = LONGEST_FILE) -> bytes:
        return self.engine.read_file(self.listed()["Id"], path, self.hostname, most) or b""

    def status(self, name: str) -> AppState:
        return parse_status(name, self.read(f"{run_folder(self.container)}/apps/{name}/status", _LONGEST_STATUS))

    def serial(self, name: str) -> str:
        """The serial with which PID 1 keeps an app; empty if it keeps none."""
        if self.status(name).state == ENDED:
            return ""
        serial = self.read(f"{run_folder(self.container)}/apps/{name}/serial", _LONGEST_STATUS)
        return serial.decode("ascii", "replace").strip()

    def wait(self, names: Sequence[str], seconds: float) -> List[AppState]:
        """The apps, once all are ready. An EngineError names the first that has failed, or that is not ready in time."""
        found: Dict[str, AppState] = {}

        def is_decided() -> bool:
            found.update({name: self.status(name) for name in names if not _is_ready(found.get(name))})
            return any(one.state == FAILED for one in found.values()) or all(map(_is_ready, found.values()))

        wait_until(is_decided, deadline_in(seconds), _FIRST_PAUSE)
        late = [one for one in found.values() if not _is_ready(one)]
        if late:
            worst = next((one for one in late if one.state == FAILED), late[0])
            raise EngineError(self._complaint(worst, seconds), self.agent)
        return list(found.values())

    def _complaint(self, status: AppState, seconds: float) -> str:
        if status.state == FAILED:
            what = f"App {status.name} of {self.hostname} ends with exit code {status.exit_code} before it is ready"
        else:
            what = f"App {status.name} of {self.hostname} is not ready after {seconds:g} s"
            if status.exit_code is not None:
                what += ", its last run ended with exit code %d" % status.exit_code
        lines = self.last_lines(status.name)
        return f"{what}: {' | '.join(lines) if lines else 'it has printed nothing.'}"

    def last_lines(self, name: str) -> List[str]:
        """The end of an app's log; a container may have written anything there."""
        lines = [line.strip() for line in visible_lines(self.read(f"{LOGS}/{name}.log", _LONGEST_LOG))]
        return [line[:_WIDTH] for line in lines if line][-_LINES:]


def read_statuses(engine: Engine, identity: str, container: str, hostname: str) -> List[AppState] | None:
    """The apps that PID 1 of a container keeps; None before it has begun any. ``identity`` is its ID in the engine."""
    content = engine.read_file(identity, run_folder(container) + "/apps.status", hostname, _LONGEST_SUMMARY)
    return None if content is None else parse_statuses(content)


def parse_statuses(content: bytes) -> List[AppState]:
    """The apps of a file in which root of the container may have written anything: other lines are left out.

    >>> parse_statuses(b"lab ready\\nweb failed 3\\nWEB ready\\nweb gone\\n")
    [AppState(name='lab', state='ready', exit_code=None), AppState(name='web', state='failed', exit_code=3)]
    """
    found: Dict[str, AppState] = {}
    for line in content.decode("ascii", "replace").split("\n"):
        parts = _SUMMARY_LINE.fullmatch(line)
        if parts is not None and parts.group(2) in _STATES:
            name, state, code = parts.groups()
            found.setdefault(name, AppState(name, state, int(code) if code else None))
    return list(found.values())[:_MOST_APPS]


def parse_status(name: str, content: bytes) -> AppState:
    """
    >>> parse_status("lab", b"failed 127\\n")
    AppState(name='lab', state='failed', exit_code=127)
    """
    found = parse_statuses(name.encode() + b" " + content)
    return found[0] if found else AppState(name, UNKNOWN)


def _is_ready(status: AppState | None) -> bool:
    return status is not None and status.state == READY
