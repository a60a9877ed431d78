# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The result of the last check of agents, which the controller keeps: a launch with a preflight need not check again.

It counts only for the same agents at the same addresses, and only if this user wrote it.
"""

from __future__ import annotations

import json
import os
import time
from typing import Mapping, Sequence

from ...module_utils._shared.codec import Json
from ...module_utils._shared.units import show_seconds
from .._hosts.files import DIRECTORY, replace
from .._settings.agent_checks import AgentChecks
from .session_dir import base_of

# A session's name never begins with a dot.
NAME = ".last_check.json"
LONGEST = 16 << 20
# Seconds by which the clock of another run of this controller may be ahead.
_AHEAD = 5


def write_last_check(base: str, agents: Mapping[str, str], unfit: Mapping[str, str], unguarded: Sequence[str]) -> str:
    """Keep a result. Returns a warning if it cannot be written.

    ``agents`` are addresses by name, ``unfit`` reasons by name, ``unguarded`` the agents whose containers reach overlays.
    """
    folder = base_of(base)
    document = {"time": time.time(), "agents": dict(agents), "unfit": dict(unfit), "unguarded": list(unguarded)}
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        handle = os.open(folder, DIRECTORY)
        try:
            replace(handle, NAME, json.dumps(document, indent=2, sort_keys=True).encode())
        finally:
            os.close(handle)
    except OSError as error:
        return f"The result of the check cannot be kept in {folder}: {error.strerror or error}."
    return ""


def read_last_check(base: str, agents: Mapping[str, str], age: float) -> AgentChecks | None:
    """The kept result, with its age for people; None if there is none that counts."""
    document = _document(os.path.join(base_of(base), NAME))
    expected = {"agents": dict, "unfit": dict, "unguarded": list, "time": float}
    if not all(isinstance(document.get(key), kind) for key, kind in expected.items()):
        return None
    spent = time.time() - document["time"]
    known = document["agents"]
    if not -_AHEAD <= spent < age or any(known.get(name) != address for name, address in agents.items()):
        return None
    unfit = {name: str(reason) for name, reason in document["unfit"].items() if name in agents}
    unguarded = [name for name in agents if name in document["unguarded"]]
    return AgentChecks(unfit, unguarded, show_seconds(max(0.0, spent)))


def _document(path: str) -> Json:
    """The content of the file; empty if it does not exist, is damaged, or belongs to another user."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, encoding="utf-8") as file:
            if os.fstat(handle).st_uid != os.geteuid():
                return {}
            found = json.loads(file.read(LONGEST))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
