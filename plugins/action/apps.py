# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The controller's part of ``apps``: derives the tokens, and keeps the URLs and ``session.json`` up to date."""

from __future__ import annotations

from typing import List

from ansible_collections.cluster.compute.plugins.module_utils._core.apps import App, tunnel
from ansible_collections.cluster.compute.plugins.module_utils._core.errors import ComputeError
from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json
from ansible_collections.cluster.compute.plugins.module_utils._ssh.app_files import running
from ansible_collections.cluster.compute.plugins.module_utils._ssh.app_installer import show_tokens
from ansible_collections.cluster.compute.plugins.module_utils._ssh.keys import Identity
from ansible_collections.cluster.compute.plugins.plugin_utils import _app_urls as app_urls
from ansible_collections.cluster.compute.plugins.plugin_utils._action import ComputeAction
from ansible_collections.cluster.compute.plugins.plugin_utils._artifacts import Artifacts
from ansible_collections.cluster.compute.plugins.plugin_utils._session_shell import Shell


class ActionModule(ComputeAction):
    """Without a folder of artifacts, which a launch does not need, it runs the module alone."""

    def act(self, args: Json, task_vars: Json) -> Json:
        if args.get("state") != "present":
            return self.module("apps", args, task_vars)
        name, base = str(args.pop("name", None) or ""), str(args.pop("artifacts", None) or "")
        artifacts, document = Artifacts(base, name), Shell(base, name).document
        identity = _identity(artifacts, str(document["session"]["id"]))
        apps = running([App.from_json(app) for app in args.get("apps") or ()])
        args["tokens"] = show_tokens({app.name: identity.app_token(app.name) for app in apps})
        args["user"] = {key: document["session"]["user"][key] for key in ("uid", "gid")}
        result = self.module("apps", args, task_vars)
        if result.get("failed"):
            return result
        if not self._task.check_mode:
            removed = [str(one) for one in args.get("remove") or ()]
            document = _keep(artifacts, document, apps, removed, identity)
        return {**result, "lines": _lines(result["apps"], document)}


def _identity(artifacts: Artifacts, session: str) -> Identity:
    identity = artifacts.identity(session, create=False)
    if identity is None:
        message = "%s has no identity of session %s; start apps from the controller that launched it."
        raise ComputeError(message % (artifacts.folder, session))
    return identity


def _keep(artifacts: Artifacts, document: Json, apps: List[App], removed: List[str], identity: Identity) -> Json:
    """Write ``session.json`` and the URLs. A port that was published at the launch stays published."""
    known = {entry["name"]: entry for entry in document["apps"] if entry["name"] not in removed or entry["port"]}
    urls = {}
    for app in apps:
        port = app_urls.local_port(identity.session, app.name)
        unpublished = {"name": app.name, "address": "", "port": 0, "tunnel": tunnel(artifacts.folder, port, app.port)}
        entry = known.setdefault(app.name, unpublished)
        address = entry["address"] if app.public and entry["port"] else app_urls.LOOPBACK
        urls[app.name] = app.url(address, entry["port"] or port, identity.app_token(app.name))
    changed = {**document, "apps": list(known.values())}
    artifacts.write_json("session.json", changed)
    app_urls.change(artifacts, urls, removed)
    return changed


def _lines(apps: List[Json], document: Json) -> List[str]:
    tunnels = {entry["name"]: entry["tunnel"] for entry in document["apps"] if entry.get("tunnel")}
    lines = ["App %s: %s" % (app["name"], app["state"]) for app in apps]
    reached = ["  %s" % tunnels[app["name"]] for app in apps if app["name"] in tunnels]
    hint = [
        "Each is reached with its command, which lasts until it is stopped; the URLs are in the file apps beside ssh_config:"
    ]
    return (lines + hint + reached if reached else lines) or ["The session has no app."]
