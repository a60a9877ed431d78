# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Find a head's store and policy on a host. A head that has moved in the inventory would have an empty store, and no limits."""

from __future__ import annotations

import os
from contextlib import suppress

from .._shared.codec import Json
from .._shared.errors import ComputeError
from .._shared.states import LIVE
from .policy_file import has_policy
from .state_folder import is_filled, state_dir
from .store import FILE, Store


def presence(directory: str) -> Json:
    """Return how many C(sessions) the store in this directory has that wait or run, and whether there is a C(policy).

    A store that this login cannot read has none.
    """
    folder, sessions = state_dir(directory), 0
    if os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        with suppress(ComputeError):
            sessions = _live(folder)
    return {"sessions": sessions, "policy": has_policy(folder)}


def _live(folder: str) -> int:
    if not is_filled(os.path.join(folder, FILE)):
        return 0
    with Store.opened(folder, read_only=True) as store:
        return len(store.ids(LIVE))
