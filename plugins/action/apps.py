# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The controller's part of ``apps``: it derives the tokens, and keeps the URLs and ``session.json`` up to date."""

from __future__ import annotations

from typing import Any, Mapping

from ..module_utils._core.documents import Json
from ..modules.apps import ARGUMENT_SPEC
from ..plugin_utils._conduct.action import ConductorAction
from ..plugin_utils._conduct.apps import change_apps
from ..plugin_utils._conduct.play import Play

_PARAMETERS = ("session", "apps", "restart", "remove", "publish", "ports", "deadline", "docker_host", "timeout")


class ActionModule(ConductorAction):
    """The steps are in _conduct.apps."""

    SPEC = ARGUMENT_SPEC

    def conduct(self, play: Play, options: Mapping[str, Any]) -> Json:
        given = {name: options[name] for name in _PARAMETERS if options[name] is not None}
        return change_apps(play, str(options["name"]), str(options["agent"]), given)
