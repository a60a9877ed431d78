# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files of sessions that have ended without this controller: by themselves, or by the command of another controller."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Dict, FrozenSet

from ..module_utils._core.documents import Json
from ..module_utils._core.errors import ComputeError
from . import _shared_config as shared_config
from ._artifacts import Artifacts, base_of
from ._kept_requests import KeptRequests


@dataclass(frozen=True)
class EndedFolders:
    """The directories of the controller by the ID of their session, and the sessions whose requests it keeps.

    The store knows which of these sessions have ended.
    """

    base: str
    names: Dict[str, str] = field(default_factory=dict)
    requests: FrozenSet[str] = frozenset()

    @classmethod
    def of(cls, base: object, *, check: bool) -> EndedFolders:
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

    def option(self) -> Json:
        """The option of the modules that read the store."""
        known = sorted({*self.names, *self.requests})
        return {"folders": known} if known else {}

    def remove(self, result: Json) -> None:
        """Remove what belongs to the sessions that the result names, also for ssh; a problem becomes a warning of the result."""
        known = result.pop("ended_folders", None) or ()
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
        if warnings:
            result["warnings"] = [*(result.get("warnings") or ()), *warnings]
