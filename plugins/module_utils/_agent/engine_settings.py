# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Find settings of an engine that take something from sessions. The engine itself reports only some of them."""

from __future__ import annotations

import json
import re
from typing import Dict, List

from .._shared.codec import Json
from .._shared.paths import read

_FILE = "/etc/docker/daemon.json"
NO_RULES = "iptables false"
# What each setting takes from sessions.
EFFECTS = {
    NO_RULES: "containers reach nothing outside their network, and the networks of sessions are not isolated from each other",
    "userland-proxy false": "ports are not published at addresses of IPv6",
    "userns-remap": "session_network host is refused, and users of containers have other numbers in data directories",
    "no-new-privileges": "sudo and su work in no container",
    "log-driver none": "sessions have no logs",
}


def engine_settings(info: Json, pid: int, proc: str = "/proc", file: str = _FILE) -> List[str]:
    """Return the names of these settings that the engine has, from its report, its arguments, and its file."""
    security = " ".join(map(str, info.get("SecurityOptions") or ()))
    given = {**_of_file(read(file)), **_of_arguments(read("%s/%d/cmdline" % (proc, pid)) if pid else "")}
    found = {
        **{f"{name} false": given.get(name) is False for name in ("iptables", "userland-proxy")},
        "userns-remap": "name=userns" in security,
        "no-new-privileges": given.get("no-new-privileges") is True,
        "log-driver none": info.get("LoggingDriver") == "none",
    }
    return [name for name in EFFECTS if found[name]]


def _of_file(text: str) -> Dict[str, object]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _of_arguments(cmdline: str) -> Dict[str, object]:
    """The flags among the arguments of a process.

    >>> _of_arguments("dockerd\\0--iptables=false\\0--userland-proxy\\0-H\\0fd://")
    {'iptables': False, 'userland-proxy': True}
    """
    found = (re.fullmatch(r"--([a-z0-9-]+)(?:=(true|false))?", word) for word in cmdline.split("\0"))
    return {match.group(1): match.group(2) != "false" for match in found if match}
