# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The controller's half of ``session``: checks a request without touching any host, and keeps the session's result."""

from __future__ import annotations

from typing import Dict, List, Sequence

from ansible_collections.cluster.compute.plugins.module_utils._core import states
from ansible_collections.cluster.compute.plugins.module_utils._core.errors import InputError
from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json, Plan
from ansible_collections.cluster.compute.plugins.module_utils._core.names import random_name
from ansible_collections.cluster.compute.plugins.module_utils._planning.request import Request, check_request
from ansible_collections.cluster.compute.plugins.module_utils._planning.rules import check_count
from ansible_collections.cluster.compute.plugins.module_utils._views import session_document
from ansible_collections.cluster.compute.plugins.plugin_utils._action import ComputeAction, holder, login
from ansible_collections.cluster.compute.plugins.plugin_utils._artifacts import Artifacts
from ansible_collections.cluster.compute.plugins.plugin_utils._user_templates import check_environment


class ActionModule(ComputeAction):
    """``state: checked`` never leaves the controller; the other states change the store on the head."""

    def act(self, args: Json, task_vars: Json) -> Json:
        if args.get("state") == "checked":
            requests = _checked(args.get("request") or {}, args.get("count", 1))
            _check_agents(requests[0], args.get("inventory") or requests[0].agents)
            paths = [mount.source for mount in requests[0].mounts if mount.type == "bind"]
            return {"changed": False, "requests": [request.to_json() for request in requests], "paths": paths}
        mine = {name: args.pop(name, None) for name in ("artifacts", "plan", "address", "timings")}
        args["agents"] = [report["agent"] for report in args.get("agents") or []]
        result = self.module("session", dict(args, holder=holder()), task_vars)
        if not result.get("failed"):
            result.update(self._keep(mine, result["session"]))
        return result

    def _keep(self, mine: Json, session: Json) -> Json:
        """``session.json`` while the session lives; nothing of it once it has ended."""
        if not mine["artifacts"] or not session or self._task.check_mode:
            return {}
        artifacts = Artifacts(mine["artifacts"], session["name"])
        if session["state"] in states.ENDED:
            artifacts.remove(session["id"])
        elif mine["plan"]:
            plan = Plan.from_json(mine["plan"])
            document = session_document(plan, session, str(mine["address"]), mine["timings"] or {})
            artifacts.write_json("session.json", document)
            return {"document": document, "artifacts": artifacts.folder}
        return {}


def _check_agents(request: Request, inventory: Sequence[str]) -> None:
    """A designated agent that is none would be waited for in vain."""
    unknown = [name for name in request.agents if name not in inventory]
    if unknown:
        raise InputError(
            "session_agents", unknown[0], "it is no agent of this play; there is %s" % ", ".join(inventory)
        )


def _checked(variables: Json, count: object) -> List[Request]:
    """One request for each session that is asked for; of several, each has its number after the name."""
    given: Dict[str, object] = {name: value for name, value in variables.items() if value not in (None, "")}
    given.setdefault("name", random_name())
    given.setdefault("owner", login())
    total = check_count(count)
    names = [given["name"]] if total == 1 else ["%s-%d" % (given["name"], number) for number in range(1, total + 1)]
    requests = [check_request(dict(given, name=name)) for name in names]
    check_environment(requests[0])
    return requests
