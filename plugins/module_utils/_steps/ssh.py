# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps that install SSH: in created containers of a session, and in running containers that something else has started."""

from __future__ import annotations

from typing import Sequence

from .._agent.engine.client import Engine
from .._agent.ssh.container_files import SshFiles
from .._agent.ssh.installer import FileInstaller
from .._agent.ssh.other_containers import SetInstaller, found_containers
from .._shared.documents.plan import Plan
from .._shared.documents.step_documents import FoundContainers, InstalledFiles
from .step import AgentHandle


def install(agent: AgentHandle, plan: Plan, bundle: SshFiles, containers: Sequence[str] = ()) -> InstalledFiles:
    """Install the files of C(bundle) in these containers of the agent, or in all that have never been started."""
    engine = agent.connect(Engine)
    installer = FileInstaller(engine, plan, agent.name, bundle)
    return installer.install(list(containers), agent.check)


def find(agent: AgentHandle, names: Sequence[str], network: str = "") -> FoundContainers:
    """Find the running containers of the agent with these names, with their addresses in a network."""
    return FoundContainers(tuple(found_containers(agent.connect(Engine), names, network)))


def install_set(agent: AgentHandle, plan: Plan, bundle: SshFiles, port: int) -> InstalledFiles:
    """Install the files of C(bundle) in the running containers of a plan, and start SSH servers at the port."""
    engine = agent.connect(Engine)
    return SetInstaller(engine, plan, agent.name, bundle, port).install(check=agent.check)
