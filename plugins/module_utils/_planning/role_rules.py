# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rule of ``session_roles``: what a role may give, and what a role that does not give it has from its session."""

from __future__ import annotations

import re
from typing import Any, Callable, Dict, Mapping, Tuple

from .._core import forms
from .._core.constants import RELAY_ROLE
from .._core.errors import InputError
from .._core.topology import MAIN, ready_port
from .._core.value_rules import check_boolean, check_image, check_text, within
from . import rules
from .variable import APP, PUBLISHED, Documentation

DESCRIPTION = (
    "Roles of containers that are not all alike, in the order of their ranks. The role C(main) is always there, first and with one "
    "container, whether the list names it or not. What a role does not give is the session's. Without roles, the session has "
    "C(main1) and O(session_cluster_size) - 1 containers of the role C(sub)."
)
# Names with another meaning: the group of all hosts, and containers that publish ports of apps.
_RESERVED = ("all", RELAY_ROLE)
_MOST = 32

ROLE: Dict[str, Documentation] = {
    "name": {
        "type": "str",
        "required": True,
        "description": "Name of the role: at most 16 lower-case letters, digits and C(-), from a letter to a letter. The "
        "containers of V(worker) are C(worker1), C(worker2) and so on.",
    },
    "size": {"type": "int", "default": 1, "description": "Number of containers."},
    "cpus": {"type": "float", "description": "CPUs of each container."},
    "memory": {"type": "str", "description": "Memory of each container."},
    "shm": {"type": "str", "description": "Size of C(/dev/shm) in each container."},
    "gpus": {"type": "float", "description": "GPUs of each container."},
    "cpu_pinning": {"type": "bool", "description": "Whether each container has CPUs of its own."},
    "image": {"type": "str", "description": "Image, or the name of an environment, whose image is taken."},
    "environment": {"type": "dict", "description": "Environment variables, added to O(session_environment)."},
    "command": {
        "type": "str",
        "description": "Script that each container runs once, as soon as it has started. Not for C(main), which has "
        "O(session_command).",
    },
    "ready": {
        "type": "raw",
        "description": "When a container counts as ready: V(12345) as soon as this port accepts connections from other containers, "
        "V(8080/health) as soon as this path answers, any other text as soon as it succeeds as a command. Without it, as soon as "
        "the container has started.",
    },
    "after": {
        "type": "list",
        "elements": "str",
        "description": "Roles whose containers are ready before a container of this role starts.",
    },
    "compute": {
        "type": "bool",
        "description": "Whether the containers have ranks of C(torch) and places in hostfiles. True by default, except for V(ps) and "
        "V(evaluator).",
    },
    "apps": {
        "type": "list",
        "elements": "raw",
        "options": {name: option for name, option in APP.items() if name not in PUBLISHED},
        "description": "Apps of the first container of the role, as in O(session_apps), each with a command. They are reached by "
        "SSH: only C(main1) publishes ports. Not for C(main), which has O(session_apps).",
    },
    "per_agent": {"type": "int", "description": "Largest number of containers of this role on an agent."},
    "resource_group": {"type": "str", "description": "Group of agents that the containers run on."},
}


def check_ready(variable: str, value: Any) -> str:
    """
    >>> check_ready("ready", 8080), check_ready("ready", "8080/health"), check_ready("ready", "test -e /tmp/up")
    ('8080', '8080/health', 'test -e /tmp/up')
    """
    text = check_text(variable, str(value) if isinstance(value, int) and not isinstance(value, bool) else value)
    found = ready_port(text)
    if re.fullmatch(r"[0-9]+(/.*)?", text) and not 0 < found[0] <= 65535:
        raise InputError(variable, value, "must be a port from 1 to 65535, PORT/path, or a command")
    return text


# The field of each suboption, and its rule.
_CHECKS: Mapping[str, Tuple[str, Callable[[str, Any], Any]]] = {
    "size": ("size", within(1, rules.LARGEST)),
    "cpus": ("millicpus", rules.check_cpus),
    "memory": ("memory", rules.check_memory),
    "shm": ("shm", rules.check_shm),
    "gpus": ("gpus", rules.check_gpus),
    "cpu_pinning": ("pinned", check_boolean),
    "image": ("image", check_image),
    "environment": ("environment", rules.check_environment),
    "command": ("command", check_text),
    "ready": ("ready", check_ready),
    "after": ("after", rules.check_names),
    "compute": ("compute", check_boolean),
    "apps": ("apps", rules.check_list),
    "per_agent": ("per_agent", within(0, rules.LARGEST)),
    "resource_group": ("group", rules.check_group),
}


FIELDS = {option: field for option, (field, _check) in _CHECKS.items()}


def check_roles(variable: str, value: Any) -> Tuple[Dict[str, Any], ...]:
    """What each role gives, by field, with ``main`` first. The check of the request adds what it has from its session."""
    found = [_given(variable, item) for item in rules.check_list(variable, value)]
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
    entry = rules.check_entry(variable, item, tuple(ROLE), ("name",))
    name = check_text(variable, entry["name"])
    if not forms.ROLE(name) or name in _RESERVED:
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
