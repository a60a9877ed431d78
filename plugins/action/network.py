# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The action of ``network``: carries out the step of a state on the engine of the task's host."""

from __future__ import annotations

from ..module_utils._shared.codec import ModuleResult
from ..module_utils._shared.documents import validation
from ..plugin_utils._hosts.action import TASK, ComputeAction
from ..plugin_utils._hosts.steps import NETWORK_ABSENT, NETWORK_PRESENT


class ActionModule(ComputeAction):
    """A plan stands for its session."""

    RULES = {
        "mutually_exclusive": [["plan", "sessions"]],
        "required_if": [("state", "present", ["plan"]), ("state", "absent", ["plan", "sessions"], True)],
    }

    def act(self) -> ModuleResult:
        options = self.checked()
        plan = validation.plan(options["plan"], TASK) if options["plan"] is not None else None
        if plan and options["state"] == "present":
            return self.step(NETWORK_PRESENT(plan=plan))
        sessions = [plan.session.id] if plan else options["sessions"]
        return self.step(NETWORK_ABSENT(sessions=sessions, deadline=options["deadline"]))
