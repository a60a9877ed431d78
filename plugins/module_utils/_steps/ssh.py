# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The step that installs SSH in created containers."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from typing import Sequence

from .._core.documents import Json
from .._docker.client import Engine
from .._module import read_plan
from .._ssh.container_files import Bundle
from .._ssh.installer import FileInstaller
from .place import Agent


def install(agent: Agent, plan: Json, bundle: str, containers: Sequence[str] = ()) -> Json:
    """Install the files of C(bundle) in these containers of the agent, or in all that have never been started."""
    engine = Engine(agent.docker_host, agent.timeout, agent.name)
    installer = FileInstaller(engine, read_plan(plan), agent.name, Bundle.from_text(bundle))
    return installer.install(list(containers), agent.check)


STEPS = {"install": install}
