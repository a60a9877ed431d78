# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The SSH identity of a session on the controller: what the agents get of it, and the user's files."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from itertools import chain
from typing import Dict, Sequence, Tuple

from ...module_utils._agent.ssh import config_files, host_lists
from ...module_utils._agent.ssh.container_files import ID_CONTAINER, SshFiles
from ...module_utils._shared.codec import Json
from ...module_utils._shared.documents.plan import Container, Network, Plan
from ...module_utils._shared.documents.topology import kept_apps
from .._hosts.results import as_list
from .._hosts.ssh_route import Route
from . import app_urls
from .keys import SECRET_BYTES, Identity
from .session_dir import APPS, Artifacts


def make_bundle(plan: Plan, identity: Identity, containers: Sequence[Container], port: int = 0) -> SshFiles:
    """The keys and texts for these containers that only the controller can generate. ``port``: another one than the plan's."""
    cluster = identity.cluster
    keys = (cluster.public, identity.user.public, *plan.session.authorized_keys)
    return SshFiles(
        authority=identity.authority,
        known_hosts=config_files.authority_line(plan, identity.authority),
        pinned=config_files.pinned_lines(
            plan, identity.host_keys([container.hostname for container in plan.containers])
        ),
        authorized_keys="".join(f"{key}\n" for key in keys),
        cluster_key=cluster.private,
        cluster_public=cluster.public + "\n",
        client_config=config_files.client_config(plan, port or plan.network.ssh_port),
        hostfile=host_lists.hostfile(plan),
        hostnames=host_lists.hostnames(plan),
        hosts={item.hostname: _host_identity(identity, plan.network, item) for item in containers},
        tokens={app.name: identity.app_token(app.name) for one, app in kept_apps(plan) if one in containers},
        user_key=identity.user.private if _has_pages(plan, containers) else "",
    )


def _has_pages(plan: Plan, containers: Sequence[Container]) -> bool:
    """Return whether main1 is among the containers and has an app, with which the user may have no other way to the key."""
    return any(one.rank == 0 and one in containers for one, _app in kept_apps(plan))


def _host_identity(identity: Identity, network: Network, container: Container) -> Tuple[str, str]:
    names = [*chain(*network.names_of(container.hostname, container.address)), container.id]
    return identity.host(container.hostname).private, identity.certificate(container.hostname, names)


@dataclass(frozen=True)
class SessionIdentity:
    """The keys of a session, which one secret in the session's folder yields."""

    plan: Plan
    artifacts: Artifacts
    identity: Identity
    is_new: bool = False

    @classmethod
    def of(cls, plan: Plan, artifacts: Artifacts, *, check: bool) -> SessionIdentity:
        """The identity of the session's folder, made if it is missing. In check mode, a new one is not stored."""
        is_new = artifacts.identity(plan.session.id, create=False) is None
        found = artifacts.identity(plan.session.id, create=not check)
        return cls(plan, artifacts, found or Identity(secrets.token_bytes(SECRET_BYTES), plan.session.id), is_new)

    def forget(self) -> None:
        """Remove keys that were made for a call that has failed: where the session runs with others, they would hide that."""
        if self.is_new:
            self.artifacts.remove(self.plan.session.id)

    def bundle(self, agent: str, port: int = 0) -> SshFiles:
        """The keys and texts for the containers of an agent."""
        return make_bundle(self.plan, self.identity, self.plan.on(agent), port)

    def keep(self, result: Json, route: Route, *, check: bool, diff: bool) -> Json:
        """Write the user's files that differ, and return the result with what was changed.

        The format of a private key has a random part, so the keys themselves are compared.
        """
        files = self._files(route)
        wanted = {name: text.encode() for name, text in files.items()}
        kept = self.artifacts.read(ID_CONTAINER)
        if kept is not None and self.identity.owns(kept):
            wanted[ID_CONTAINER] = kept
        stale = {name: content for name, content in wanted.items() if not self.artifacts.holds(name, content)}
        # The other files are secret.
        texts = [self._difference("ssh_config", files["ssh_config"])] if diff and "ssh_config" in stale else []
        if not check:
            for name, content in stale.items():
                self.artifacts.write(name, content)
        shown = as_list(result.get("diff"))
        return {
            **result,
            "changed": bool(result.get("changed") or stale),
            "artifacts": self.artifacts.folder,
            **({"diff": [*shown, *texts]} if diff and (shown or texts) else {}),
        }

    def _files(self, route: Route) -> Dict[str, str]:
        urls = app_urls.urls_text(
            self.plan, self.identity, route.address, app_urls.added_lines(self.plan, self.artifacts)
        )
        return {
            "ssh_config": config_files.controller_config(self.plan, route.address, self.artifacts.folder, route.proxy),
            "known_hosts": config_files.authority_line(self.plan, self.identity.authority) + "\n",
            ID_CONTAINER: self.identity.user.private,
            **({APPS: urls} if urls else {}),
        }

    def _difference(self, name: str, after: str) -> Json:
        before = (self.artifacts.read(name) or b"").decode("utf-8", "replace")
        path = f"{self.artifacts.folder}/{name}"
        return {"before": before, "after": after, "before_header": path, "after_header": path}
