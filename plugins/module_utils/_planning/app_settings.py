# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The declaration of the variables of environments, and of those that change the apps of a running session."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from typing import Tuple

from . import rules
from .catalogue import check_environments
from .variable import APPS, ENVIRONMENTS, LAUNCH, Variable, flag

APP_SETTINGS: Tuple[Variable, ...] = (
    Variable(
        "environments",
        "dict",
        {},
        "Environments by name, in addition to those of the collection or in place of them. Each is a dictionary: C(versions) has the "
        "image of each version, the default first; C(apps) are names or dictionaries as in C(session_apps); C(command) and "
        "C(environment) are the defaults of C(session_command) and C(session_environment); C(description) is shown in lists.",
        check_environments,
        read_by=(LAUNCH, APPS, ENVIRONMENTS),
    ),
    flag(
        "apps_publish",
        "Publish the port of each app of O(session_apps) that the launch did not publish, by a relay: a small container of the "
        "session on the agent of C(main1), which ends with it. Otherwise the app is reached by SSH.",
        read_by=(APPS,),
    ),
    Variable(
        "apps_restart",
        "list",
        [],
        "Names of apps to start again.",
        rules.check_names,
        elements="str",
        read_by=(APPS,),
    ),
    Variable(
        "apps_remove",
        "list",
        [],
        "Names of apps to end.",
        rules.check_names,
        elements="str",
        read_by=(APPS,),
    ),
)
