# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The requests of this controller: of its sessions that wait, and of those with secrets, with the paths of their files.

The session store has neither the paths nor the last word: a pass over the queue launches a session that this controller has requested
only as it was requested, and delivers secrets to no other session.
"""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import fields
from typing import Callable, Dict, List, Mapping, Sequence, Tuple

from ..module_utils._core import arrival
from ..module_utils._core.constants import RDMA_FOLDER
from ..module_utils._core.documents import DECLARATION, Json
from ..module_utils._core.errors import ComputeError, InputError
from ..module_utils._core.topology import MAIN
from ..module_utils._planning.request import Request
from ..module_utils._planning.request_checks import check_whole_roles
from ..module_utils._planning.secret_rules import HIDDEN
from ._artifacts import Artifacts, DamagedError

FOLDER = ".requests"


def checked_sessions(sessions: Sequence[Json], head: str) -> Tuple[List[Json], List[str]]:
    """Sessions of the store for a pass, each with the folders that its agents must have, and why others are left out."""
    found, refused = [], []
    for session in sessions:
        try:
            request = stored_request(session.get("request"), head)
        except ComputeError as error:
            refused.append(error.message)
        else:
            folders = [mount.source for mount in request.mounts if mount.type == "bind"]
            found.append({**session, "paths": folders + [RDMA_FOLDER] * request.rdma})
    return found, refused


class KeptRequests(Artifacts):
    """A file for each session, by its ID, in a directory beside those of the sessions; mode 0600 in mode 0700."""

    def __init__(self, base: str) -> None:
        super().__init__(base, "requests")
        self.folder = os.path.join(self.base, FOLDER)

    def keep(self, session: object, request: Request, files: Mapping[str, str]) -> None:
        """Keep the request of a session, and the path of each secret that is a file."""
        self.write_json(arrival.session_id(session, "the head"), {"request": request.to_json(), "files": dict(files)})

    def sessions(self) -> List[str]:
        """The IDs of the sessions whose requests are kept."""
        return os.listdir(self.folder) if os.path.isdir(self.folder) else []

    def forget(self, session: object) -> None:
        """Remove the request of a session that needs it no more."""
        with suppress(FileNotFoundError), self._opened(create=False) as folder:
            os.unlink(arrival.session_id(session, "the head"), dir_fd=folder)

    def files(self, session: object) -> Dict[str, str]:
        """The paths of the secrets of a session of this controller, by name."""
        kept = self._kept(session)
        return {str(name): str(path) for name, path in kept["files"].items()} if kept else {}

    def check(self, session: object, request: Request, head: str) -> None:
        """Raise ComputeError if a request of the store is not the one that this controller made."""
        kept = self._kept(session)
        if kept is None:
            if request.secrets:
                rule = (
                    f"session {request.name} has secrets and was not requested by this controller: run the command of its launch "
                    "again, with session_secrets"
                )
                raise InputError("session_secrets", HIDDEN, rule)
            return
        names = Request.from_json(kept["request"]).differences(request)
        if names:
            message = (
                "The session store of %s has another request of session %s than this controller made (%s): it is not launched. "
                "End it with terminate.yml, and find out who has changed the store."
            )
            raise ComputeError(message % (head, request.name, ", ".join(names)), head)

    def _kept(self, session: object) -> Dict[str, Json] | None:
        name = arrival.session_id(session, "the head")
        content = self.read(name)
        if content is None:
            return None
        try:
            kept: Dict[str, Json] = json.loads(content)
            Request.from_json(kept["request"])
            kept["files"].items()
        except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
            message = "%s/%s is damaged: end session %s with terminate.yml, and launch it again."
            raise DamagedError(message % (self.folder, name, name)) from error
        return kept


# What a request holds in another form than its variable: C(arrival) has the rules of their parts.
_OTHER_FORM = ("millicpus", "mounts", "secrets", "apps", "user", "roles")
_RULES = {
    known.name: known.metadata[DECLARATION]["check"] for known in fields(Request) if known.name not in _OTHER_FORM
}


def stored_request(document: object, sender: str) -> Request:
    """The request. Raises ComputeError, which names the sender, if it has no value that a request has there."""
    checked = arrival.request(document, sender)
    try:
        request = Request.from_json(checked)
    except (LookupError, TypeError, ValueError):
        raise arrival.refusal("request", sender, (), "a document without what a request has") from None
    if not _has_whole_roles(request):
        raise arrival.refusal("request", sender, ("roles",), [role.name for role in request.roles])
    for name, check in _RULES.items():
        value = getattr(request, name)
        if not _holds(check, name, value):
            raise arrival.refusal("request", sender, (name,), value)
    return request


def _has_whole_roles(request: Request) -> bool:
    """Whether its roles are as the check of a request leaves them, with C(main) first."""
    names = [role.name for role in request.roles]
    try:
        check_whole_roles(request)
    except InputError:
        return False
    return not names or (names[0] == MAIN and request.roles[0].size == 1 and len(set(names)) == len(names))


def _holds(check: Callable[[str, object], object], name: str, value: object) -> bool:
    """Whether a value is its own normal form."""
    try:
        return bool(check(name, value) == value)
    except InputError:
        return False
