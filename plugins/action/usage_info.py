# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All of ``usage_info``: it shows what owners have used."""

from __future__ import annotations

from ..plugin_utils._hosts.conducted_action import ListAction
from ..plugin_utils._session.listing import list_usage


class ActionModule(ListAction):
    """The module reads the ledger on the head; the steps are in _session.listing."""

    LIST = list_usage
