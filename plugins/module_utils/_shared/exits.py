# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Exit codes and states of containers, and what each means."""

from __future__ import annotations

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
_ENDED_WITH_COMMAND = "ended with the command of the session"
# How a container ended by itself, by its exit code.
_BY_ITSELF = {**LIMITS, **NO_SECRETS, **dict.fromkeys(WITH_COMMAND, _ENDED_WITH_COMMAND)}
# What is the matter with a container that has not ended, by its state.
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
NOT_BEGUN = "the command does not run since main1 was started; the launch of the session, run again, starts it"
# What PID 1 does about an app that has ended, by the state of the app.
DOWN = {"failed": "not started again", "restarting": "started again after a pause"}


def command_end(exit_code: int | None, oom_killed: bool, reason: str) -> str:
    """Return how a command ended, without a full stop. ``reason`` says why its exit code cannot be known.

    >>> command_end(124, False, ""), command_end(1, False, "")
    ('the command exceeded session_command_timeout and was terminated', 'the command ended with exit code 1')
    """
    if reason:
        return f"the command has ended, but {reason}"
    if oom_killed:
        return f"the command ended with exit code {exit_code}, out of memory"
    if exit_code == TIMED_OUT:
        return "the command exceeded session_command_timeout and was terminated"
    return f"the command ended with exit code {exit_code}"


def app_end(name: str, state: str, exit_code: int | None) -> str:
    """Why an app does not run, without a full stop.

    >>> app_end("web", "failed", 3)
    'app web has ended with exit code 3 and is not started again'
    """
    code = "" if exit_code is None else " with exit code %d" % exit_code
    return f"app {name} has ended{code} and is {DOWN[state]}"


def container_end(where: str, state: str, exit_code: int | None, is_oom: bool, fault: str) -> str:
    """Return how a container that does not run ended, or what it waits for, without a full stop. ``fault`` is what was changed."""
    if state in OTHERWISE:
        return f"{where} {fault}; run cluster_session.yml again to repair the session"
    if state in _NO_END:
        return f"{where} {_NO_END[state]}"
    if exit_code in _BY_ITSELF and not is_oom:
        return f"{where} {_BY_ITSELF[exit_code]}"
    return f"{where} ended with exit code {exit_code}{', out of memory' if is_oom else ''}"
