# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files of the apps of a container, which PID 1 reads: roles/image/files/apps.sh."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import re
import shlex
from typing import Dict, List, Mapping, Sequence

from .._core.constants import CONFIG_FOLDER, RUNTIME_PATH
from .._core.documents import Json, digest, sparse
from .._core.errors import StateError
from .._core.model import IMAGE_COMMAND, App, User
from .rootfs import Entry

FOLDER = CONFIG_FOLDER + "/app"
INDEX = CONFIG_FOLDER + "/apps"
_END = "end\n"
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


def index_lines(apps: Sequence[App], mark: str = "") -> Dict[str, str]:
    """The line of each app. Another ``mark`` makes PID 1 start it again."""
    return {
        app.name: "%s %d %s %s\n" % (app.name, app.port, app.ready, digest([sparse(app), mark]))
        for app in running(apps)
    }


def parse_index(text: str) -> Dict[str, str]:
    """The lines of an index by app. Root of the container may have written any other line, which is left out."""
    lines = [line for line in text.split("\n") if _LINE.fullmatch(line)]
    return {line.partition(" ")[0]: line + "\n" for line in lines}


def running(apps: Sequence[App]) -> List[App]:
    """The apps that PID 1 runs."""
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
    """
    return "".join(f"export {name}={shlex.quote(text)}\n" for name, text in sorted(environment.items()))
