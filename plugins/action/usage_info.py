# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The action of ``usage_info``: reads the ledger of the session store on the head."""

from __future__ import annotations

from ..module_utils._core.documents import Json
from ..modules.usage_info import ARGUMENT_SPEC, RULES
from ..plugin_utils._action import ComputeAction


class ActionModule(ComputeAction):
    """The task runs on the head."""

    def act(self, args: Json, task_vars: Json) -> Json:  # noqa: ARG002 (Ansible reads the options of the task itself)
        return self.step("store.usage", self.checked(ARGUMENT_SPEC, RULES), task_vars)
