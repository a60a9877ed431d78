# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a session is in its state: how its command, its apps and its containers ended."""

from __future__ import annotations

from typing import Iterable, List

from .codec import Json

# The exit code of a command that exceeded its timeout, as of timeout(1).
TIMED_OUT = 124
# How PID 1 ends a container by itself (roles/image/files/init.sh).
LIFETIME = 80
LIMITS = {LIFETIME: "ended: its lifetime is over", 81: "ended: it was idle for session_idle_timeout"}
# The result of the command of main1 that has ended the session.
WITH_COMMAND = {83: "SUCCESS", 84: "FAILURE"}
NO_SECRETS = {82: "ended: no secrets came after its start; run cluster_session.yml again to repair the session"}
# The state of a container that runs, and has no sshd before its secrets have come.
WAITING = "waiting"
# The state of a container that runs without its interface on the fabric.
APART = "apart"
# The state of a container that a user holds, and will let go on.
PAUSED = "paused"
# What a session has lost is in none of these states.
UP = ("running", PAUSED)
# The states of a container that runs, and that someone has changed: it is away from its place on the network, its ports are not
# published, or its limits are others. A repair brings it back. No session ends because of it.
DETACHED, UNPUBLISHED, CHANGED = "detached", "unpublished", "changed"
OTHERWISE = (DETACHED, UNPUBLISHED, CHANGED)
_BY_ITSELF = {**LIMITS, **NO_SECRETS, **dict.fromkeys(WITH_COMMAND, "ended with the command of the session")}
# What PID 1 does about an app that has ended.
_DOWN = {"failed": "not started again", "restarting": "started again after a pause"}
_NO_END = {
    "missing": "is gone",
    "unknown": "is out of reach",
    APART: "has no interface on the fabric; run cluster_session.yml again to repair the session",
    PAUSED: "is paused; `docker unpause` lets it go on, and so does cluster_session.yml, run again",
    WAITING: "waits for its secrets; run cluster_session.yml again to repair the session",
}
# The beginning of the reason of a session that ends because an agent is lost.
LOST = "ended: agent lost: "
# The beginning of the reason of a session that has lost an agent and stays where it is.
UNMOVED = "not relocated: "
# A restart of main1 ends its command.
_NOT_BEGUN = "the command does not run since main1 was started; the launch of the session, run again, starts it"


def describe_command_exit(command: Json) -> str:
    """Return how a batch command ended, without a full stop.

    ``command`` has ``exit_code``, ``oom_killed`` and, where the exit code cannot be known, ``reason``.
    """
    if command.get("reason"):
        return f"the command has ended, but {command['reason']}"
    if command.get("oom_killed"):
        return f"the command ended with exit code {command['exit_code']}, out of memory"
    if command["exit_code"] == TIMED_OUT:
        return "the command exceeded session_command_timeout and was terminated"
    return f"the command ended with exit code {command['exit_code']}"


def describe_container_exit(container: Json) -> str:
    """Return how a container that does not run ended, or what it waits for, without a full stop.

    ``container`` has ``hostname``, ``agent``, ``state``, and ``exit_code`` and ``oom_killed`` if its engine knows it.
    """
    where = f"{container['hostname']} on {container['agent']}"
    if container["state"] in OTHERWISE:
        return f"{where} {container['fault']}; run cluster_session.yml again to repair the session"
    if container["state"] in _NO_END:
        return f"{where} {_NO_END[container['state']]}"
    if container.get("exit_code") in _BY_ITSELF and not container.get("oom_killed"):
        return f"{where} {_BY_ITSELF[container['exit_code']]}"
    memory = ", out of memory" if container.get("oom_killed") else ""
    return f"{where} ended with exit code {container.get('exit_code')}{memory}"


def failed_apps(containers: Iterable[Json]) -> List[Json]:
    """The apps of these containers that do not run: PID 1 starts them again after a pause, or not any more."""
    return [app for container in containers for app in container.get("apps") or () if app["state"] in _DOWN]


def failed_roles(containers: Iterable[Json]) -> List[Json]:
    """The containers in which the command of their role has failed. The command of main1, at rank 0, is that of the session."""
    return [one for one in containers if one["rank"] and (one.get("batch") or {}).get("exit_code")]


def describe_app(app: Json) -> str:
    """Why an app does not run, without a full stop.

    >>> describe_app({"name": "web", "state": "failed", "exit_code": 3})
    'app web has ended with exit code 3 and is not started again'
    """
    code = "" if app["exit_code"] is None else " with exit code %d" % app["exit_code"]
    return f"app {app['name']} has ended{code} and is {_DOWN[app['state']]}"


def limit_reached(containers: Iterable[Json]) -> str:
    """Why the session of these containers has ended by itself, or an empty text.

    main1 decides: a sub that ended alone had lost main1.
    """
    found = list(containers)
    main = next((container for container in found if container["hostname"] == "main1"), None)
    if main is None or main["state"] != "exited":
        return ""
    # Perhaps out of memory: the engine says so for any process that the kernel has ended.
    if main["exit_code"] in WITH_COMMAND:
        return _end_with_command(main.get("batch") or {}, found)
    return "" if main.get("oom_killed") else LIMITS.get(main["exit_code"], "")


def _end_with_command(command: Json, containers: Iterable[Json]) -> str:
    """Return how the command ended, after the containers that have died before."""
    dead = [one for one in containers if one["state"] == "exited" and one["exit_code"] not in WITH_COMMAND]
    known = command.get("exit_code") is not None
    ends = [describe_command_exit(command) if known else "ended with its command"]
    return "; ".join([*map(describe_container_exit, dead), *ends])


def what_happened(session: Json) -> str:
    """The reason of a session's state. For a running session: how its commands, apps and containers ended, if they did."""
    containers, command = session["containers"], session.get("command")
    if session["state"] != "RUNNING":
        return str(session["reason"])
    if limit_reached(containers):
        return limit_reached(containers)
    ends = [describe_container_exit(container) for container in containers if container["state"] != "running"]
    ends += [describe_app(app) for app in failed_apps(containers)]
    ends += [f"{one['hostname']}: {describe_command_exit(one['batch'])}" for one in failed_roles(containers)]
    if command and command["exit_code"] is not None:
        ends.append(describe_command_exit(command))
    elif command:
        ends.append("the command runs" if command.get("begun", True) else _NOT_BEGUN)
    if not ends:
        return str(session["reason"])
    waits = session.get("restart_waits")
    ends += [f"not restarted now: {waits}"] if waits else []
    ends += [session["reason"]] if session["reason"].startswith(UNMOVED) else []
    return "; ".join(ends)
