# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The controller's part of ``ssh``: derives the keys, sends the agent its share, and writes the user's files."""

from __future__ import annotations

import secrets
from typing import Dict

from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json, Plan
from ansible_collections.cluster.compute.plugins.module_utils._module import read_plan
from ansible_collections.cluster.compute.plugins.module_utils._ssh import config_files
from ansible_collections.cluster.compute.plugins.module_utils._ssh.keys import SECRET_BYTES, Identity
from ansible_collections.cluster.compute.plugins.plugin_utils import _app_urls as app_urls
from ansible_collections.cluster.compute.plugins.plugin_utils import _reports as reports
from ansible_collections.cluster.compute.plugins.plugin_utils._action import ComputeAction
from ansible_collections.cluster.compute.plugins.plugin_utils._artifacts import Artifacts
from ansible_collections.cluster.compute.plugins.plugin_utils._key_bundle import make_bundle
from ansible_collections.cluster.compute.plugins.plugin_utils._ssh_route import Route

ID_CONTAINER = "id_container"
# Files that a diff shows. It shows no key: in check mode, new keys exist only during the task.
PUBLIC_FILES = ("ssh_config",)


class ActionModule(ComputeAction):
    """Calls the module once, with all secrets in a single option that is never logged."""

    def act(self, args: Json, task_vars: Json) -> Json:
        plan = read_plan(args.get("plan"))
        agent = str(args.get("agent") or task_vars.get("inventory_hostname"))
        artifacts = Artifacts(args.pop("artifacts", None) or "", plan.session.name)
        address = args.pop("address", None) or config_files.default_address(plan)
        identity = self._identity(artifacts, plan)
        result: Json = {"changed": False, "installed": []}
        if plan.on(agent):
            bundle = make_bundle(plan, identity, plan.on(agent))
            args.update(agent=agent, plan=plan.part(agent), bundle=bundle.to_text())
            result = self.module("ssh", args, task_vars)
        if result.get("failed"):
            return result
        route = reports.route_to(plan.main.agent, address, task_vars)
        return self._keep(result, artifacts, identity, _files(plan, identity, route, artifacts))

    def _identity(self, artifacts: Artifacts, plan: Plan) -> Identity:
        """The session's identity. In check mode, a new identity is not stored."""
        found = artifacts.identity(plan.session.id, create=not self._task.check_mode)
        return found or Identity(secrets.token_bytes(SECRET_BYTES), plan.session.id)

    def _keep(self, result: Json, artifacts: Artifacts, identity: Identity, files: Dict[str, str]) -> Json:
        """Write the files that differ. The format of a private key has a random part, so the keys themselves are compared."""
        wanted = {name: text.encode() for name, text in files.items()}
        kept = artifacts.read(ID_CONTAINER)
        if kept is not None and identity.owns(kept):
            wanted[ID_CONTAINER] = kept
        stale = {name: content for name, content in wanted.items() if not artifacts.holds(name, content)}
        if self._task.diff:
            texts = [_difference(artifacts, name, files[name]) for name in PUBLIC_FILES if name in stale]
            result["diff"] = [result["diff"], *texts] if result.get("diff") else texts
        if not self._task.check_mode:
            for name, content in stale.items():
                artifacts.write(name, content)
        result["changed"] = bool(result.get("changed") or stale)
        result["artifacts"] = artifacts.folder
        return result


def _files(plan: Plan, identity: Identity, route: Route, artifacts: Artifacts) -> Dict[str, str]:
    urls = app_urls.text(plan, identity, route.address)
    return {
        "ssh_config": config_files.controller_config(plan, route.address, artifacts.folder, route.proxy),
        "known_hosts": config_files.authority_line(plan, identity.authority) + "\n",
        ID_CONTAINER: identity.user.private,
        **({app_urls.FILE: urls} if urls else {}),
    }


def _difference(artifacts: Artifacts, name: str, after: str) -> Json:
    before = (artifacts.read(name) or b"").decode("utf-8", "replace")
    path = "%s/%s" % (artifacts.folder, name)
    return {"before": before, "after": after, "before_header": path, "after_header": path}
