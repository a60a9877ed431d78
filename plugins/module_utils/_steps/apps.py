# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps that change the apps of a running session, or wait for them."""

from __future__ import annotations

from typing import Sequence

from .._agent.engine.apps import Apps
from .._agent.engine.client import Engine
from .._agent.engine.data_folders import check_mounts_answer
from .._agent.engine.relays import Relays
from .._agent.ssh.app_files import INDEX, AppInstaller, parse_index, running
from .._shared.codec import unsealed
from .._shared.documents.plan import App, User
from .._shared.documents.step_documents import ChangedApps
from .._shared.names import container_id
from .._shared.units import parse_port_range
from .step import AgentHandle


def ready(
    agent: AgentHandle, session: str, names: Sequence[str], deadline: int, hostname: str = "main1"
) -> ChangedApps:
    """Wait until the apps of a launch in a container answer, without those that were removed; C(apps) has their states."""
    observed = _observed(agent, session, hostname)
    index = observed.read(INDEX).decode("ascii", "replace")
    kept = [name for name in names if not index or name in parse_index(index)]
    return ChangedApps(apps=tuple(observed.wait(kept, deadline)))


def change(
    agent: AgentHandle,
    session: str,
    user: User,
    tokens: str,
    apps: Sequence[App] = (),
    restart: Sequence[str] = (),
    remove: Sequence[str] = (),
    publish: Sequence[str] = (),
    ports: str = "30000-31000",
    deadline: int = 120,
    hostname: str = "main1",
) -> ChangedApps:
    """Add, restart and remove apps, and wait for what is started. Relays publish the ports of apps that the launch did not."""
    observed, wanted = _observed(agent, session, hostname), running(apps)
    installer = AppInstaller(observed, user, agent.check)
    changed = installer.change(wanted, unsealed(tokens), restart, remove)
    if not agent.check:
        observed.wait([*(app.name for app in wanted), *restart], deadline)
    relays = Relays(observed.engine, observed.listed(), parse_port_range(ports), agent.check)
    changed = relays.change([app for app in wanted if app.name in publish], remove) or changed
    return ChangedApps(changed, tuple(map(observed.status, installer.listed())), tuple(relays.published()))


def _observed(agent: AgentHandle, session: str, hostname: str) -> Apps:
    observed = Apps(agent.connect(Engine), session, agent.name, container_id(session, hostname), hostname)
    check_mounts_answer([observed.listed()], agent.name)
    return observed
