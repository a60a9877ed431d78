# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Base of the actions whose module counts bytes in a file on its host while it works."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

import shlex

from ..module_utils._core.documents import Json
from ._action import RemoteAction
from ._transfer_watch import watched


class CountedAction(RemoteAction):
    """Runs the module with the option ``progress``, and shows the bytes that the module counts."""

    def act(self, args: Json, task_vars: Json) -> Json:
        # In a folder of the user who logs in: the name cannot be taken by anybody else.
        progress = self._connection._shell.join_path(self._make_tmp_path(), "progress")
        with watched(self._connection, str(task_vars.get("inventory_hostname", "")), "cat " + shlex.quote(progress)):
            return super().act({**args, "progress": progress}, task_vars)
