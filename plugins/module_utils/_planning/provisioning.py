# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host lacks that a launch can supply first."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from typing import List

from .._core.constants import REFERENCE_IMAGE
from .._core.documents import Json
from .catalogue import built_by


def lacks(result: Json) -> List[str]:
    """From a host's result of ``agent_info``: C(agent) if its engine, the SSH runtime or the reference image is missing,
    C(environment) if the image of an environment is missing.

    A host that Ansible cannot connect to cannot be provisioned.

    >>> lacks({"agent": {"name": "a", "reachable": False}})
    ['agent']
    """
    if not result.get("connected", True):
        return []
    agent = result.get("agent") or {}
    image = agent.get("image") or {}
    missing = "" if image.get("present") else str(image.get("reference") or "")
    is_agent = agent.get("reachable") and (agent.get("runtime") or {}).get("present")
    found = ["agent"] if not is_agent or missing == REFERENCE_IMAGE else []
    return [*found, *(["environment"] if built_by(missing) else [])]
