# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The tables of sessions.yml: sessions, owners, resource groups and agents."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, List, Mapping, Sequence, Tuple

from ...module_utils._shared.codec import Json
from ...module_utils._shared.documents.report import busy_percents
from ...module_utils._shared.exits import PAUSED, limit_reached
from ...module_utils._shared.states import ENDED
from ...module_utils._shared.text.table import gpu_parts, table
from ...module_utils._shared.units import show_bytes, show_cpus, show_seconds, show_time
from .._settings.playbook_settings import ALL_COLUMNS, COLUMNS

# What a list shows where a session has no data folder: its files are removed with it.
NO_FOLDER = "none"
# The resources of a session with roles in the usual table, where those of one session would make every line wide.
BY_ROLE = "by role"
# Columns of a table, unless the environment names another number.
WIDTH = 120
# The amounts of a table, and how each is shown.
_AMOUNTS: Sequence[Tuple[str, Callable[[Any], str]]] = (
    ("millicpus", show_cpus),
    ("memory", show_bytes),
    ("gpus", "{:g}".format),
)
# The usual columns; those that are empty in every line are left out.
USUAL = ("session", "owner", "state", "turn", "priority", "size", "each", "started", "end", "result", "reason")


def list_lines(listed: Json, name: str, columns: Sequence[str] = (), width: int = WIDTH) -> List[str]:
    """A list as tables: sessions, owners, resource groups and agents. ``name`` is that of the only session to show."""
    if name and not listed["sessions"]:
        return [f"No session matches session_name {name}."]
    tables = (
        sessions_table(listed["sessions"], columns, width),
        owners_table(listed["owners"]),
        groups_table(listed["groups"]),
        agents_table(listed["agents"], width),
    )
    return [line for lines in tables for line in (*lines, "")][:-1]


def sessions_table(sessions: Sequence[Json], columns: Sequence[str] = (), width: int = WIDTH) -> List[str]:
    """A line for every session: those that run, those that wait in the order of the queue, and those that have ended."""
    chosen = COLUMNS if ALL_COLUMNS in columns else tuple(columns) or USUAL
    cells = SHOWN if columns else {**SHOWN, "each": _each}
    rows = [[cells[name](session) or "-" for name in chosen] for session in sorted(sessions, key=place_column)]
    shown = [
        place
        for place, name in enumerate(chosen)
        if columns or name in ("session", "state") or any(row[place] != "-" for row in rows)
    ]
    return table([chosen[place] for place in shown], [[row[place] for place in shown] for row in rows], width)


def place_column(session: Json) -> Tuple[int, float]:
    """Return what runs by age, then what waits by turn, then what has ended by its end."""
    if session["state"] in ENDED:
        return 2, session["changed"]
    return (1, session["turn"]) if session["turn"] else (0, session["created"])


def app_column(session: Json) -> str:
    return ", ".join(f"{app['name']} {address_column(app)}" for app in session["apps"])


def _time(seconds: float | None) -> str:
    return show_time(seconds)[len("2026-") :] if seconds else ""


def _reason(session: Json) -> str:
    gpus = gpu_column(session["measured"])
    return "; ".join(filter(None, (session["reason"], *limits_of(session), gpus and f"{gpus} in use")))


def _size(session: Json) -> str:
    return "%d %s" % (session["size"], session["mode"]) if session["size"] > 1 else str(session["size"])


def state_column(session: Json) -> str:
    """The state, with a word for the first thing that is wrong; the reason has the others.

    >>> state_column({"state": "RUNNING", "degraded": ["sub1"], "containers": []})
    'RUNNING (degraded)'
    """
    words = [remark.partition(":")[0] for remark in remarks(session)]
    return f"{session['state']} ({words[0]})" if words else str(session["state"])


def remarks(session: Json) -> List[str]:
    """Return what a running session lacks, what has failed in it, and how its command ended."""
    if session["state"] != "RUNNING":
        return []
    if limit_reached(session.get("containers") or ()):
        return ["ended"]
    found = [f"degraded: {', '.join(session['degraded'])}"] if session.get("degraded") else []
    paused = [one["hostname"] for one in session.get("containers") or () if one["state"] == PAUSED]
    found += [f"paused: {', '.join(paused)}"] if paused else []
    apps = failures_of(session)
    found += [f"unhealthy: {', '.join(apps)}"] if apps else []
    command = session.get("command")
    if command and command["exit_code"] is not None:
        found.append("command failed" if command["exit_code"] else "command succeeded")
    elif command and not command.get("begun", True):
        found.append("command does not run")
    return found


