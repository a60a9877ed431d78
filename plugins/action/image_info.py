# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run ``image_info`` on the task's host, and report a lost host as a failure."""

from __future__ import annotations

from ansible_collections.cluster.compute.plugins.plugin_utils._action import RemoteAction


class ActionModule(RemoteAction):
    """Run the module and nothing else."""
