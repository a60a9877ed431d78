# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The controller's half of ``session_info``: whose sessions are asked for, where nobody is named."""

from __future__ import annotations

from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json
from ansible_collections.cluster.compute.plugins.module_utils._core.names import ALL_OWNERS
from ansible_collections.cluster.compute.plugins.plugin_utils._action import ComputeAction, login


class ActionModule(ComputeAction):
    """The controller's user, whose name the module cannot know; everybody, if that is what is asked for."""

    def act(self, args: Json, task_vars: Json) -> Json:
        owner = args.pop("owner", None) or login()
        return self.module("session_info", args if owner == ALL_OWNERS else dict(args, owner=owner), task_vars)
