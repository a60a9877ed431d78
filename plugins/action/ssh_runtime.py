# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The controller's part of ``ssh_runtime``: it sends the scripts of this release."""

from __future__ import annotations

from ..module_utils._core.documents import Json
from ..plugin_utils._action import ComputeAction
from ..plugin_utils._runtime_scripts import runtime_scripts


class ActionModule(ComputeAction):
    """Adds the scripts to the options of the module."""

    def act(self, args: Json, task_vars: Json) -> Json:
        scripts = runtime_scripts()
        own = {"scripts": dict(scripts.texts), "applets": list(scripts.applets)}
        return self.module("ssh_runtime", {**own, **args}, task_vars)
