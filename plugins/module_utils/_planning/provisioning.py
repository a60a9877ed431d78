# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a host must be provisioned before a launch can use it."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from typing import Sequence

from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json
from ansible_collections.cluster.compute.plugins.module_utils._planning.catalogue import built_by

# The role ``image`` builds it; every other image comes from a registry.
REFERENCE_IMAGE = "cluster-compute/reference:"


def needs_provisioning(result: Json) -> bool:
    """From a host's result of ``agent_info``: its engine, the SSH runtime or the reference image is missing.

    A host that Ansible cannot connect to cannot be provisioned.

    >>> needs_provisioning({"agent": {"name": "a", "reachable": False}})
    True
    """
    agent = result.get("agent") or {}
    image = agent.get("image") or {}
    lacks_image = not image.get("present") and str(image.get("reference") or "").startswith(REFERENCE_IMAGE)
    is_complete = agent.get("reachable") and (agent.get("runtime") or {}).get("present") and not lacks_image
    return bool(result.get("connected", True)) and not is_complete


def needed_environment(results: Sequence[Json]) -> str:
    """From all hosts' results of ``agent_info``: the environment to build because no agent has its image; empty for none.

    >>> needed_environment([{"agent": {"image": {"reference": "cluster-compute/lab:1.0", "present": False}}}])
    'lab'
    """
    images = [(result.get("agent") or {}).get("image") or {} for result in results]
    missing = [str(image.get("reference") or "") for image in images if not image.get("present")]
    return built_by(missing[0]) if missing and len(missing) == len(images) else ""
