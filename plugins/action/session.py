# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The controller's half of ``session``: checks a request without touching any host, and keeps the session's result."""

from __future__ import annotations

from ansible_collections.cluster.compute.plugins.module_utils._model import Json
from ansible_collections.cluster.compute.plugins.module_utils._names import random_name
from ansible_collections.cluster.compute.plugins.module_utils._request import Request, check_request
from ansible_collections.cluster.compute.plugins.plugin_utils._action import ComputeAction, holder, login
from ansible_collections.cluster.compute.plugins.plugin_utils._artifacts import Artifacts
from ansible_collections.cluster.compute.plugins.plugin_utils._template import check_environment


class ActionModule(ComputeAction):
    """``state: checked`` never leaves the controller; the other states change the store on the head."""

    def act(self, args: Json, task_vars: Json) -> Json:
        if args.get("state") == "checked":
            request = _checked(args.get("request") or {})
            return {"changed": False, "request": request.to_json(), "digest": request.digest}
        artifacts = args.pop("artifacts", None)
        document = args.pop("document", None)
        result = self.module("session", dict(args, holder=holder()), task_vars)
        if artifacts and not self._task.check_mode and not result.get("failed"):
            _keep(Artifacts(artifacts, result.get("session")), args["state"], document)
        return result


def _checked(variables: Json) -> Request:
    given = {name: value for name, value in variables.items() if value not in (None, "")}
    given.setdefault("name", random_name())
    given.setdefault("owner", login())
    request = check_request(given)
    check_environment(request)
    return request


def _keep(artifacts: Artifacts, state: str, document: Json | None) -> None:
    """``session.json`` while the session lives; nothing of it once it has ended."""
    if state == "running" and document is not None:
        artifacts.write_json("session.json", document)
    elif state in ("terminated", "error"):
        artifacts.remove()
