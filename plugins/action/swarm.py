# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The controller's half of ``swarm``: decides who begins, joins or leaves. Everything else is the module's."""

from __future__ import annotations

from ansible_collections.cluster.compute.plugins.module_utils._agents.swarm_plan import Node, plan_leave, plan_swarm
from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json
from ansible_collections.cluster.compute.plugins.plugin_utils._action import ComputeAction


class ActionModule(ComputeAction):
    """``state: planned`` touches no host."""

    def act(self, args: Json, task_vars: Json) -> Json:
        if args.get("state") != "planned":
            return self.module("swarm", args, task_vars)
        nodes = [Node.from_json(one) for one in args.get("agents") or []]
        leaving = set(args.get("leaving") or [])
        if leaving:
            gone = [node for node in nodes if node.name in leaving]
            plan = plan_leave(gone, [node for node in nodes if node.name not in leaving])
        else:
            plan = plan_swarm(nodes, str(args.get("head") or "")).to_json()
        return {"changed": False, "plan": plan}
