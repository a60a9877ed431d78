# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All of ``policy_info``: it shows the policy of the site, and who has how much of what it permits."""

from __future__ import annotations

from ..plugin_utils._hosts.conducted_action import ListAction
from ..plugin_utils._session.listing import list_policy


class ActionModule(ListAction):
    """The module reads the store on the head; the steps are in _session.listing."""

    LIST = list_policy
