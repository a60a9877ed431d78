# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a launch checks the agents first: the declaration of these variables."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from typing import Tuple

from .._core import value_rules
from .variable import Variable, flag

_WEEK = 7 * 86400

PREFLIGHT_SETTINGS: Tuple[Variable, ...] = (
    flag(
        "preflight",
        "Check the agents before the launch, as C(check_agents.yml) does, and place no new session on an agent that fails. The "
        "launch says which agents it avoids, and fails if none is left.",
    ),
    Variable(
        "preflight_age",
        "int",
        3600,
        "Seconds for which O(session_preflight) uses the result of the last check of these agents and does not check again. With "
        "V(0), every launch checks.",
        value_rules.within(0, _WEEK),
    ),
)
