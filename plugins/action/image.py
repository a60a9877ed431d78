# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Give ``image`` the login for its registry and for no other, and show the bytes of the pull."""

from __future__ import annotations

from ..module_utils._core.documents import Json
from ..module_utils._core.image_reference import registry_of
from ..plugin_utils._counted_action import CountedAction
from ..plugin_utils._registry_login import login_for


class ActionModule(CountedAction):
    """A user name in the task takes precedence over the login of the controller's Docker client."""

    def act(self, args: Json, task_vars: Json) -> Json:
        name = str(args.get("name") or "")
        registry = str(args.pop("registry", None) or registry_of(name))
        if not args.get("username") or registry != registry_of(name):
            args.pop("username", None)
            args.pop("password", None)
            args.update(login_for(name))
        return super().act(args, task_vars)
