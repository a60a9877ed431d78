# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The tables of sessions.yml: sessions, owners and agents."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import time
from typing import Any, Callable, List, Mapping, Sequence

from ansible_collections.cluster.compute.plugins.module_utils._core.exits import limit_reached
from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json
from ansible_collections.cluster.compute.plugins.module_utils._core.units import show_bytes, show_cpus
from ansible_collections.cluster.compute.plugins.module_utils._views import (
    show_seconds,
    show_time,
    table,
    what_happened,
)

# What a list shows where a session has no data folder: its files are removed with it.
NO_FOLDER = "none"


def sessions_table(sessions: Sequence[Json]) -> List[str]:
    """A line for every session."""
    header = ("session", "owner", "state", "kind", "size", "mode", "each", "in use", "image", "started", "agents")
    rows = [
        (
            session["name"],
            session["owner"],
            session["state"] + "".join(" (%s)" % text for text in remarks(session)),
            session["kind"],
            session["size"],
            session["mode"],
            resources_of(session),
            in_use(session["measured"]) or "-",
            session["image"] or "-",
            show_time(session["started"]) if session["started"] else "-",
            ", ".join(session["agents"]) or "-",
            folders_of(session),
            ", ".join("%s %s" % (app["name"], address_of(app)) for app in session["apps"]) or "-",
            what_happened(session),
        )
        for session in sessions
    ]
    return table((*header, "folders", "apps", "reason"), rows)


def remarks(session: Json) -> List[str]:
    """What a running session lacks, which apps have failed, how its command ended, and when it ends by itself."""
    if session["state"] != "RUNNING":
        return []
    if limit_reached(session.get("containers") or ()):
        return ["ended"]
    found = ["degraded: %s" % ", ".join(session["degraded"])] if session.get("degraded") else []
    apps = [name for name in session.get("unhealthy") or () if name != "command"]
    found += ["unhealthy: %s" % ", ".join(apps)] if apps else []
    command = session.get("command")
    if command and command["exit_code"] is not None:
        found.append("command failed" if command["exit_code"] else "command succeeded")
    elif command and not command.get("begun", True):
        found.append("command does not run")
    if session.get("ends"):
        found.append("%s left" % show_seconds(max(0.0, session["ends"] - time.time())))
    if session.get("idle_timeout"):
        found.append("ends when idle for %s" % show_seconds(session["idle_timeout"]))
    return found


def resources_of(session: Json) -> str:
    """The resources of each container; GPUs only if it has any."""
    return show_amounts({**session["each"], "gpus": session["gpus"]})


def show_amounts(amounts: Mapping[str, float]) -> str:
    """CPUs, memory and, if there are any, GPUs.

    >>> show_amounts({"millicpus": 500, "memory": 1 << 30, "gpus": 2})
    '0.5 CPUs, 1g, 2 GPUs'
    """
    gpus = ", %g GPUs" % amounts["gpus"] if amounts.get("gpus") else ""
    return "%s CPUs, %s%s" % (show_cpus(int(amounts["millicpus"])), show_bytes(int(amounts["memory"])), gpus)


def in_use(measured: Json | None) -> str:
    """What was measured; empty if nothing was."""
    if not measured:
        return ""
    percents = [gpu["percent"] for gpu in measured.get("gpus") or () if gpu["percent"] is not None]
    gpus = ", GPUs %d%%" % round(sum(percents) / len(percents)) if percents else ""
    return "%s CPUs, %s%s" % (show_cpus(round(measured["millicpus"], -2)), show_bytes(measured["memory"]), gpus)


def folders_of(session: Json) -> str:
    """Where the data folders of a session are mounted."""
    if session["folders"] is None:
        return "?"
    return ", ".join(folder["target"] for folder in session["folders"]) or NO_FOLDER


def address_of(app: Json) -> str:
    """Address and port of an app. A loopback address is one of its agent.

    >>> address_of({"address": "2001:db8::7", "port": 30001, "agent": "node1"})
    '[2001:db8::7]:30001'
    >>> address_of({"address": "127.0.0.1", "port": 30001, "agent": "node1"})
    '127.0.0.1:30001 on node1'
    """
    host = "[%s]" % app["address"] if ":" in app["address"] else app["address"]
    where = " on %s" % app["agent"] if host.startswith("127.") else ""
    return "%s:%d%s" % (host, app["port"], where)


def owners_table(owners: Sequence[Json]) -> List[str]:
    """A line for every owner of a live session: what its sessions hold, and how much a policy allows."""
    rows = [
        (
            owner["owner"],
            _of(owner, "sessions", owner["sessions"], str),
            owner["waiting"],
            _of(owner, "containers", owner["containers"], str),
            _of(owner, "millicpus", owner["used"]["millicpus"], show_cpus),
            _of(owner, "memory", owner["used"]["memory"], show_bytes),
            _of(owner, "gpus", owner["used"]["gpus"], "{:g}".format),
        )
        for owner in owners
    ]
    return table(("owner", "sessions", "waiting", "containers", "cpus", "memory", "gpus"), rows)


def _of(owner: Json, name: str, used: float, show: Callable[[Any], str]) -> str:
    """What an owner uses of what a policy allows; without a policy, only what the owner uses."""
    allowed = (owner["allowed"] or {}).get(name)
    return show(used) if allowed is None else "%s of %s" % (show(used), show(allowed))


def agents_table(agents: Sequence[Json]) -> List[str]:
    """A line for every agent: how much of its capacity is allocated, and how much of that is in use."""
    rows = [
        (
            agent["name"],
            agent["group"],
            agent_state(agent),
            "%s of %s" % (show_cpus(agent["used"]["millicpus"]), show_cpus(agent["capacity"]["millicpus"])),
            "%s of %s" % (show_bytes(agent["used"]["memory"]), show_bytes(agent["capacity"]["memory"])),
            "%g of %d" % (agent["used"]["gpus"], agent["capacity"]["gpus"]),
            in_use(agent["measured"]) or "-",
        )
        for agent in agents
    ]
    return table(("agent", "group", "state", "cpus", "memory", "gpus", "in use"), rows)


def agent_state(agent: Json) -> str:
    """Whether an agent answers and takes new sessions."""
    if not agent["reachable"]:
        return "lost: %s" % agent["reason"]
    return "up" if agent["schedulable"] else "up, takes no new sessions"
