# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The controller's part of ``containers``: it reads the values of the session's secrets, which only a start needs."""

from __future__ import annotations

from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json
from ansible_collections.cluster.compute.plugins.module_utils._module import read_plan
from ansible_collections.cluster.compute.plugins.plugin_utils import _secrets as secrets
from ansible_collections.cluster.compute.plugins.plugin_utils._action import ComputeAction, with_part


class ActionModule(ComputeAction):
    """The values go from the controller's memory into an option that is never logged."""

    def act(self, args: Json, task_vars: Json) -> Json:
        if args.get("plan") and args.get("state", "started") == "started" and not self._task.check_mode:
            session = read_plan(args["plan"]).session
            if session.secrets:
                given = self._templar.template(task_vars.get(secrets.VARIABLE))
                contents = secrets.read_secrets(session.secrets, given, self._loader)
                args["secrets"] = secrets.delivery(session.secrets, contents).to_text()
        return self.module("containers", with_part(args), task_vars)
