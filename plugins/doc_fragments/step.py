# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the two internal modules have in common. Private to this collection."""

from __future__ import annotations


class ModuleDocFragment:
    """The options and attributes of a step."""

    DOCUMENTATION = r"""
options:
  call:
    description: The name of the step.
    type: str
    required: true
  params:
    description: Its parameters.
    type: dict
    default: {}
  stays:
    description: The directory of the process that stays on the host for further steps, if one may; set by the action plugin.
    type: path
attributes:
  diff_mode:
    description: With C(--diff), returns what changed or would change.
    support: partial
    details: Depends on the step.
  idempotent:
    description: A second run with the same options and an unchanged target changes nothing.
    support: partial
    details: Depends on the step.
"""
