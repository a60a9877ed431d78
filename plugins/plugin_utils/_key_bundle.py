# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Generate the bundle for the containers of one agent from the session's identity."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from typing import Sequence

from ..module_utils._core.constants import SSH_PORT
from ..module_utils._core.model import Container, Plan
from ..module_utils._ssh import config_files, host_lists
from ..module_utils._ssh.app_files import running
from ..module_utils._ssh.container_files import Bundle, HostIdentity
from ..module_utils._ssh.keys import Identity


def make_bundle(plan: Plan, identity: Identity, containers: Sequence[Container], port: int = SSH_PORT) -> Bundle:
    """The keys and texts for these containers that only the controller can generate. Their servers listen on this port."""
    cluster = identity.cluster
    keys = (cluster.public, identity.user.public, *plan.session.authorized_keys)
    return Bundle(
        authority=identity.authority,
        known_hosts=config_files.authority_line(plan, identity.authority),
        pinned=config_files.pinned_lines(
            plan, identity.host_keys([container.hostname for container in plan.containers])
        ),
        authorized_keys="".join(f"{key}\n" for key in keys),
        cluster_key=cluster.private,
        cluster_public=cluster.public + "\n",
        client_config=config_files.client_config(plan, port),
        hostfile=host_lists.hostfile(plan),
        hosts={item.hostname: _host_identity(identity, item) for item in containers},
        tokens={
            app.name: identity.app_token(app.name) for app in running(plan.session.apps) if plan.main in containers
        },
    )


def _host_identity(identity: Identity, container: Container) -> HostIdentity:
    names = [container.hostname, container.address, container.id]
    return HostIdentity(identity.host(container.hostname).private, identity.certificate(container.hostname, names))
