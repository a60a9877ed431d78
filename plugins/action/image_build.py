# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The action of ``image_build`` and ``image_command``: shows the bytes that the module counts."""

from __future__ import annotations

from ..plugin_utils._counted_action import CountedAction


class ActionModule(CountedAction):
    """Runs the module that the task names."""
