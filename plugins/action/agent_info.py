# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The controller's part of ``agent_info``: a host that does not answer is a report that says so, not a failure."""

from __future__ import annotations

from ansible.errors import AnsibleConnectionFailure
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ..module_utils._core.documents import Json
from ..module_utils._core.errors import ComputeError
from ..module_utils._planning.provisioning import lacks
from ..modules.agent_info import ARGUMENT_SPEC
from ..plugin_utils._action import ComputeAction
from ..plugin_utils._coming_modules import building, share
from ..plugin_utils._fresh_reports import checked_report, lost_report

# The modules of the steps that follow.
COMING = ("schedule", "containers")


class ActionModule(ComputeAction):
    """A lost agent does not prevent sessions on the others; an action that needs the agent names it."""

    def act(self, args: Json, task_vars: Json) -> Json:
        wrong = ArgumentSpecValidator(ARGUMENT_SPEC).validate(args).error_messages
        if wrong:
            raise ComputeError(f"Options of agent_info: {wrong[0]}")
        result = self._result(args, task_vars)
        return {**result, "lacks": lacks(result), "options": args}

    def _result(self, args: Json, task_vars: Json) -> Json:
        coming = share(COMING, task_vars)
        try:
            # A module that runs in this process needs no archive.
            with building(self, coming if coming and not self.is_here(task_vars) else [], task_vars):
                result = self.module("agent_info", args, task_vars)
        except AnsibleConnectionFailure as error:
            return {**_lost(args, {"msg": str(error)}, may_return=True), "connected": False}
        if result.get("failed") and (result.get("failure") or {}).get("code") != "input":
            return _lost(args, result, may_return=False)
        return {**result, "agent": checked_report(args, result)} if result.get("agent") else result


def _lost(args: Json, failure: Json, *, may_return: bool) -> Json:
    """A lost connection may come back. A module that fails, for example without a library, fails again until the host is repaired."""
    report = {**lost_report(args, failure), "may_return": may_return}
    return {"changed": False, "agent": report, "duration": 0.0}
