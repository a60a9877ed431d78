# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Find settings of an engine that take something from sessions. The engine itself reports only some of them."""

from __future__ import annotations

import json
import re
from typing import Dict, List

from .._shared.documents.plan import Plan
from .._shared.errors import StateError
from .._shared.paths import read
from .engine.reports import EngineInfo

_FILE = "/etc/docker/daemon.json"
NO_RULES = "iptables false"
NO_PROXY = "userland-proxy false"
# What each setting takes from sessions.
EFFECTS = {
    NO_RULES: "containers reach nothing outside their network, and the networks of sessions are not isolated from each other",
    NO_PROXY: "ports are not published at addresses of IPv6",
    "userns-remap": "session_network host is refused, and users of containers have other numbers in data directories",
    "no-new-privileges": "sudo and su work in no container",
    "log-driver none": "sessions have no logs",
}


def engine_settings(info: EngineInfo, pid: int, proc: str = "/proc", file: str = _FILE) -> List[str]:
    """Return the names of these settings that the engine has, from its report, its arguments, and its file."""
    given = {**_of_file(read(file)), **_of_arguments(read("%s/%d/cmdline" % (proc, pid)) if pid else "")}
    found = {
        **{f"{name} false": given.get(name) is False for name in ("iptables", "userland-proxy")},
        "userns-remap": any("name=userns" in text for text in info.security),
        "no-new-privileges": given.get("no-new-privileges") is True,
        "log-driver none": info.log_driver == "none",
    }
    return [name for name in EFFECTS if found[name]]


def check_publishing(plan: Plan, agent: str, pid: int, proc: str = "/proc", file: str = _FILE) -> None:
    """Refuse ports of containers at IPv6 from an engine that publishes none there: the networks of sessions have IPv4 alone."""
    ports = () if plan.network.is_of_host else [port for one in plan.on(agent) for port in one.ports]
    if (
        pid
        and any(":" in port.host_ip for port in ports)
        and NO_PROXY in engine_settings(EngineInfo(), pid, proc, file)
    ):
        message = (
            "The engine of %s publishes no ports at IPv6, at which session %s needs them, because userland-proxy is false: "
            "remove that from its daemon.json and restart it, or reach the host by IPv4 (ansible_host, agent_publish)."
        )
        raise StateError(message % (agent, plan.session.name), agent)


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
