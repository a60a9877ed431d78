# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Relative paths of the controller in a session file (``-e @train.yml``), which are relative to that file."""

from __future__ import annotations

import os
from typing import Any, Dict, Iterable, Mapping

from ansible import context
from ansible.parsing.splitter import parse_kv

from ...module_utils._shared.planning.secret_rules import SECRETS
from .settings import VARIABLES

_PATHS = frozenset(variable.full_name for variable in VARIABLES if variable.path)


def located(variable: str, value: Any, loader: Any) -> Any:
    """Return the value of a variable, with the paths in it as absolute ones if a session file gives them as relative ones."""
    if variable in _PATHS:
        return path_of(variable, value, loader)
    if variable == SECRETS and isinstance(value, (list, tuple)):
        return [_secret(entry, loader) for entry in value]
    return value


def path_of(variable: str, path: Any, loader: Any) -> Any:
    """Return a path in the value of a variable, joined to the directory of the session file that gives the variable."""
    if not isinstance(path, str) or not path or path.startswith(("/", "~")):
        return path
    return os.path.join(os.path.dirname(extra_files(loader).get(variable, "")), path)


def extra_files(loader: Any) -> Dict[str, str]:
    """The session file of each variable of the ``-e`` options; empty where the last option that gives the variable is no file."""
    found: Dict[str, str] = {}
    for option in context.CLIARGS.get("extra_vars") or ():
        file = os.path.abspath(os.path.expanduser(option[1:])) if option.startswith("@") else ""
        found.update(dict.fromkeys(_names(option, file, loader), file))
    return found


def _secret(entry: Any, loader: Any) -> Any:
    if not isinstance(entry, Mapping) or "file" not in entry:
        return entry
    return {**entry, "file": path_of(SECRETS, entry["file"], loader)}


def _names(option: str, file: str, loader: Any) -> Iterable[str]:
    """The variables of an ``-e`` option, as Ansible reads it."""
    if file:
        return tuple(loader.load_from_file(file) or ())
    if option.startswith(("{", "[")):
        return tuple(loader.load(option) or ())
    return tuple(parse_kv(option))
