# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Restart containers or an app of a running session in place: the containers are stopped, and then repaired as after their end."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from dataclasses import replace
from typing import List

from ...module_utils._core.documents import Json
from ...module_utils._core.errors import InputError, SessionError
from ...module_utils._core.model import Plan
from ...module_utils._planning.allocation import checked_folders
from ...module_utils._planning.variable import RESTART, SCHEDULE
from .apps import restart_apps
from .launch import Launched, launch
from .placed import Asked
from .play import Play
from .reports import collect_reports
from .session_file import running
from .start import stop
from .variables import checked

_ENDS = "must not be a session with session_on_failure: terminate, which ends when a container stops"


def restart(play: Play) -> Json:
    """Restart C(session_restart_containers), which may be all, or the app C(session_restart_app). Raises SessionError."""
    with play.phase("check"):
        wanted = checked(play.action, play.task_vars, RESTART)["variables"]
        settings = checked(play.action, play.task_vars, SCHEDULE)["variables"]
    name, app = str(play.value("session_name")), str(wanted["session_restart_app"])
    found = running(play)
    if not app and found["on_failure"] == "terminate":
        raise InputError("session_name", name, _ENDS)
    settings = {**settings, "session_wait": 0, "session_wait_result": False}
    asked = Asked(found["request"], settings, queued=str(found["id"]), takes_variables=False, is_silent=True)
    # What does not run is repaired first: the restart is then about containers that run.
    launched = _repaired(play, asked)
    plan, work = launched.placed.plan, launched.placed.work
    if plan is None or work is None:
        raise SessionError(f"Session {name} was not restarted: it does not run.")
    if app:
        restart_apps(play, plan, [app], asked.request.apps_timeout)
        play.show([f"Session {name}: app {app} {'would be ' if play.check else ''}restarted"])
    else:
        launched = _restarted(play, asked, plan, list(wanted["session_restart_containers"])) or launched
    return {"changed": True, "sessions": [launched.placed.session]}


def _restarted(play: Play, asked: Asked, plan: Plan, hostnames: List[str]) -> Launched | None:
    """Stop the containers, all without names, and repair the session. In check mode, the containers are only named."""
    known = [container.hostname for container in plan.containers]
    unknown = [hostname for hostname in hostnames if hostname not in known]
    if unknown:
        raise InputError(
            "session_restart_containers", unknown[0], f"must be a container of the session: {', '.join(known)}"
        )
    chosen = hostnames or known
    if play.check:
        play.show([f"Session {plan.session.name}: {', '.join(chosen)} would be restarted"])
        return None
    stop(play, replace(plan, containers=tuple(one for one in plan.containers if one.hostname in chosen)))
    return _repaired(play, replace(asked, is_silent=False))


def _repaired(play: Play, asked: Asked) -> Launched:
    return launch(play, asked, collect_reports(play, asked.request.image, checked_folders(asked.request)))
