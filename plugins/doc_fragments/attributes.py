# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The attributes of modules: check mode, diff, platform, idempotence, action group. Private to this collection."""

from __future__ import annotations

# Every module has an action, and is a member of the group.
_COMMON = r"""
  platform:
    description: Operating systems that the module can run on.
    support: full
    platforms: posix
  action:
    description: An action plugin does a part of the work on the controller.
    support: full
  action_group:
    description: Use C(group/cluster.compute.compute) in C(module_defaults) to set options for all modules of the group.
    support: full
    membership:
      - cluster.compute.compute
"""


class ModuleDocFragment:
    """Sub-fragments: a module overrides `support` (and gives `details`) where it differs."""

    DOCUMENTATION = (
        r"""
options: {}
attributes:
  check_mode:
    description: With C(--check), returns what would change, and changes nothing.
    support: full
  diff_mode:
    description: With C(--diff), returns what changed or would change.
    support: full
  idempotent:
    description: A second run with the same options and an unchanged target changes nothing.
    support: full
"""
        + _COMMON
    )

    # For modules that only read. Used instead of the first fragment, because the first of two fragments takes precedence.
    INFO = (
        r"""
options: {}
attributes:
  check_mode:
    description: With C(--check), returns what would change, and changes nothing.
    support: full
    details: This module changes nothing in any mode.
  diff_mode:
    description: With C(--diff), returns what changed or would change.
    support: N/A
    details: This module changes nothing, so there is no difference to show.
  idempotent:
    description: A second run with the same options and an unchanged target changes nothing.
    support: full
    details: This module changes nothing, however often it runs.
"""
        + _COMMON
    )
