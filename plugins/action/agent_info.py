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
from ..plugin_utils._action import ComputeAction, unreachable
from ..plugin_utils._conduct.reports import of_result


class ActionModule(ComputeAction):
    """A lost agent does not prevent sessions on the others; an action that needs the agent names it."""

    def act(self, args: Json, task_vars: Json) -> Json:
        wrong = ArgumentSpecValidator(ARGUMENT_SPEC).validate(args).error_messages
        if wrong:
            raise ComputeError(f"Options of agent_info: {wrong[0]}")
        try:
            answer = self.module("agent_info", args, task_vars)
        except AnsibleConnectionFailure as error:
            answer = unreachable(str(args["name"]), str(error))
        result = of_result(args, answer)
        return {**result, "lacks": lacks(result)}
