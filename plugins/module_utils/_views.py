# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What people and programs read about a session: ``session.json``, summaries and tables. Docs: docs/session_json.md."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import textwrap
import time
from fnmatch import fnmatchcase
from typing import Any, List, Mapping, Sequence, Tuple

from ansible_collections.cluster.compute.plugins.module_utils._core import arrival
from ansible_collections.cluster.compute.plugins.module_utils._core.apps import tunnel
from ansible_collections.cluster.compute.plugins.module_utils._core.constants import SCHEMA
from ansible_collections.cluster.compute.plugins.module_utils._core.exits import (
    describe_app,
    describe_command_exit,
    describe_container_exit,
    failed_apps,
    limit_reached,
)
from ansible_collections.cluster.compute.plugins.module_utils._core.model import Container, Json, Plan, Port, Resources
from ansible_collections.cluster.compute.plugins.module_utils._core.topology import rank_of
from ansible_collections.cluster.compute.plugins.module_utils._core.units import show_bytes, show_cpus

# Waiting sessions that a pass shows.
_SHOWN_WAITING = 20
# The least width of a last column beside the others; without it, its indentation.
_NARROWEST, _INDENT = 24, "    "
# A restart of main1 ends its command.
_NOT_BEGUN = "the command does not run since main1 was started; the launch of the session, run again, starts it"


def session_document(plan: Plan, session: Json, address: str, timings: Mapping[str, float], folder: str = "") -> Json:
    """The stable result of a launch.

    ``session`` is its row in the store, ``timings`` are seconds per phase, and ``address`` is where the controller reaches
    the agent of main1, and ``folder`` the folder of the session on the controller.
    """
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
        "containers": [_container_entry(container) for container in plan.containers],
        "apps": [_port_entry(port, address, folder) for port in main.ports],
        # The result is recorded when a playbook has waited for it.
        "command": {"result": "", "reason": ""} if plan.session.command else None,
        "timings": {phase: round(float(seconds), 3) for phase, seconds in timings.items()},
    }


def _container_entry(container: Container) -> Json:
    return {
        "id": container.id,
        "hostname": container.hostname,
        "agent": container.agent,
        "rank": container.rank,
        "local_rank": container.local_rank,
        "address": container.address,
        "gpus": [gpu.id for gpu in container.resources.gpus],
    }


def _port_entry(port: Port, address: str, folder: str) -> Json:
    """Where a published port is reached: ``tunnel`` is the command for a reader who is not on the agent."""
    entry = {"name": port.name, "address": _reachable(port.host_ip, address), "port": port.host_port}
    if port.name != "ssh":
        entry["tunnel"] = tunnel(folder, port.host_port, port.container_port)
    return entry


def summary(scheduled: Json, artifacts: str, check_mode: bool = False) -> List[str]:
    """The report of a launch, as lines. ``scheduled`` is the result of the module ``schedule``."""
    session, outcome = scheduled["session"], scheduled["outcome"]
    if outcome == "pending":
        does = "would wait" if check_mode else "is PENDING"
        return ["Session %s %s: %s." % (session["name"], does, scheduled["reason"])]
    plan = arrival.outline(scheduled["plan"], "the head")
    kind = "compute session" if plan.session.size == 1 else "cluster session, %s" % plan.session.mode
    resources = plan.main.resources
    lines = [
        "Session %s: %s (%s)" % (session["name"], _state(scheduled, check_mode), kind),
        "Each container: %s CPUs, %s memory, %s shared memory" % _amounts(resources),
        "Network %s (%s)" % (plan.network.subnet, plan.network.driver),
    ]
    rows = [(container.hostname, container.agent, container.address) for container in plan.containers[:16]]
    lines += ["  " + line for line in table(("container", "agent", "address"), rows)]
    if plan.session.size > 16:
        lines.append("  … and %d more" % (plan.session.size - 16))
    if outcome == "placed" and not plan.session.mounts:
        lines.append("No data folder: the files of this session are removed with it")
    for port in plan.main.ports[1:]:
        lines.append("App %s: port %d of %s" % (port.name, port.host_port, plan.main.agent))
    lines += _gpu_warning(plan)
    if check_mode:
        return lines
    folder = "%s/%s" % (artifacts.rstrip("/"), session["name"])
    lines += _ways_to_apps(plan, folder, str((scheduled.get("deployment") or {}).get("address")))
    lines.append("Enter it: ssh -F %s/ssh_config main1" % folder)
    return lines


