# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The action of ``head_step``: a step of the collection's own roles, which works on the head."""

from __future__ import annotations

from ..modules.head_step import ARGUMENT_SPEC
from ..plugin_utils._action import StepAction


class ActionModule(StepAction):
    """Adds what the inventory says of the host."""

    SPEC = ARGUMENT_SPEC
