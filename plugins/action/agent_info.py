# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The controller's part of ``agent_info``: a host that does not answer is a report that says so, not a failure."""

from __future__ import annotations

from ansible.errors import AnsibleConnectionFailure

from ..module_utils._shared.codec import ModuleResult
from ..plugin_utils._hosts.action import ComputeAction
from ..plugin_utils._hosts.results import failure_of, unreachable
from ..plugin_utils._hosts.steps import REPORT_COLLECT
from ..plugin_utils._session.reports import answered, report_options


class ActionModule(ComputeAction):
    """A lost agent does not prevent sessions on the others; an action that needs the agent names it."""

    def act(self) -> ModuleResult:
        args = dict(self._task.args)
        options = report_options(args)
        place = {name: options.pop(name) for name in ("docker_host", "timeout")}
        try:
            answer = self.step(REPORT_COLLECT(options=options).with_params(**place), str(args["name"]))
            found = answered(args, failure_of(answer) if answer.get("failed") else answer)
        except AnsibleConnectionFailure as error:
            answer, found = {}, answered(args, unreachable(str(args["name"]), str(error)))
        known = answer if found.lost is None else {"changed": False, "duration": 0.0, **found.lost}
        return {**known, "lacks": list(found.lacks)}
