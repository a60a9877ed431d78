# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The names of all variables and results of this collection: declared in Python, or specified by a role."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from pathlib import Path
from typing import Set

import yaml

from ..module_utils._planning.agent_variables import AGENT_VARIABLES
from ..module_utils._planning.playbook_settings import ENVIRONMENTS_TO_BUILD
from ..module_utils._planning.settings import VARIABLES

# What the roles leave for later tasks of a play.
RESULTS = frozenset(
    (
        "agent_checks",
        "session_apps_changed",
        "session_copied",
        "session_drilled",
        "session_environments_listed",
        "session_executed",
        "session_ended",
        "session_launched",
        "session_listed",
        "session_logs_read",
        "session_scheduled",
        "session_policy",
        "session_usage",
    )
)
DECLARED = frozenset(
    (*(variable.full_name for variable in VARIABLES), *AGENT_VARIABLES, *RESULTS, ENVIRONMENTS_TO_BUILD)
)
_OTHER_ROLES = ("agent", "image", "ssh", "timer")
_ROLES = Path(__file__).resolve().parents[2] / "roles"


def of_other_roles() -> Set[str]:
    """The variables that the argument specifications of the roles beside ``session`` have."""
    names: Set[str] = set()
    for role in _OTHER_ROLES:
        text = (_ROLES / role / "meta" / "argument_specs.yml").read_text(encoding="utf-8")
        specified = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        for entry_point in specified["argument_specs"].values():
            names.update(entry_point.get("options") or {})
    return names
