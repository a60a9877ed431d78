# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Keep the requests of a controller's sessions, and remove the files of sessions that have ended without it.

It keeps the request of each session until the session ends, with the paths of the files of secrets. The session store does not have
these paths, and other users can write there. So what acts on a request of the store, such as a pass, a repair or a restart, leaves a
session alone that this controller has not requested, or whose request is another one there. For launches like an ended session, it
also keeps the requests of the last that have ended.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Dict, FrozenSet, List, Mapping, Sequence

from ...module_utils._shared.codec import Json
from ...module_utils._shared.documents import validation
from ...module_utils._shared.errors import ComputeError
from ...module_utils._shared.planning.request import Request
from . import shared_config
from .session_dir import Artifacts, DamagedError, base_of

FOLDER, ENDED_FOLDER = ".requests", ".ended_requests"
MOST_ENDED = 500
_LEFT_ALONE = (
    "Session %s is left alone: this controller has not requested it (%s has no request of it). If it is yours, run the command of its "
    "launch again here, with all of its variables."
)


class NotRequestedError(ComputeError):
    """The store has a session that this controller has not requested: any user who can write there may have added it."""

    code = "not_requested"


class KeptRequests(Artifacts):
    """A file for each session, by its ID, in a directory beside those of the sessions; mode 0600 in mode 0700."""

    def __init__(self, base: str, folder: str = FOLDER) -> None:
        super().__init__(base, "requests")
        self.folder = os.path.join(self.base, folder)

    def keep(self, session: object, request: Request, files: Mapping[str, str]) -> None:
        """Keep the request of a session, and the path of each secret that is a file."""
        self.write_json(
            validation.session_id(session, "the head"), {"request": request.to_json(), "files": dict(files)}
        )

    def sessions(self) -> List[str]:
        """The IDs of the sessions whose requests are kept."""
        with suppress(FileNotFoundError), self._opened(create=False) as folder:
            return os.listdir(folder)
        return []

    def forget(self, session: object) -> None:
        """Remove the request of a session that has ended, and keep it among those of the last such sessions."""
        name = validation.session_id(session, "the head")
        with suppress(ComputeError):  # it is damaged, or the disk is full: nothing is launched like this session
            kept = self._kept(name)
            if kept:
                KeptRequests(self.base, ENDED_FOLDER).keep_last(name, Request.from_json(kept["request"]))
        with suppress(FileNotFoundError), self._opened(create=False) as folder:
            os.unlink(name, dir_fd=folder)

    def keep_last(self, session: str, request: Request) -> None:
        """Keep a request, and only the newest of all."""
        self.keep(session, request, {})
        with self._written(session) as folder:
            by_age = sorted(os.listdir(folder), key=lambda name: os.stat(name, dir_fd=folder).st_mtime)
            for name in by_age[:-MOST_ENDED]:
                os.unlink(name, dir_fd=folder)

    def check_any(self, session: object, request: Request, head: str) -> None:
        """As ``check``, also for a session that has ended."""
        if self._kept(session) is None:
            KeptRequests(self.base, ENDED_FOLDER).check(session, request, head)
        else:
            self.check(session, request, head)

    def files(self, session: object) -> Dict[str, str]:
        """The paths of the secrets of a session of this controller, by name."""
        kept = self._kept(session)
        return {str(name): str(path) for name, path in kept["files"].items()} if kept else {}

    def check(self, session: object, request: Request, head: str) -> None:
        """Raise ComputeError if a request of the store is not the one that this controller made, or if this controller made none."""
        kept = self._kept(session)
        if kept is None:
            raise NotRequestedError(_LEFT_ALONE % (request.name, self.folder), head)
        names = Request.from_json(kept["request"]).differences(request)
        if names:
            message = (
                "The session store of %s has another request of session %s than this controller made (%s): it is left alone. "
                "Probably another controller, with a copy of %s, has changed the session since: use that one, or run the command of "
                "the launch here again. If there is none, end it with terminate.yml, and find out who has changed the store."
            )
            raise ComputeError(message % (head, request.name, ", ".join(names), self.base), head)

    def _kept(self, session: object) -> Dict[str, Json] | None:
        name = validation.session_id(session, "the head")
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


@dataclass(frozen=True)
class StaleSessionDirs:
    """The directories of the controller by the ID of their session, and the sessions whose requests it keeps.

    The store knows which of these sessions have ended by themselves, or by the command of another controller.
    """

    base: str
    names: Dict[str, str] = field(default_factory=dict)
    requests: FrozenSet[str] = frozenset()

    @classmethod
    def of(cls, base: object, *, check: bool) -> StaleSessionDirs:
        """The directories in ``base``; none without it, and none in check mode."""
        path = base_of(base)
        found: Dict[str, str] = {}
        if base is None or check or not os.path.isdir(path):
            return cls(path)
        for name in sorted(os.listdir(path)):
            with suppress(ComputeError):  # another user's, none of a session, or damaged
                session = Artifacts(path, name).session
                found.update({session: name} if session else {})
        return cls(path, found, frozenset(KeptRequests(path).sessions()))

    @property
    def sessions(self) -> List[str]:
        """The IDs of all of these sessions."""
        return sorted({*self.names, *self.requests})

    def remove(self, known: Sequence[str]) -> List[str]:
        """Remove what belongs to the sessions of these IDs, also for ssh. Returns a warning of each problem."""
        for session in self.requests.intersection(known):
            KeptRequests(self.base).forget(session)
        ended = [session for session in known if session in self.names]
        warnings = []
        for session in ended:
            try:
                Artifacts(self.base, self.names[session]).remove(session)
            except ComputeError as error:
                warnings.append(error.message)
        warnings += filter(None, [shared_config.update(self.base)] if ended else [])
        return warnings
