# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The step that fills the volume of the SSH runtime."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from typing import Sequence

from .._core.constants import REFERENCE_IMAGE
from .._core.documents import Json
from .._docker.client import Engine
from .._docker.runtime import Scripts, install_runtime
from .step import Agent


def install(agent: Agent, scripts: Json, applets: Sequence[str], image: str = REFERENCE_IMAGE) -> Json:
    """Fill the volume of the SSH runtime from the reference image, with these scripts by name, unless it is there."""
    engine = agent.connect(Engine)
    return install_runtime(engine, image, Scripts(scripts, list(applets)), check=agent.check)
