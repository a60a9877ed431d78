# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a session shows to people and programs: ``session.json``, the summary, the tables. Docs: docs/session_json.md."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import time
from typing import Any, List, Mapping, Sequence

from ansible_collections.cluster.compute.plugins.module_utils._core.constants import SCHEMA
from ansible_collections.cluster.compute.plugins.module_utils._core.exits import (
    describe_command_exit,
    describe_container_exit,
)
from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json, Plan
from ansible_collections.cluster.compute.plugins.module_utils._core.topology import rank_of
from ansible_collections.cluster.compute.plugins.module_utils._core.units import show_bytes, show_cpus


def session_document(plan: Plan, session: Json, address: str, timings: Mapping[str, float]) -> Json:
    """The stable result of a launch. ``timings`` are seconds per phase; ``address`` is where main1's agent is reached."""
    main, user = plan.main, plan.session.user
    return {
        "schema": SCHEMA,
        "session": {
            "id": plan.session.id,
            "name": plan.session.name,
            "owner": plan.session.owner,
            "group": plan.session.group,
            "state": session["state"],
            "mode": plan.session.mode,
            "size": plan.session.size,
            "image": plan.session.image,
            "user": {"name": user.name, "uid": user.uid, "gid": user.gid},
            "created": session["created"],
            "running": session["changed"],
        },
        "network": {"name": plan.network.name, "driver": plan.network.driver, "subnet": plan.network.subnet},
        "resources": {
            "cpus": main.resources.millicpus / 1000,
            "memory": main.resources.memory,
            "shm": main.resources.shm,
            "gpus": sum(gpu.shares for gpu in main.resources.gpus),
        },
        "containers": [
            {
                "id": one.id,
                "hostname": one.hostname,
                "agent": one.agent,
                "rank": one.rank,
                "local_rank": one.local_rank,
                "address": one.address,
                "gpus": [gpu.id for gpu in one.resources.gpus],
            }
            for one in plan.containers
        ],
        "apps": [
            {"name": port.name, "address": _reachable(port.host_ip, address), "port": port.host_port}
            for port in main.ports
        ],
        "timings": {phase: round(float(seconds), 3) for phase, seconds in timings.items()},
    }


def summary(scheduled: Json, artifacts: str, check_mode: bool = False) -> List[str]:
    """What a launch ends with, a line each."""
    session, outcome = scheduled["session"], scheduled["outcome"]
    if outcome == "pending":
        return ["Session %s is PENDING: %s." % (session["name"], scheduled["reason"])]
    plan = Plan.from_json(scheduled["plan"])
    kind = "compute session" if plan.session.size == 1 else "cluster session, %s" % plan.session.mode
    each = plan.main.resources
    lines = [
        "Session %s: %s (%s)" % (session["name"], _state(scheduled, check_mode), kind),
        "Each container: %s CPUs, %s memory, %s shared memory" % _amounts(each.millicpus, each.memory, each.shm),
        "Network %s (%s)" % (plan.network.subnet, plan.network.driver),
    ]
    rows = [(one.hostname, one.agent, one.address) for one in plan.containers[:16]]
    lines += ["  " + line for line in table(("container", "agent", "address"), rows)]
    if plan.session.size > 16:
        lines.append("  … and %d more" % (plan.session.size - 16))
    for port in plan.main.ports[1:]:
        lines.append("App %s: port %d of %s" % (port.name, port.host_port, plan.main.agent))
    if check_mode:
        return lines
    lines.append("Enter it: ssh -F %s/%s/ssh_config main1" % (artifacts.rstrip("/"), session["name"]))
    return lines


def table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> List[str]:
    """Columns as wide as their widest cell.

    >>> table(("a", "b"), [("long", 1)])
    ['A     B', 'long  1']
    """
    cells = [[name.upper() for name in header]] + [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in cells]


def _state(scheduled: Json, check_mode: bool) -> str:
    if scheduled["outcome"] == "running":
        return "RUNNING, nothing to do"
    if scheduled["outcome"] == "repair":
        missing = ", ".join(scheduled["missing"])
        return (
            "RUNNING without %s, which would be brought back" % missing
            if check_mode
            else "RUNNING, %s brought back" % missing
        )
    return "would be launched" if check_mode else "RUNNING"


