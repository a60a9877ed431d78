# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The attributes of modules: check mode, diff, platform, idempotence, action group. Private to this collection."""

from __future__ import annotations

# Of a module that runs in check mode and is idempotent, with C(details) of these, and its support of differences. Every module has an
# action, and is a member of the group. A module overrides C(support) (and gives C(details)) where it differs.
_ATTRIBUTES = r"""
options: {}
attributes:
  check_mode:
    description: With C(--check), returns what would change, and changes nothing.
    support: full%s
  diff_mode:
    description: With C(--diff), returns what changed or would change.
    support: %s
  idempotent:
    description: A second run with the same options and an unchanged target changes nothing.
    support: full%s
  platform:
    description: Operating systems that the module can run on.
    support: full
    platforms: posix
  async:
    description: Supports the keyword C(async).
    support: none
  action:
    description: An action plugin does a part of the work on the controller.
    support: full
  action_group:
    description: Use C(group/cluster.compute.compute) in C(module_defaults) to set options for all modules of the group.
    support: full
    membership:
      - cluster.compute.compute
"""


_DETAILS = "\n    details: This module changes nothing"


class ModuleDocFragment:
    """A module uses one of the fragments alone, because the first of two fragments takes precedence."""

    DOCUMENTATION = _ATTRIBUTES % ("", "full", "")
    WITHOUT_DIFF = _ATTRIBUTES % ("", "none", "")
    # For modules that only read.
    INFO = _ATTRIBUTES % (
        _DETAILS + " in any mode.",
        "N/A" + _DETAILS + ", so there is no difference to show.",
        _DETAILS + ", however often it runs.",
    )
