# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of the module C(schedule). Private to this collection."""

from __future__ import annotations


class ModuleDocFragment:
    """What is placed, by which policy, and for how long the placement belongs to the controller."""

    DOCUMENTATION = r"""
options:
  request:
    description:
      - The request in its normal form, as the options of M(cluster.compute.session) describe it.
    type: dict
    required: true
  agents:
    description:
      - The results of M(cluster.compute.agent_info) on all agents.
    type: list
    elements: dict
    default: []
  queue_policy:
    description:
      - V(backfill) lets a later session start if it fits and an earlier session does not.
      - V(strict) launches sessions only in their order.
      - The policy of the site has precedence.
    type: str
    choices: [backfill, strict]
    default: backfill
  queue_age_bound:
    description:
      - Seconds after which later sessions no longer pass a waiting session under O(queue_policy=backfill).
    type: int
    default: 3600
  lease:
    description:
      - Seconds for which the placement belongs to this controller, at least 1.
      - A launch that takes longer counts as lost, and becomes V(ERROR) with the next launch of any session.
    type: int
    default: 600
  holder:
    description:
      - The controller's process.
    type: dict
    default: {}
  takeover:
    description:
      - The launch of a controller that no longer runs.
    type: str
    default: ''
  folders:
    description:
      - The sessions to which directories of the controller belong. RV(ended_folders) are those that have ended.
    type: list
    elements: str
    default: []
  kept:
    description:
      - The ID of the session that the controller's directory of this name belongs to.
    type: str
    default: ''
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
    details: The whole plan is the difference.
  idempotent:
    support: full
seealso:
  - module: cluster.compute.session
"""
