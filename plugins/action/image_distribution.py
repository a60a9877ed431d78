# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All of ``image_distribution``: it gives all agents that need an image the same one."""

from __future__ import annotations

from typing import Any, Mapping

from ..module_utils._core.documents import Json
from ..modules.image_distribution import ARGUMENT_SPEC
from ..plugin_utils._conduct.action import ConductorAction
from ..plugin_utils._conduct.images import Wanted, distribute, login_to
from ..plugin_utils._conduct.play import Play


class ActionModule(ConductorAction):
    """The steps are in _conduct.images."""

    SPEC = ARGUMENT_SPEC

    def conduct(self, play: Play, options: Mapping[str, Any]) -> Json:
        name = str(options["name"])
        login = login_to(name, options["registry"], options["username"], options["password"])
        own = {key: options[key] for key in ("needing", "asked", "elsewhere", "pull", "deadline", "variable")}
        return {"changed": distribute(play, Wanted(name, login=login, **own))}