def failures_of(session: Json) -> List[str]:
    """Return what has failed besides the command of main1, whose failure is a result."""
    return [name for name in session.get("unhealthy") or () if name != "command"]


def limits_of(session: Json) -> List[str]:
    """When a running session ends by itself, by the clock of the head, which has placed it."""
    if session["state"] != "RUNNING" or limit_reached(session["containers"]):
        return []
    seconds = session.get("time_left")
    left = "" if seconds is None else f"{show_seconds(seconds)} left"
    idle = session.get("idle_timeout")
    return list(filter(None, (left, f"ends when idle for {show_seconds(idle)}" if idle else "")))


def resources_of(session: Json) -> str:
    """The resources of each container, or of each container of a role; GPUs only if it has any."""
    if session.get("roles"):
        return "; ".join("%d %s: %s" % (role["size"], role["name"], show_amounts(role)) for role in session["roles"])
    parts = "; ".join(gpu_parts(session["each"].get("gpus") or ()))
    return show_amounts({**session["each"], "gpus": session["gpus"]}) + (f" ({parts})" if parts else "")


def _each(session: Json) -> str:
    return BY_ROLE if session.get("roles") else resources_of(session)


def show_amounts(amounts: Mapping[str, float]) -> str:
    """CPUs, memory and, if there are any, GPUs.

    >>> show_amounts({"millicpus": 500, "memory": 1 << 30, "gpus": 2})
    '0.5 CPUs, 1g, 2 GPUs'
    """
    gpus = f", {amounts['gpus']:g} GPUs" if amounts.get("gpus") else ""
    return f"{show_cpus(int(amounts['millicpus']))} CPUs, {show_bytes(int(amounts['memory']))}{gpus}"


def in_use(measured: Json | None) -> str:
    """Return what was measured; empty if nothing was."""
    if not measured:
        return ""
    amounts = f"{show_cpus(round(measured['millicpus'], -2))} CPUs, {show_bytes(measured['memory'])}"
    return ", ".join(filter(None, (amounts, gpu_column(measured))))


def gpu_column(measured: Json | None) -> str:
    """The mean utilization of GPUs; empty if none was measured.

    >>> gpu_column({"gpus": [{"percent": 0}, {"percent": 50}, {"percent": None}]})
    'GPUs 25%'
    """
    percents = busy_percents([measured])
    return "GPUs %d%%" % round(sum(percents) / len(percents)) if percents else ""


def folder_column(session: Json) -> str:
    if session["folders"] is None:
        return "?"
    return ", ".join(folder["target"] for folder in session["folders"]) or NO_FOLDER


def address_column(app: Json) -> str:
    """Address and port of an app. A loopback address is one of its agent; an app without a port is reached by SSH.

    >>> address_column({"address": "2001:db8::7", "port": 30001, "agent": "node1"})
    '[2001:db8::7]:30001'
    >>> address_column({"address": "127.0.0.1", "port": 30001, "agent": "node1"})
    '127.0.0.1:30001 on node1'
    """
    if not app["port"]:
        return "by SSH tunnel"
    host = f"[{app['address']}]" if ":" in app["address"] else app["address"]
    where = f" on {app['agent']}" if host.startswith("127.") else ""
    return "%s:%d%s" % (host, app["port"], where)


def owners_table(owners: Sequence[Json]) -> List[str]:
    """A line for every owner: what the owner's sessions hold, how much a policy allows, and what is left."""
    rows = [(owner["owner"], *owner_cells(owner, _AMOUNTS)) for owner in owners]
    header = ("owner", "sessions", "waiting", "containers", "cpus", "memory", "gpus", "may still have")
    return table(header, rows)


