# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All of ``queue_failures``: it reads the last failure of the host on the controller."""

from __future__ import annotations

from ..module_utils._core.documents import Json
from ..plugin_utils import _reports as reports
from ..plugin_utils._action import ComputeAction


class ActionModule(ComputeAction):
    """The failures so far, and the last one as a sentence."""

    _requires_connection = False

    def act(self, args: Json, task_vars: Json) -> Json:
        failures, kind = list(args.get("previous") or []), args.get("failure")
        failed = task_vars.get(reports.FAILURE) or {}
        if kind == "repair":
            return {"changed": False, "failures": failures, "unrepaired": _unrepaired(str(args["session"]), failed)}
        added = [_sentence(args, failed)] if kind else []
        return {"changed": False, "failures": failures + added, "unrepaired": ""}


def _unrepaired(session: str, failed: Json) -> str:
    prefix, why = f"Session {session} was not repaired", str(failed.get("msg") or "an agent failed.")
    return why if why.startswith(prefix) else f"{prefix}: {why}"


def _sentence(args: Json, failed: Json) -> str:
    if args["failure"] == "launch":
        return f"{args['session']}: {failed.get('msg') or 'it was not launched.'}"
    missing = {"termination": "a session could not be terminated.", "upkeep": "the store could not be kept in order."}
    return str(failed.get("msg") or missing[args["failure"]])
