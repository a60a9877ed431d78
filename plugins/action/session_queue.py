# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All of ``session_queue``: it makes a pass over the queue of an owner."""

from __future__ import annotations

from typing import Any, Mapping

from ..module_utils._shared.codec import ModuleResult
from ..plugin_utils._hosts.conducted_action import ConductorAction
from ..plugin_utils._hosts.conductor import Play
from ..plugin_utils._session.queue import make_pass
from ..plugin_utils._settings.options import OPTIONS


class ActionModule(ConductorAction):
    """The steps are in _session.queue."""

    OPTIONS = OPTIONS["session_queue"]

    def conduct(self, play: Play, options: Mapping[str, Any]) -> ModuleResult:  # noqa: ARG002 (it has none)
        return {"changed": make_pass(play)}
