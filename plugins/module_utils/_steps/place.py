# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where a step works: an agent with its engine, or the head with the session store."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import os
from dataclasses import dataclass

from .._core.constants import DOCKER_HOST


@dataclass(frozen=True)
class Agent:
    """An agent.

    ``name`` is its name in the inventory, ``timeout`` the seconds of a request to its engine, ``edition`` the digest of the scripts
    in the SSH runtime of this release. With ``check``, nothing is changed.
    """

    name: str
    docker_host: str
    timeout: int = 60
    edition: str = ""
    check: bool = False


@dataclass(frozen=True)
class Head:
    """The head. ``directory`` holds the session store. With ``check``, nothing is changed."""

    directory: str
    check: bool = False


def engine_address(given: str = "") -> str:
    """The address of the engine of this host: the given one, or what its environment names, or the default."""
    return given or os.environ.get("DOCKER_HOST") or DOCKER_HOST
