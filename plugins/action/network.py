# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The action of ``network``, and of every other module that needs no work on the controller: meta/runtime.yml names them.

It runs the module on the engine that the inventory names for the host, without a process of its own where possible, and
turns a lost connection into a failure.
"""

from __future__ import annotations

from ..plugin_utils._action import RemoteAction


class ActionModule(RemoteAction):
    """Runs the module that the task names."""
