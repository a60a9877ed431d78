# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rule of ``session_apps``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Tuple

from ..documents.plan import TOKEN, App
from ..errors import InputError
from ..names import check_environment
from ..value_rules import check_boolean, check_list, check_script, check_text, check_whole, entry_of
from .suboptions import PUBLISHED

NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?")
DESCRIPTION = (
    "Interactive apps of C(main1), whose ports are published on its agent. An entry is the name of an app of the "
    "environment, such as V(jupyterlab), or a dictionary; one with the name of such an app changes parts of it."
)
_PATH = re.compile(r"/[A-Za-z0-9._~/?=&%+,@{}-]{0,500}")
_HIGHEST = 65535
# Of the script that PID 1 runs.
_LONGEST = 60000


@dataclass(frozen=True)
class _Entry:
    """An app as a user writes it, with values of any kind."""

    name: Any
    port: Any
    preferred_port: Any = None
    public: Any = False
    command: Any = None
    ready: Any = None
    environment: Any = None
    path: Any = None


def check_apps(variable: str, value: Any) -> Tuple[App, ...]:
    """The apps in their normal form. Apps of an environment have become dictionaries before."""
    return tuple(_app(variable, item) for item in check_list(variable, value))


def check_apps_of_role(variable: str, value: Any) -> Tuple[App, ...]:
    """The apps of a role other than C(main) in their normal form."""
    apps = check_apps(variable, value)
    for app in apps:
        if not app.command:
            raise InputError(variable, app.name, "needs a command: only main1 publishes ports")
        for option in PUBLISHED:
            if getattr(app, option):
                rule = "must be left out: only main1 publishes ports"
                raise InputError(f"{variable}: {option}", getattr(app, option), rule)
    return apps


def _app(variable: str, item: Any) -> App:
    entry = entry_of(_Entry, variable, item)
    name = check_text(variable, entry.name)
    if not NAME.fullmatch(name) or name == "ssh":
        raise InputError(variable, name, "must have lower-case letters, digits and '-' only, and must not be ssh")
    port = check_whole(f"{variable}: port", entry.port, 1, _HIGHEST)
    if port == 22:
        raise InputError(f"{variable}: port", port, "must not be 22, which is the session's SSH port")
    preferred = check_whole(f"{variable}: preferred_port", entry.preferred_port or 0, 0, _HIGHEST)
    public = check_boolean(f"{variable}: public", entry.public)
    command = check_script(f"{variable}: command", entry.command or "")
    if len(command.encode()) > _LONGEST:
        raise InputError(f"{variable}: command", command, "must be at most %d bytes long" % _LONGEST)
    ready = _ready(f"{variable}: ready", entry.ready, port) if command else ""
    environment = check_environment(f"{variable}: environment", entry.environment or {})
    for key, value in (("ready", entry.ready), ("environment", entry.environment)):
        if value and not command:
            raise InputError(f"{variable}: {key}", value, "needs a command")
    path = _path(f"{variable}: path", entry.path or ("/?token=" + TOKEN if command else "/"))
    return App(name, port, preferred, public, command, ready, environment, path)


def _ready(variable: str, value: Any, port: int) -> str:
    """A path as it is, or the number of a TCP port; by default the app's own port."""
    if isinstance(value, str) and value.startswith("/"):
        return _path(variable, value)
    return str(check_whole(variable, value or port, 1, _HIGHEST))


def _path(variable: str, value: Any) -> str:
    if not isinstance(value, str) or not _PATH.fullmatch(value):
        raise InputError(variable, value, "must be a path of a URL that starts with '/'")
    return value
