# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Complete the entry of a session in a list: its apps, its folders, and what a pass over the queue does about it."""

from __future__ import annotations

from typing import Dict, Iterable, List, Sequence, Set, Tuple

from .._shared import states
from .._shared.codec import Json, subset
from .._shared.constants import RELOCATE, RESTART_ALL
from .._shared.documents.container_view import failed_apps
from .._shared.documents.plan import Plan, Port
from .._shared.documents.report import AgentReport, AppState, ObservedContainer
from .._shared.documents.topology import kept_apps
from .._shared.documents.view import AppView, FolderView, SessionView
from .._shared.exits import OTHERWISE, UP
from .._shared.planning.request import PRIVATE_FIELDS
from .session_record import SessionRecord

# Values of session_on_failure with which a pass repairs a session.
HEALING = ("restart", RESTART_ALL)
# Seconds that PID 1 may need beside the grace to end a session: it looks at its limits every five.
_PAUSE = 15


def started_containers(row: SessionRecord) -> float | None:
    """When the session became RUNNING, or None if it never did. Of an adopted session, when its containers were created."""
    times = [entry.time for entry in row.history if entry.after == states.RUNNING and entry.before != states.RUNNING]
    return (times[-1] or row.created) if times else None


def time_left(session: SessionView, now: float) -> float | None:
    """Seconds until the lifetime of a running session is over, or None if it has no lifetime."""
    return max(0.0, round(session.ends - now, 3)) if session.runs and session.ends else None


def is_overdue(row: SessionRecord, now: float) -> bool:
    """Return whether a running session has outlived its lifetime: what keeps it in the containers can be stopped by root there."""
    session, has_lifetime = row.settings, row.state == states.RUNNING and bool(row.settings.lifetime)
    return has_lifetime and now > session.began + session.lifetime + session.grace + _PAUSE


def visible_request(request: Json | None, owner: str, viewer: str) -> Json | None:
    """A request as a viewer sees it: without the parts that only its owner may read."""
    if request is None or owner == viewer:
        return request
    return {name: value for name, value in request.items() if name not in PRIVATE_FIELDS}


def finished_sessions(sessions: Sequence[SessionView]) -> List[SessionView]:
    """The sessions that schedule.yml terminates.

    They have ended by themselves or have outlived their lifetime, or their command has ended and terminate_when_done is set, or the
    command or a container failed and on_failure is terminate. Sessions in the state TERMINATING
    are included: the controller that began to end them may be gone.
    """
    return [
        session
        for session in sessions
        if session.state == states.TERMINATING or (session.runs and _is_finished(session))
    ]


def sessions_to_repair(sessions: Sequence[SessionView]) -> List[SessionView]:
    """The sessions that schedule.yml repairs: they have lost containers or apps, ask for them, and all of their agents answer."""
    return [
        session
        for session in sessions
        if session.runs
        and _asks_for_repair(session)
        and session.request
        and not _is_finished(session)
        and all(container.state != "unknown" for container in session.containers)
    ]


def _asks_for_repair(session: SessionView) -> bool:
    """A container that has moved and is missing is made again, whatever the session does about other failures."""
    is_lost = session.on_lost == RELOCATE and any(one.state == "missing" for one in session.containers)
    has_failed = session.degraded or failed_apps(session.containers)
    return is_lost or bool(session.on_failure in HEALING and has_failed and not session.restart_waits)


def _is_finished(session: SessionView) -> bool:
    command = session.command
    has_failed = bool(command and command.exit_code)
    is_again = bool(has_failed and session.degraded and session.restarts_left)
    is_done = bool(session.terminate_when_done and command and command.has_ended) and not is_again
    is_over = bool(session.limit_reached) or session.overdue
    return is_over or is_done or (session.on_failure == "terminate" and has_failed) or has_died(session)


def has_died(session: SessionView) -> bool:
    """Return whether a session ends because a container has died.

    An agent that is out of reach may come back with its containers: only an end that is seen counts.
    """
    is_dead = any(container.state not in (*UP, *OTHERWISE, "unknown") for container in session.containers)
    return is_dead and session.on_failure == "terminate"


def apps_of(row: SessionRecord, agents: Sequence[AgentReport]) -> List[AppView]:
    """The apps that run now, each with the address at which a user reaches it.

    A port without a program of PID 1 counts as an app. While a container does not run, its apps are listed as they were launched.
    """
    if row.state not in states.HOLDING:
        return []
    where, main = row.main_on(agents)
    ports = row.plan.main.ports if row.plan else main.planned_ports if main else ()
    address = {agent.name: agent.address for agent in agents}.get(where) or where
    own = [
        AppView(name, host_ip if host_ip.startswith("127.") or not port else address, port, where)
        for name, (host_ip, port) in _published(row, ports, main).items()
    ]
    return own + (_of_roles(row.plan, agents) if row.plan else [])


def _of_roles(plan: Plan, agents: Iterable[AgentReport]) -> List[AppView]:
    """The apps of other containers than main1, which publish no port."""
    ended = ended_apps(plan, agents)
    return [AppView(app.name, "", 0, one.agent) for one, app in kept_apps(plan) if one.rank and app.name not in ended]


def ended_apps(plan: Plan, agents: Iterable[AgentReport]) -> List[str]:
    """The apps of roles that their containers, which run, keep no more: they were removed."""
    own = [((one.agent, one.id), app.name) for one, app in kept_apps(plan) if one.rank]
    # Few sessions have such apps: a list of many sessions looks at the containers of all agents for these alone.
    observed = [(agent.name, one) for agent in agents for one in agent.containers] if own else []
    # A container whose apps are not known is taken to run them.
    kept = {(agent, one.id): _running(one.apps) for agent, one in observed if one.apps is not None}
    return [name for place, name in own if name not in kept.get(place, (name,))]


def _running(apps: Iterable[AppState]) -> Set[str]:
    """The apps that PID 1 keeps."""
    return {app.name for app in apps if app.state != "ended"}


def _published(row: SessionRecord, ports: Sequence[Port], main: ObservedContainer | None) -> Dict[str, Tuple[str, int]]:
    """The apps by name, each with the address and the port that are published for it; an empty text and 0 for none."""
    found = {port.name: (port.host_ip, port.host_port) for port in ports if port.name != "ssh"}
    if main is None or main.state != "running" or main.apps is None:
        return found
    running = _running(main.apps)
    known = [app.name for app in main.apps] + [app.name for app in row.settings.apps if app.command]
    removed = set(known) - running
    relays = {relay.name: (relay.host_ip, relay.port) for relay in main.relays or ()}
    staying = {name: place for name, place in found.items() if name not in removed}
    return {**staying, **{name: relays.get(name, staying.get(name, ("", 0))) for name in sorted(running)}}


def folders_of(row: SessionRecord) -> Tuple[FolderView, ...] | None:
    """The data folders; None if neither the plan nor the request is known."""
    known = row.plan.session if row.plan else row.request
    return tuple(FolderView(**subset(mount, "source", "target", "mode")) for mount in known.mounts) if known else None