def waiting_summary(waiting: Sequence[Any]) -> List[str]:
    """The sessions that a pass over the queue leaves waiting, first to last; each has a name and a reason."""
    lines = ["Session %s is PENDING: %s." % (one.name, one.reason) for one in waiting[:_SHOWN_WAITING]]
    more = len(waiting) - len(lines)
    return lines + (["… and %d more wait; sessions.yml lists them" % more] if more else [])


def _gpu_warning(plan: Plan) -> List[str]:
    """A warning if several containers on an agent have GPUs of their own: NCCL takes containers for different hosts."""
    with_gpus = [one.agent for one in plan.containers if sum(gpu.shares for gpu in one.resources.gpus) >= 1]
    agents = [name for name in dict.fromkeys(with_gpus) if with_gpus.count(name) > 1]
    if not agents:
        return []
    found = (
        "several containers have GPUs of the same agent (%s): NCCL connects them by sockets, not by NVLink"
        % ", ".join(agents)
    )
    return ["Warning: %s; use session_per_agent: 1, and give the container of each agent all its GPUs" % found]


def _ways_to_apps(plan: Plan, folder: str, address: str) -> List[str]:
    """Where the URLs are, and the commands that make loopback ports of another machine ports of this machine."""
    lines = []
    if any(app.command for app in plan.session.apps):
        lines.append("Open the apps in a browser: their URLs, with tokens, are in %s/apps" % folder)
    private = [port for port in plan.main.ports[1:] if port.host_ip.startswith("127.")]
    if private and not address.startswith("127."):
        lines.append("Each needs a connection to %s first, which lasts until it is stopped:" % plan.main.agent)
        lines += ["  %s" % tunnel(folder, port.host_port, port.container_port) for port in private]
    return lines


