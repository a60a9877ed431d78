# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The action of ``agent_step``: a step of the collection's own roles, on an agent or on the controller."""

from __future__ import annotations

from ..module_utils._core.documents import Json
from ..module_utils._steps.step import carry_out
from ..modules.agent_step import ARGUMENT_SPEC
from ..plugin_utils._action import Controller, StepAction
from ..plugin_utils._controller_steps import STEPS
from ..plugin_utils._runtime_scripts import runtime_scripts


class ActionModule(StepAction):
    """Adds what the inventory says of the host, and the scripts of this release."""

    SPEC = ARGUMENT_SPEC

    def carried_out(self, call: str, params: Json, options: Json, task_vars: Json) -> Json:
        if call in STEPS:
            return {"changed": False, **carry_out(call, STEPS[call], Controller(self, task_vars), params)}
        if call == "runtime.install":
            scripts = runtime_scripts()
            params = {"scripts": dict(scripts.texts), "applets": list(scripts.applets), **params}
        return super().carried_out(call, params, options, task_vars)
