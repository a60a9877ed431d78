# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which existing volumes a session may mount: an engine itself mounts any volume by its name."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from .._core.constants import LABEL, LABEL_OWNER
from .._core.documents import Json
from .._core.errors import ConflictError
from .._core.model import Mount, Plan
from .client import Engine

# The driver of the volumes that a session describes: the engine's own.
_DRIVER = "local"


def check_volumes(engine: Engine, plan: Plan, agent: str, runtime: str) -> None:
    """Refuse the mounts of volumes that belong to the collection or to another owner, or that differ from their description.

    Sessions of one owner may share a volume that they describe alike. Raises a ConflictError.
    """
    for mount in plan.session.mounts:
        if mount.type == "volume":
            found = engine.volume(mount.source)
            own_only = plan.session.own_volumes
            reason = refusal(mount, found, plan.session.owner, runtime, own_only=own_only) if found is not None else ""
            if reason:
                message = f"On {agent} the volume {mount.source} {reason}."
                raise ConflictError(message, agent)


def refusal(mount: Mount, found: Json, owner: str, runtime: str, *, own_only: bool = False) -> str:
    """Why a session of this owner must not mount this volume, and what to do; empty if it may.

    ``own_only``: the policy of the site permits only volumes that sessions of this owner have created.
    """
    labels = found.get("Labels") or {}
    holder = labels.get(LABEL_OWNER, "")
    if (runtime and mount.source == runtime) or (not holder and any(name.startswith(LABEL) for name in labels)):
        return "belongs to the collection and is not for data; choose another name in session_mounts"
    if holder and holder != owner:
        return f"belongs to a session of owner {holder}; choose another name in session_mounts"
    if own_only and not holder:
        advice = "choose another name in session_mounts"
        return f"was not created by a session of {owner}, as the policy of this site demands; {advice}"
    if mount.options and not _is_as_described(mount, found):
        advice = "remove that volume, or choose another name in session_mounts"
        return f"exists with another driver or other options than session_mounts describes; {advice}"
    return ""


def _is_as_described(mount: Mount, found: Json) -> bool:
    return found.get("Driver") == _DRIVER and dict(found.get("Options") or {}) == dict(mount.options)