def owner_cells(owner: Json, amounts: Iterable[Tuple[str, Callable[[Any], str]]]) -> List[object]:
    """Return what the owner has of these amounts, and what a policy allows."""
    return [
        allowed_of(owner, "sessions", owner["sessions"], str),
        owner["waiting"],
        allowed_of(owner, "containers", owner["containers"], str),
        *(allowed_of(owner, name, owner["used"][name], show) for name, show in amounts),
        show_amounts(owner["available"]),
    ]


def groups_table(groups: Sequence[Json]) -> List[str]:
    """A line for every resource group: what is allocated of its capacity, and the owner's part of that."""
    rows = [(one["group"], one["agents"], *(share_of(one, name, show) for name, show in _AMOUNTS)) for one in groups]
    return table(("group", "agents", "cpus", "memory", "gpus"), rows)


def share_of(group: Json, name: str, show: Callable[[Any], str]) -> str:
    """Return what is allocated of a resource, and the owner's part, also of what the quotas permit if that is less than the group has.

    >>> group = {"used": {"gpus": 2}, "capacity": {"gpus": 8}, "own": {"gpus": 1}}
    >>> share_of({**group, "own_most": {"gpus": 8}}, "gpus", str), share_of({**group, "own_most": {"gpus": 4}}, "gpus", str)
    ('2 of 8, 1 own', '2 of 8, 1 own of 4')
    """
    shares = f"{show(group['used'][name])} of {show(group['capacity'][name])}"
    if not group["own"]:
        return shares
    most = group["own_most"][name]
    return f"{shares}, {show(group['own'][name])} own{f' of {show(most)}' if most < group['capacity'][name] else ''}"


def allowed_of(owner: Json, name: str, used: float, show: Callable[[Any], str]) -> str:
    """Return what an owner uses of what a policy allows; without a policy, only what the owner uses."""
    allowed = (owner["allowed"] or {}).get(name)
    return show(used) if allowed is None else f"{show(used)} of {show(allowed)}"


def agents_table(agents: Sequence[Json], width: int = WIDTH) -> List[str]:
    """A line for every agent: how much of its capacity is allocated, and how much of that is in use."""
    kinds = {agent["architecture"] for agent in agents if agent["reachable"]}
    differ = ("architecture",) if len(kinds) > 1 else ()
    rows = [
        (
            agent["name"],
            *(agent[name] or "-" for name in differ),
            agent["group"],
            *(f"{show(agent['used'][name])} of {show(agent['capacity'][name])}" for name, show in _AMOUNTS),
            in_use(agent["measured"]) or "-",
            agent_state(agent),
        )
        for agent in agents
    ]
    return table(("agent", *differ, "group", "cpus", "memory", "gpus", "in use", "state"), rows, width)


def agent_state(agent: Json) -> str:
    """Return whether an agent answers and takes new sessions, and the GPUs that no session gets."""
    if not agent["reachable"]:
        return f"lost: {agent['reason']}"
    red = [f"{gpu['id']} is red: {', '.join(gpu['reasons'])}" for gpu in agent["gpu_health"] if gpu["state"] == "red"]
    sharing = agent["gpu_sharing"]
    fault = [sharing["reason"]] if sharing["kind"] != "none" and sharing["reason"] else []
    return "; ".join(["up" if agent["schedulable"] else "up, takes no new sessions", *red, *fault])


# What each column shows of a session; an empty text for nothing.
SHOWN: Dict[str, Callable[[Json], str]] = {
    "session": lambda session: str(session["name"]),
    "owner": lambda session: str(session["owner"]),
    "state": state_column,
    "turn": lambda session: str(session["turn"] or ""),
    "priority": lambda session: str(session["priority"]),
    "group": lambda session: str(session["group"]),
    "kind": lambda session: str(session["kind"]),
    "size": _size,
    "each": resources_of,
    "in use": lambda session: in_use(session["measured"]),
    "image": lambda session: str(session["image"]),
    "started": lambda session: _time(session["started"]),
    "end": lambda session: _time(session["changed"]) if session["state"] in ENDED else "",
    "result": lambda session: str(session["result"]),
    "agents": lambda session: ", ".join(session["agents"]),
    "folders": folder_column,
    "apps": app_column,
    "reason": _reason,
}