def _amounts(millicpus: int, memory: int, shm: int) -> Any:
    return show_cpus(millicpus), show_bytes(memory), show_bytes(shm)


def _reachable(host_ip: str, address: str) -> str:
    """Where a published port is found: on loopback from the agent itself, else at the agent's address."""
    return host_ip if host_ip.startswith("127.") else address


def sessions_table(sessions: Sequence[Json]) -> List[str]:
    """A line for every session."""
    rows = [
        (
            one["name"],
            one["owner"],
            one["state"] + (" (degraded: %s)" % ", ".join(one["degraded"]) if one.get("degraded") else ""),
            one["size"],
            one["mode"],
            _each(one),
            one["image"] or "-",
            show_time(one["created"]),
            ", ".join(one["agents"]) or "-",
            what_happened(one),
        )
        for one in sessions
    ]
    return table(("session", "owner", "state", "size", "mode", "each", "image", "created", "agents", "reason"), rows)


def _each(session: Json) -> str:
    """What each container holds; GPUs where there are any."""
    gpus = ", %g GPUs" % session["gpus"] if session["gpus"] else ""
    return "%s CPUs, %s%s" % (show_cpus(session["each"]["millicpus"]), show_bytes(session["each"]["memory"]), gpus)


def show_time(seconds: float) -> str:
    """A time as the reader's own clock shows it, to the minute."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


def what_happened(session: Json) -> str:
    """The reason of the state; of a running session rather how its containers and its command ended, if they did."""
    told = [describe_container_exit(one) for one in session["containers"] if one["state"] != "running"]
    command = session.get("command")
    if session["state"] == "RUNNING" and command and command["exit_code"] is not None:
        told.append(describe_command_exit(command))
    return "; ".join(told) if session["state"] == "RUNNING" and told else session["reason"]


def agents_table(agents: Sequence[Json]) -> List[str]:
    """A line for every agent: what is used of what there is."""
    rows = [
        (
            one["name"],
            one["group"],
            "up" if one["reachable"] else "lost: %s" % one["reason"],
            "%s of %s" % (show_cpus(one["used"]["millicpus"]), show_cpus(one["capacity"]["millicpus"])),
            "%s of %s" % (show_bytes(one["used"]["memory"]), show_bytes(one["capacity"]["memory"])),
            "%g of %d" % (one["used"]["gpus"], one["capacity"]["gpus"]),
        )
        for one in agents
    ]
    return table(("agent", "group", "state", "cpus", "memory", "gpus"), rows)


def ending(ended: Json, name: str) -> str:
    """What the end of a session is told with."""
    session = ended.get("session") or {}
    if not session:
        return "There is no live session %s: nothing to end." % name
    return "Session %s: %s (%s)" % (session["name"], session["state"], session["reason"])


def logs_view(logs: Sequence[Json], hostnames: Sequence[str] = (), tail: int = 200) -> List[str]:
    """The last lines of each container's log, each line after its container's name, in rank order."""
    lines: List[str] = []
    wanted = [log for log in logs if not hostnames or log["hostname"] in hostnames]
    for log in sorted(wanted, key=lambda log: rank_of(log["hostname"])):
        last = log["text"].splitlines()[-int(tail) :]
        lines += ["%s: %s" % (log["hostname"], line) for line in last] or ["%s: (nothing)" % log["hostname"]]
    return lines


def to_end(sessions: Sequence[Json]) -> List[Json]:
    """The sessions that asked to be ended: their command is done, or it or a container failed, and their policy says so."""
    return [one for one in sessions if one["state"] == "RUNNING" and _is_to_end(one)]


def _is_to_end(session: Json) -> bool:
    command = session.get("command") or {}
    is_done = session["terminate_when_done"] and command.get("exit_code") is not None
    # An agent out of reach may come back with its containers: only a death that was seen ends a session.
    failed = any(one["state"] not in ("running", "unknown") for one in session["containers"]) or command.get(
        "exit_code"
    )
    return bool(is_done or (session["on_failure"] == "terminate" and failed))
