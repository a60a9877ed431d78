# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Check that this host has the rules that protect the networks of sessions (overlay_guard.sh): overlays, and bridges."""

from __future__ import annotations

import os
import re
import subprocess
import time
from typing import Collection, List, Mapping, Optional, Sequence

from .._shared.documents.report import AgentReport, OverlayGuard
from .engine.reports import EngineInfo
from .host import has_systemd

MISSING, PRESENT = "missing", "present"
NOT_SEEN = OverlayGuard()
_SHOW = ("iptables", "--wait", "2", "--table", "mangle", "-S")
_JUMP = re.compile(r"^-A (INPUT|FORWARD) -p udp .*--dport (\d+) -j CLUSTER-COMPUTE$", re.MULTILINE)
_SENDERS = re.compile(r"^-A CLUSTER-COMPUTE-SENDERS -j DROP$", re.MULTILINE)
_DROP = re.compile(r"^-A CLUSTER-COMPUTE .*-j DROP$", re.MULTILINE)
_DIRECT = re.compile(r"^-A (FORWARD|OUTPUT) .*-o cc-\+ -m conntrack .*-j DROP$", re.MULTILINE)
_PATH = ":/usr/local/sbin:/usr/sbin:/sbin"
_SECONDS = 5
_RECORD = "/run/cluster-compute-overlay-guard"
# The timer installs the rules again each minute, and writes the record then.
_FRESH = 300


def overlay_guard(fabric: str) -> OverlayGuard:
    """The state, ``present``, ``missing``, or an empty text where this user cannot see it, and the UDP port of the rules.

    An agent with an interface for a ``fabric`` also needs the rules against packets from containers in the Ethernet segment.
    """
    shown = _shown()
    return _recorded(fabric) if shown is None else _installed(shown, fabric)


def session_guard(info: EngineInfo) -> str:
    """The state of the rules that keep the accounts of this host, and other hosts, out of the bridges of sessions.

    The bridges of a rootless engine are in a network of its own, in which neither arrives.
    """
    if info.is_rootless:
        return ""
    shown = _shown()
    if shown is None:
        return _recorded("").state
    return PRESENT if set(_DIRECT.findall(shown)) == {"FORWARD", "OUTPUT"} else MISSING


def _shown() -> Optional[str]:
    """All rules of the table; None where this user cannot see them."""
    environment = {**os.environ, "PATH": os.environ.get("PATH", "") + _PATH, "LC_ALL": "C"}
    try:
        shown = subprocess.run(_SHOW, env=environment, capture_output=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return shown.stdout.decode("utf-8", "replace") if shown.returncode == 0 else None


def _installed(shown: str, fabric: str) -> OverlayGuard:
    """The rules among all of the table: traffic of both chains to one port is led to rules that drop it."""
    jumps = set(_JUMP.findall(shown))
    ports = [int(port) for chain, port in jumps if chain == "INPUT" and ("FORWARD", port) in jumps]
    if not ports or not _DROP.search(shown) or (fabric and not _SENDERS.search(shown)):
        return OverlayGuard(MISSING)
    return OverlayGuard(PRESENT, ports[0])


def _recorded(fabric: str) -> OverlayGuard:
    """The record of the last look, for others than root. Without systemd no timer looks again, so an old record shows nothing."""
    try:
        with open(_RECORD, encoding="ascii") as file:
            age, (port, *kinds) = time.time() - os.fstat(file.fileno()).st_mtime, file.read(16).split()
        found = OverlayGuard(PRESENT, int(port))
    except (OSError, ValueError):
        return OverlayGuard(MISSING)
    if fabric and "fabric" not in kinds:
        return OverlayGuard(MISSING)
    if age < _FRESH:
        return found
    return OverlayGuard(MISSING) if has_systemd() else NOT_SEEN


def unguarded(agents: Sequence[AgentReport], names: Collection[str]) -> List[str]:
    """The agents among these without the rules, or with those for another port than their Swarm's, which only managers report."""
    swarms = [agent.engine.swarm for agent in agents]
    ports = {swarm.node_id: swarm.data_path_port for swarm in swarms}
    return [agent.name for agent in agents if agent.name in names and _is_open(agent, ports)]


def _is_open(agent: AgentReport, ports: Mapping[str, int]) -> bool:
    guard, swarm = agent.overlay_guard, agent.engine.swarm
    port = next((ports[node] for node in (swarm.node_id, *swarm.managers) if ports.get(node)), 0)
    return guard.state == MISSING or (guard.state == PRESENT and port not in (0, guard.port))
