# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Warn of values that work, but not as their author may expect. Nothing here refuses or changes a value."""

from __future__ import annotations

import re
from typing import Any, Iterator, List, Mapping, Tuple

from ...module_utils._shared.names import parts_of
from ...module_utils._shared.value_rules import with_line_ends

# Variables and options that are scripts.
_SCRIPTS = ("bootstrap", "command", "exec_command", "ready")
# What a shell would replace in a list of directories.
_REFERENCE = re.compile(r"\$+[A-Za-z_][A-Za-z0-9_]*|\$\{[^}]*\}|(?:^|(?<=:))~(?=/|:|$)")
_WINDOWS = "Windows line endings are removed before a script runs; save it with Unix line endings."
_MIXED = "only some lines end with CR, which a shell takes as a part of their last word; remove it with tr -d '\\r'."
_UNEXPANDED = (
    "%s is passed on as it is: a value can refer to the variable of its own name alone, as in "
    'PATH: "/opt/tool/bin:$PATH"; write the directory itself.'
)


def windows_scripts(values: Mapping[str, Any]) -> str:
    """Return a warning of the scripts that were written on Windows; empty without any.

    >>> windows_scripts({"session_bootstrap": "cd /tmp\\r\\nls", "session_command": "ls"})
    'session_bootstrap: Windows line endings are removed before a script runs; save it with Unix line endings.'
    """
    scripts = [
        (where, value, with_line_ends(value))
        for where, option, value in _options(values)
        if option in _SCRIPTS and isinstance(value, str)
    ]
    changed = [where for where, text, ours in scripts if ours != text]
    mixed = [where for where, _text, ours in scripts if "\r\n" in ours]
    return " ".join(f"{', '.join(names)}: {text}" for names, text in ((changed, _WINDOWS), (mixed, _MIXED)) if names)


def unexpanded_paths(values: Mapping[str, Any]) -> str:
    """Return a warning of lists of directories with references that nothing replaces; empty without any.

    >>> unexpanded_paths({"session_environment": {"PATH": "$HOME/bin:$PATH", "PROMPT": "$PWD"}})[:57]
    'session_environment: PATH: $HOME is passed on as it is: a'
    """
    found = [
        f"{where}: {name}: {word}"
        for where, option, value in _options(values)
        if option == "environment" and isinstance(value, Mapping)
        for name, text in value.items()
        for word in _unexpanded(str(name), text)
    ]
    return _UNEXPANDED % ", ".join(found) if found else ""


def _unexpanded(name: str, text: Any) -> List[str]:
    """Return the references that remain in a list of directories."""
    is_path = name.endswith("PATH") and isinstance(text, str)
    return _REFERENCE.findall("".join(parts_of(name, text))) if is_path else []


def _options(values: Mapping[str, Any], above: str = "") -> Iterator[Tuple[str, str, Any]]:
    """Yield each variable, and each option of a role or an app: how to name it in a message, the option, and its value."""
    for key, value in values.items():
        option = str(key) if above else str(key).replace("session_", "", 1)
        if option not in ("roles", "apps"):
            yield f"{above}{key}", option, value
        elif isinstance(value, (list, tuple)):
            for entry in (one for one in value if isinstance(one, Mapping)):
                yield from _options(entry, f"{above}{key}: {entry.get('name')}: ")
