# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files of a running session that the controller has lost. All but the secret can be written again."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from typing import List

from ..module_utils._core.documents import Json
from ..module_utils._core.model import Plan
from ..module_utils._text.views import session_document
from . import _shared_config as shared_config
from ._artifacts import Artifacts
from ._ssh_identity import ID_CONTAINER, SessionIdentity
from ._ssh_route import Route

DOCUMENT = "session.json"
NEEDED = (ID_CONTAINER, "known_hosts", DOCUMENT, "ssh_config")


def restore(plan: Plan, session: Json, artifacts: Artifacts, address: str, route: Route, *, check: bool) -> Json:
    """Write the files that are missing; a warning if the keys are. Part of the result of the task."""
    if artifacts.session != plan.session.id:
        message = (
            "Session %s runs, but %s does not have its keys: copy that folder from the controller that launched the session, "
            "or terminate the session and launch it again."
        )
        return {"warnings": [message % (plan.session.name, artifacts.folder)]}
    missing = [name for name in NEEDED if artifacts.read(name) is None]
    if not missing:
        return {}
    return {
        "changed": True,
        "restored_files": missing,
        "warnings": _write(plan, session, artifacts, address, route, check),
    }


def _write(plan: Plan, session: Json, artifacts: Artifacts, address: str, route: Route, check: bool) -> List[str]:
    if check:
        return []
    SessionIdentity.of(plan, artifacts, check=False).keep({}, route, check=False, diff=False)
    if artifacts.read(DOCUMENT) is None:
        artifacts.write_json(DOCUMENT, session_document(plan, session, address, {}, artifacts.folder))
    warning = shared_config.update(artifacts.base)
    return [warning] if warning else []
