# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Change the list of apps that PID 1 of a running container reads."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import base64
import json
import time
from dataclasses import dataclass
from typing import Dict, List, Mapping, Sequence

from .._core.constants import CONFIG_FOLDER
from .._core.documents import Json, digest
from .._core.errors import EngineError, InputError
from .._core.model import App, User
from .._core.waiting import deadline_in, wait_until
from .._docker.apps import Apps
from .app_files import INDEX, app_entries, index_entry, index_lines, parse_index
from .rootfs import Entry, pack

# PID 1 reads the list every second, and an app may take the grace of its session to end.
_NOTICED = 30


def show_tokens(tokens: Mapping[str, str]) -> str:
    """The tokens as one text, so that no part of it equals another value when Ansible censors results."""
    return base64.b64encode(json.dumps(dict(tokens)).encode()).decode()


def parse_tokens(text: str) -> Dict[str, str]:
    """
    >>> parse_tokens(show_tokens({"lab": "0f"}))
    {'lab': '0f'}
    """
    return {str(name): str(token) for name, token in json.loads(base64.b64decode(text, validate=True)).items()}


@dataclass(frozen=True)
class AppInstaller:
    """The list of apps of one container."""

    observed: Apps
    user: User
    check: bool

    def change(
        self, apps: Sequence[App], tokens: Mapping[str, str], restart: Sequence[str], remove: Sequence[str]
    ) -> bool:
        """Add or replace apps, start others again, and end others. Returns whether the list changes."""
        main, lines = self._read()
        _check_known("session_apps_restart", restart, lines)
        _check_known("session_apps_remove", remove, lines)
        wanted = {name: line for name, line in lines.items() if name not in remove}
        wanted.update(index_lines(apps))
        wanted.update({name: _with_new_serial(wanted[name]) for name in restart if name in wanted})
        if wanted != lines and not self.check:
            image = (self.observed.engine.image(main["ImageID"]) or {}).get("Config") or {}
            self._write(main, [*app_entries(apps, tokens, self.user, image), index_entry(wanted)])
            self._await_notice({name: wanted.get(name, "") for name in {**lines, **wanted}})
        return wanted != lines

    def listed(self) -> List[str]:
        """The names of all apps."""
        return list(self._read()[1])

    def _read(self) -> tuple[Json, Dict[str, str]]:
        return self.observed.listed(), parse_index(self.observed.read(INDEX).decode("ascii", "replace"))

    def _write(self, main: Json, entries: List[Entry]) -> None:
        # Not at the root, which may be read-only.
        archive = pack(entries, time.time(), CONFIG_FOLDER)
        self.observed.engine.put_archive(main["Id"], CONFIG_FOLDER, archive, self.observed.hostname)

    def _await_notice(self, wanted: Mapping[str, str]) -> None:
        """Wait until PID 1 has noticed the change: the serial that it keeps is that of the list, or the app has ended."""

        def is_noticed() -> bool:
            return all(self.observed.serial(name) == _serial(line) for name, line in wanted.items())

        if not wait_until(is_noticed, deadline_in(_NOTICED)):
            message = "PID 1 of %s has not changed the apps within %d s; session_logs.yml shows its log."
            raise EngineError(message % (self.observed.hostname, _NOTICED), self.observed.agent)


def _serial(line: str) -> str:
    return line.rsplit(maxsplit=1)[-1] if line else ""


def _with_new_serial(line: str) -> str:
    words = line.split()
    return " ".join([*words[:-1], digest([words[-1], time.time()])]) + "\n"


def _check_known(variable: str, names: Sequence[str], lines: Mapping[str, str]) -> None:
    for name in names:
        if name not in lines:
            raise InputError(variable, name, "is no app of this session, which has %s" % (", ".join(lines) or "none"))
