# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All of ``usage_info``: it shows what owners have used."""

from __future__ import annotations

from typing import Any, Mapping

from ..module_utils._core.documents import Json
from ..plugin_utils._conduct.action import ConductorAction
from ..plugin_utils._conduct.listing import usage
from ..plugin_utils._conduct.play import Play


class ActionModule(ConductorAction):
    """The module reads the ledger on the head; the steps are in _conduct.listing."""

    def conduct(self, play: Play, options: Mapping[str, Any]) -> Json:
        return usage(play, {name: options[name] for name in self._task.args if name in options})
