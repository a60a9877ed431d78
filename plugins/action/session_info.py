# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The controller's part of ``session_info``: adds the default owner and the agents' reports, and finds the newest session."""

from __future__ import annotations

import os
from typing import List

from ..module_utils._core.documents import Json
from ..module_utils._core.errors import InputError
from ..module_utils._core.names import ALL_OWNERS
from ..module_utils._text.lists import WIDTH, list_lines
from ..module_utils._text.page import MONTH
from ..plugin_utils import _reports as reports
from ..plugin_utils._action import ComputeAction, login
from ..plugin_utils._page import sessions_page


class ActionModule(ComputeAction):
    """The module reads the store; this action adds the controller's user and the results of the play."""

    def act(self, args: Json, task_vars: Json) -> Json:
        columns = args.pop("columns", None)
        with_page = bool(args.pop("page", False))
        if with_page:
            args["samples"] = MONTH
        newest, containers = bool(args.pop("newest", False)), list(args.pop("containers", None) or [])
        given_owner = args.pop("owner", None)
        owner = given_owner or login()
        args["viewer"] = login()
        args["agents"] = reports.agent_reports(self, args.get("agents"), task_vars)
        result = self.step("sessions.list", args if owner == ALL_OWNERS else dict(args, owner=owner), task_vars)
        if result.get("failed"):
            return result
        if columns is not None:
            name = str(args.get("name") or "")
            result["lines"] = list_lines(result, name, columns, _width())
        if with_page:
            result["page"] = sessions_page(result)
        if newest:
            result["session"] = newest_session(result["sessions"], str(args.get("name") or ""), given_owner)
            check_containers(result["session"], containers)
        return result


def _width() -> int:
    """The columns of the terminal if the environment names them."""
    columns = os.environ.get("COLUMNS", "")
    return int(columns) if columns.isdigit() and int(columns) else WIDTH


def newest_session(sessions: List[Json], name: str, owner: object) -> Json:
    """The newest session; an InputError if there is none."""
    if not name or not sessions:
        whose = "" if owner else " of yours"
        raise InputError("session_name", name, f"no session{whose} has this name; sessions.yml lists them")
    return sessions[-1]


def check_containers(session: Json, hostnames: List[str]) -> None:
    """Raise an InputError if the session lacks any of these containers."""
    known = list(dict.fromkeys(entry["hostname"] for entry in [*session["containers"], *session["logs"]]))
    unknown = [hostname for hostname in hostnames if hostname not in known]
    if unknown:
        rule = f"session {session['name']} has no such container, only {', '.join(known) or 'none yet'}"
        raise InputError("session_logs_containers", ", ".join(unknown), rule)
