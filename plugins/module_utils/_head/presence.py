# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Find a head's store and policy on a host. A head that has moved in the inventory would have an empty store, and no limits."""

from __future__ import annotations

import os
from contextlib import suppress

from .._shared.codec import Json
from .._shared.constants import POLICY_FILE, STATE_DIR
from .._shared.errors import ComputeError
from .._shared.states import LIVE
from .database import count
from .state_folder import state_dir


def presence(directory: str) -> Json:
    """Return how many C(sessions) the store in this directory has that wait or run, and whether there is a C(policy).

    A store that this login cannot read has none.
    """
    folder, sessions = state_dir(directory), 0
    if os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        with suppress(ComputeError):
            sessions = count(folder, LIVE)
    return {"sessions": sessions, "policy": has_policy(folder)}


def policy_path(folder: str) -> str:
    """Where the policy for the store in this folder is. Members of a group can replace any file in a shared folder."""
    return POLICY_FILE if folder == STATE_DIR else os.path.join(folder, os.path.basename(POLICY_FILE))


def has_policy(folder: str) -> bool:
    """Return whether there is a file of the policy for the store in this folder, readable or not."""
    return os.path.lexists(policy_path(folder))
