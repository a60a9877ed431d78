# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All of ``session_request``: it reads the variables of the role on the controller and touches no host."""

from __future__ import annotations

from ..module_utils._core.documents import Json
from ..plugin_utils._action import ComputeAction
from ..plugin_utils._conduct.variables import checked

SPEC = {
    "entry_point": {
        "type": "str",
        "choices": "main schedule terminate logs list exec copy apps environments policy usage check".split(),
        "default": "main",
    },
    "name": {"type": "str", "default": ""},
    "environments": {"type": "raw"},
}


class ActionModule(ComputeAction):
    """Takes the declared variables from the variables of the task."""

    _requires_connection = False

    def act(self, args: Json, task_vars: Json) -> Json:  # noqa: ARG002 (the check reads the task itself)
        _valid, given = self.validate_argument_spec(argument_spec=SPEC)
        return checked(self, task_vars, str(given["entry_point"]), str(given["name"]), given["environments"])
