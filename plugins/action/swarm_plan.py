# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All of ``swarm_plan``: it decides on the controller, from the registered results of the hosts of the play."""

from __future__ import annotations

from ..module_utils._agents.swarm_plan import Node, peers, plan_leave, plan_swarm
from ..module_utils._core.documents import Json
from ..plugin_utils._action import ComputeAction

SPEC = {
    "memberships": {"type": "str", "required": True},
    "answers": {"type": "list", "elements": "dict", "default": []},
    "leave": {"type": "bool", "default": False},
    "settings": {"type": "str", "default": "__agent"},
    "head": {"type": "str", "default": ""},
    "agents": {"type": "list", "elements": "str", "default": []},
}


class ActionModule(ComputeAction):
    """Hosts that have failed in this play do not count."""

    _requires_connection = False

    def act(self, args: Json, task_vars: Json) -> Json:  # noqa: ARG002 (the check reads the task itself)
        _valid, options = self.validate_argument_spec(argument_spec=SPEC)
        active = task_vars["ansible_play_hosts"]
        found = self.results_of_hosts(options["memberships"], task_vars)
        settings = self.results_of_hosts(options["settings"], task_vars)
        own = [_node(found[host], settings.get(host) or {}) for host in active if (found.get(host) or {}).get("swarm")]
        others = [_node(result, {}) for result in options["answers"] if result.get("swarm")]
        if options["leave"]:
            staying = [agent for agent in options["agents"] if agent not in found or agent not in active]
            return {"changed": False, "plan": {**plan_leave(own, others), "staying": staying}}
        nodes = [*own, *others]
        plan = plan_swarm(nodes, options["head"]).to_json() if nodes else {}
        return {"changed": False, "plan": {**plan, "peers": peers(nodes)}}


def _node(result: Json, settings: Json) -> Node:
    return Node.from_json({**result["swarm"], "wanted": settings.get("swarm_manager")})
