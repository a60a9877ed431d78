# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All of ``agent_settings``: variables of the role, facts of the host and groups of the inventory, resolved once."""

from __future__ import annotations

from ..module_utils._agents.provisioning import role_settings
from ..module_utils._core.documents import Json
from ..module_utils._module import at_least
from ..module_utils._planning.variable import CHECK
from ..plugin_utils._action import ComputeAction
from ..plugin_utils._conduct.variables import checked

SPEC = {
    "become": {"type": "bool"},
    "docker_host": {"type": "str", "default": ""},
    "state_dir": {"type": "str", "default": ""},
    "swarm": {"type": "bool"},
    "swarm_manager": {"type": "bool", "default": False},
    "swarm_address": {"type": "str", "default": ""},
    "engine_timeout": {"type": "int", "default": 60},
}


class ActionModule(ComputeAction):
    """Connects to no host: the role gathers the facts before."""

    _requires_connection = False

    def act(self, args: Json, task_vars: Json) -> Json:  # noqa: ARG002 (the check reads the task itself)
        # The first step of a check of the agents, too.
        checked(self, task_vars, CHECK)
        _valid, options = self.validate_argument_spec(argument_spec=SPEC)
        at_least({"agent_engine_timeout": options["engine_timeout"]}, agent_engine_timeout=1)
        host = str(task_vars["inventory_hostname"])
        address = str(self._templar.template(task_vars.get("ansible_host") or host))
        facts = task_vars.get("ansible_facts") or {}
        settings = role_settings(host, address, options, facts, task_vars.get("groups") or {})
        return {"changed": False, **settings.to_json()}
