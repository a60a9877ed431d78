# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rule of ``session_roles``: what a role may give, and what a role that does not give it has from its session."""

from __future__ import annotations

import re
from typing import Any, Callable, Dict, Mapping, Tuple

from .. import units
from ..constants import LARGEST, MAIN, RELAY_ROLE
from ..documents import schema
from ..errors import InputError
from ..names import check_environment, check_group
from ..units import ready_port
from ..value_rules import (
    check_boolean,
    check_entry,
    check_image,
    check_list,
    check_names,
    check_script,
    check_text,
    within,
)
from .suboptions import ROLE

DESCRIPTION = (
    "Roles of containers that are not all alike, in the order of their ranks. The role C(main) is always there, first and with one "
    "container, whether the list names it or not. What a role does not give is the session's. Without roles, the session has "
    "C(main1) and O(session_cluster_size) - 1 containers of the role C(sub)."
)
# Names with another meaning: the group of all hosts, and containers that publish ports of apps.
_RESERVED = ("all", RELAY_ROLE)
_MOST = 32


def check_ready(variable: str, value: Any) -> str:
    """
    >>> check_ready("ready", 8080), check_ready("ready", "8080/health"), check_ready("ready", "test -e /tmp/up")
    ('8080', '8080/health', 'test -e /tmp/up')
    """
    text = check_script(variable, str(value) if isinstance(value, int) and not isinstance(value, bool) else value)
    found = ready_port(text)
    if re.fullmatch(r"[0-9]+(/.*)?", text) and not 0 < found[0] <= 65535:
        raise InputError(variable, value, "must be a port from 1 to 65535, PORT/path, or a command")
    return text


# The field of each suboption, and its rule.
_CHECKS: Mapping[str, Tuple[str, Callable[[str, Any], Any]]] = {
    "size": ("size", within(1, LARGEST)),
    "cpus": ("millicpus", units.check_cpus),
    "memory": ("memory", units.check_memory),
    "shm": ("shm", units.check_shm),
    "gpus": ("gpus", units.check_gpus),
    "cpu_pinning": ("pinned", check_boolean),
    "image": ("image", check_image),
    "environment": ("environment", check_environment),
    "command": ("command", check_script),
    "ready": ("ready", check_ready),
    "after": ("after", check_names),
    "compute": ("compute", check_boolean),
    "apps": ("apps", check_list),
    "per_agent": ("per_agent", within(0, LARGEST)),
    "resource_group": ("group", check_group),
}


FIELDS = {option: field for option, (field, _check) in _CHECKS.items()}


def check_roles(variable: str, value: Any) -> Tuple[Dict[str, Any], ...]:
    """Return what each role gives, by field, with ``main`` first. The check of the request adds what it has from its session."""
    found = [_given(variable, item) for item in check_list(variable, value)]
    if not found:
        return ()
    names = [str(given["name"]) for given in found]
    for name in names:
        if names.count(name) > 1:
            raise InputError(variable, name, "must be the name of one role only")
    if len(found) > _MOST:
        raise InputError(variable, len(found), "must be at most %d roles" % _MOST)
    main = [given for given in found if given["name"] == MAIN] or [{"name": MAIN}]
    _check_main(variable, main[0])
    return (*main, *(given for given in found if given["name"] != MAIN))


def _given(variable: str, item: Any) -> Dict[str, Any]:
    entry = check_entry(variable, item, tuple(ROLE), ("name",))
    name = check_text(variable, entry["name"])
    if not schema.ROLE(name) or name in _RESERVED:
        rule = (
            "must have at most 16 lower-case letters, digits and '-', begin and end with a letter, and must not be %s"
        )
        raise InputError(f"{variable}: name", name, rule % " or ".join(_RESERVED))
    checks = ((option, entry[option]) for option in _CHECKS if entry.get(option) not in (None, ""))
    given = {_CHECKS[option][0]: _CHECKS[option][1](f"{variable}: {name}: {option}", value) for option, value in checks}
    return {"name": name, **given}


def _check_main(variable: str, main: Mapping[str, Any]) -> None:
    if main.get("size", 1) != 1:
        raise InputError(f"{variable}: main: size", main["size"], "must be 1: main1 is the one container of this role")
    if main.get("command"):
        raise InputError(f"{variable}: main: command", main["command"], "must be session_command, which main1 runs")
    if main.get("apps"):
        raise InputError(f"{variable}: main", "apps", "must be in session_apps, which main1 has")
