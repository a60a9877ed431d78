# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files of the apps of a container, which PID 1 reads: roles/image/files/apps.sh."""

from __future__ import annotations

import re
import shlex
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Dict, List, Mapping, Sequence

from ..._shared.codec import Json, digest, non_default_fields
from ..._shared.constants import CONFIG_FOLDER, RUNTIME_PATH
from ..._shared.documents.plan import IMAGE_COMMAND, App, User
from ..._shared.errors import EngineError, InputError, StateError
from ..._shared.names import COLON_IS_SYSTEM, parts_of
from ..._shared.waiting import deadline_in, wait_until
from ..engine.archives import Entry, pack_archive

if TYPE_CHECKING:
    from ..engine.apps import Apps

FOLDER = CONFIG_FOLDER + "/app"
INDEX = CONFIG_FOLDER + "/apps"
_END = "end\n"
# PID 1 reads the list every second, and an app may take the grace of its session to end.
_NOTICED = 30
_LINE = re.compile(r"[a-z0-9-]+ [0-9]+ [^ ]+ [0-9a-f]+", re.ASCII)


def app_entries(apps: Sequence[App], tokens: Mapping[str, str], user: User, image: Json) -> List[Entry]:
    """The files of apps that have a command. ``image`` is the configuration of the container's image."""
    entries = [Entry(FOLDER, mode=0o755)]
    for app in running(apps):
        folder = f"{FOLDER}/{app.name}"
        entries += [
            Entry(folder, mode=0o755),
            Entry(folder + "/command", _script(app, image).encode(), 0o755),
            Entry(folder + "/environment", _exports(app.environment).encode(), 0o600),
            # Without a line break: Jupyter takes the whole file as its token.
            Entry(folder + "/token", tokens[app.name].encode(), 0o600, user.uid, user.gid),
        ]
    return entries


def index_entry(lines: Mapping[str, str]) -> Entry:
    """The list of apps. PID 1 keeps its former list while the file has no end."""
    return Entry(INDEX, ("".join(lines.values()) + _END).encode())


def index_lines(apps: Sequence[App]) -> Dict[str, str]:
    """The line of each app. Another digest makes PID 1 start it again."""
    return {
        app.name: "%s %d %s %s\n" % (app.name, app.port, app.ready, digest(non_default_fields(app)))
        for app in running(apps)
    }


def parse_index(text: str) -> Dict[str, str]:
    """The lines of an index by app. Root of the container may have written any other line, which is left out."""
    lines = [line for line in text.split("\n") if _LINE.fullmatch(line)]
    return {line.partition(" ")[0]: line + "\n" for line in lines}


def running(apps: Sequence[App]) -> List[App]:
    return [app for app in apps if app.command]


def _script(app: App, image: Json) -> str:
    if app.command != IMAGE_COMMAND:
        return app.command if app.command.endswith("\n") else app.command + "\n"
    words = [*(image.get("Entrypoint") or ()), *(image.get("Cmd") or ())]
    if not words:
        message = "App %s: the image of its container has neither ENTRYPOINT nor CMD, which 'command: image' runs; name a command."
        raise StateError(message % app.name)
    folder = str(image.get("WorkingDir") or "")
    enter = f"cd {shlex.quote(folder)} 2>/dev/null\n" if folder else ""
    return f"#!{RUNTIME_PATH}/bin/sh\n{enter}exec {' '.join(map(shlex.quote, words))}\n"


def _exports(environment: Mapping[str, str]) -> str:
    r"""
    >>> _exports({"A": "it's"})
    'export A=\'it\'"\'"\'s\'\n'
    >>> _exports({"PATH": "/opt/x:$PATH"})
    'export PATH=/opt/x"${PATH:+:$PATH}"\n'
    """
    return "".join(f"export {name}={_value(name, text)}\n" for name, text in sorted(environment.items()))


def _value(name: str, text: str) -> str:
    """A word of a shell. Without the variable that it extends, the colon beside the reference goes, too."""
    first, *others = parts_of(name, text)
    words = [first]
    for other in others:
        before, after = (
            name not in COLON_IS_SYSTEM and has for has in (words[-1].endswith(":"), other.startswith(":"))
        )
        if before:
            words[-1] = words[-1][:-1]
        reference = f"{name}:+:${name}" if before else f"{name}:+${name}:" if after else f"{name}-"
        words += [f'"${{{reference}}}"', other[1:] if after and not before else other]
    quoted = [word if place % 2 else shlex.quote(word) for place, word in enumerate(words) if word or len(words) == 1]
    return "".join(quoted)


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
            entries = [*app_entries(apps, tokens, self.user, image), index_entry(wanted)]
            # Not at the root, which may be read-only.
            archive = pack_archive(entries, CONFIG_FOLDER)
            self.observed.engine.put_archive(main["Id"], CONFIG_FOLDER, archive, self.observed.hostname)
            self._await_notice({name: wanted.get(name, "") for name in {**lines, **wanted}})
        return wanted != lines

    def listed(self) -> List[str]:
        return list(self._read()[1])

    def _read(self) -> tuple[Json, Dict[str, str]]:
        return self.observed.listed(), parse_index(self.observed.read(INDEX).decode("ascii", "replace"))

    def _await_notice(self, wanted: Mapping[str, str]) -> None:
        """Wait until PID 1 has noticed the change: it keeps the serial of the list, or the app has ended."""

        def is_noticed() -> bool:
            return all(self.observed.serial(name) == (line.split() or [""])[-1] for name, line in wanted.items())

        if not wait_until(is_noticed, deadline_in(_NOTICED)):
            message = "PID 1 of %s has not changed the apps within %d s; session_logs.yml shows its log."
            raise EngineError(message % (self.observed.hostname, _NOTICED), self.observed.agent)


def _with_new_serial(line: str) -> str:
    words = line.split()
    return " ".join([*words[:-1], digest([words[-1], time.time()])]) + "\n"


def _check_known(variable: str, names: Sequence[str], lines: Mapping[str, str]) -> None:
    for name in names:
        if name not in lines:
            raise InputError(variable, name, "is no app of this session, which has %s" % (", ".join(lines) or "none"))