def table(header: Sequence[str], rows: Sequence[Sequence[Any]], width: int = 0) -> List[str]:
    """Columns as wide as their widest cell. With a ``width``, a last column that is too wide goes on in the next line.

    If the others leave it too little, it is in lines of its own.

    >>> table(("a", "b"), [("long", 1)])
    ['A     B', 'long  1']
    """
    cells = [[name.upper() for name in header]] + [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    starts = ["".join("%s  " % cell.ljust(column) for cell, column in zip(row[:-1], widths)) for row in cells]
    room = width - len(starts[0])
    if not width or widths[-1] <= room:
        return [(start + row[-1]).rstrip() for start, row in zip(starts, cells)]
    lines = []
    for start, row in zip(starts, cells):
        if room < _NARROWEST:
            parts = textwrap.wrap(row[-1], width, initial_indent=_INDENT, subsequent_indent=_INDENT)
            lines += [start.rstrip(), *parts]
        else:
            parts = textwrap.wrap(row[-1], room) or [""]
            lines += [((" " * len(start) if number else start) + part).rstrip() for number, part in enumerate(parts)]
    return lines


def _state(scheduled: Json, check_mode: bool) -> str:
    if scheduled["outcome"] == "placed":
        return "would be launched" if check_mode else "RUNNING"
    changes = _repairs(scheduled, check_mode) + _new_limits(scheduled, check_mode)
    return "RUNNING, %s" % (", ".join(changes) or "nothing to do")


def _repairs(scheduled: Json, check_mode: bool) -> List[str]:
    """What a launch does about a session that runs: at most one of these."""
    if scheduled["outcome"] == "repair":
        missing = ", ".join(scheduled["missing"])
        return ["%s %s" % (missing, "would be brought back" if check_mode else "brought back")]
    if scheduled.get("has_next_command"):
        return ["another command %s" % ("would run" if check_mode else "runs now")]
    apps = ", ".join("app %s" % name for name in scheduled.get("failed_apps") or ())
    if apps:
        return ["%s %s" % (apps, "would be started again" if check_mode else "started again")]
    if scheduled.get("restored_files"):
        return ["its files on this controller %s written again" % ("would be" if check_mode else "are")]
    return []


def _new_limits(scheduled: Json, check_mode: bool) -> List[str]:
    names = scheduled.get("new_limits") or ()
    session = arrival.outline(scheduled["plan"], "the head").session
    values = ((name, getattr(session, name)) for name in names)
    shown = ["%s %s" % (name.replace("_", " "), show_seconds(value) if value else "none") for name, value in values]
    return ["limit %s: %s" % ("would change" if check_mode else "changed", ", ".join(shown))] if names else []


def _amounts(resources: Resources) -> Tuple[str, str, str]:
    return show_cpus(resources.millicpus), show_bytes(resources.memory), show_bytes(resources.shm)


def _reachable(host_ip: str, address: str) -> str:
    """The address of a published port: loopback, for a reader on the agent itself, or the agent's address."""
    return host_ip if host_ip.startswith("127.") else address


def show_time(seconds: float) -> str:
    """A time, in seconds since the epoch, in the reader's time zone, to the minute."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


def show_seconds(seconds: float) -> str:
    """A time span in its two largest units.

    >>> show_seconds(93784), show_seconds(3600), show_seconds(59.9)
    ('1 d 2 h', '1 h', '59 s')
    """
    left, parts = int(seconds), []
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        parts.append((left // size, unit))
        left %= size
    first = next((place for place, (count, _unit) in enumerate(parts) if count), len(parts) - 1)
    return " ".join("%d %s" % part for part in parts[first : first + 2] if part[0] or first == len(parts) - 1)


def what_happened(session: Json) -> str:
    """The reason of a session's state. For a running session: how its command, apps and containers ended, if they did."""
    if session["state"] == "RUNNING" and limit_reached(session["containers"]):
        return limit_reached(session["containers"])
    ends = [
        describe_container_exit(container) for container in session["containers"] if container["state"] != "running"
    ]
    ends += [describe_app(app) for app in failed_apps(session["containers"])]
    command = session.get("command")
    if session["state"] == "RUNNING" and command and command["exit_code"] is not None:
        ends.append(describe_command_exit(command))
    elif session["state"] == "RUNNING" and command:
        ends.append("the command runs" if command.get("begun", True) else _NOT_BEGUN)
    return "; ".join(ends) if session["state"] == "RUNNING" and ends else session["reason"]


def termination_summary(session: Json, name: str, check_mode: bool = False) -> str:
    """The report of a termination. ``session`` is its row in the store, empty if no live session has the name."""
    if not session:
        return "There is no live session %s: nothing to end." % name
    if check_mode:
        does = "cancelled" if session["state"] == "CANCELLED" else "terminated"
        return "Session %s would be %s." % (session["name"], does)
    return "Session %s: %s (%s)" % (session["name"], session["state"], session["reason"])


def names_matching(sessions: Sequence[Json], pattern: str) -> List[str]:
    """The names of the sessions that match a pattern of a shell, in the order of the list."""
    return [session["name"] for session in sessions if fnmatchcase(session["name"], str(pattern))]


def match_summary(names: Sequence[str], pattern: str, refused: bool = False) -> str:
    """What a pattern of names terminates, or would terminate if the user meant several sessions.

    >>> match_summary(["sweep-1", "sweep-2"], "sweep-*")
    '2 live sessions match sweep-*: sweep-1, sweep-2'
    """
    count = "%d live session%s" % (len(names), " matches" if len(names) == 1 else "s match")
    advice = "; add -e session_many=true to terminate them." if refused else ""
    return "%s %s: %s%s" % (count, pattern, ", ".join(names) or "nothing to end", advice)


def logs_view(logs: Sequence[Json], hostnames: Sequence[str] = (), tail: int = 200) -> List[str]:
    """The last lines of each container's log, each line after its container's name, in rank order."""
    lines: List[str] = []
    wanted = [log for log in logs if not hostnames or log["hostname"] in hostnames]
    for log in sorted(wanted, key=lambda log: rank_of(log["hostname"])):
        last = log["text"].splitlines()[-int(tail) :]
        lines += ["%s: %s" % (log["hostname"], line) for line in last] or ["%s: (nothing)" % log["hostname"]]
    return lines


def finished_sessions(sessions: Sequence[Json]) -> List[Json]:
    """The sessions that schedule.yml terminates.

    They have ended by themselves or have outlived their lifetime, or their command has ended and terminate_when_done is set, or the
    command or a container failed and on_failure is terminate.
    """
    return [session for session in sessions if session["state"] == "RUNNING" and _is_finished(session)]


def healing_sessions(sessions: Sequence[Json]) -> List[Json]:
    """The sessions that schedule.yml repairs: they have lost containers or apps, ask for them, and all of their agents answer."""
    return [
        session
        for session in sessions
        if session["state"] == "RUNNING"
        and session.get("on_failure") == "restart"
        and (session["degraded"] or failed_apps(session["containers"]))
        and session["request"]
        and not _is_finished(session)
        and all(container["state"] != "unknown" for container in session["containers"])
    ]


def _is_finished(session: Json) -> bool:
    command = session.get("command") or {}
    is_done = bool(session["terminate_when_done"]) and command.get("exit_code") is not None
    # An agent that is out of reach may come back with its containers: only an end that is seen counts.
    has_dead = any(container["state"] not in ("running", "unknown") for container in session["containers"])
    has_failed = has_dead or bool(command.get("exit_code"))
    is_over = bool(limit_reached(session["containers"])) or session.get("overdue", False)
    return is_over or is_done or (session["on_failure"] == "terminate" and has_failed)
