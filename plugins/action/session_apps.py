# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All of ``session_apps``: it changes the apps of a running session, and keeps their URLs up to date."""

from __future__ import annotations

from typing import Any, Mapping

from ..module_utils._shared.codec import ModuleResult
from ..plugin_utils._hosts.conducted_action import ConductorAction
from ..plugin_utils._hosts.conductor import Play
from ..plugin_utils._session.apps import change_apps
from ..plugin_utils._settings.options import OPTIONS
from ..plugin_utils._variables.request_variables import apps_change


class ActionModule(ConductorAction):
    """The steps are in _session.apps."""

    OPTIONS = OPTIONS["session_apps"]

    def conduct(self, play: Play, options: Mapping[str, Any]) -> ModuleResult:  # noqa: ARG002 (each is a variable)
        with play.phase("check"):
            change = apps_change(self)
        return change_apps(play, str(play.value("session_name")), change)
