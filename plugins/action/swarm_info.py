# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The controller's part of ``swarm_info``: it calls the module, and a lost connection is a failure that names the host."""

from __future__ import annotations

from ansible_collections.cluster.compute.plugins.plugin_utils._action import RemoteAction


class ActionModule(RemoteAction):
    """The module does all the work."""
