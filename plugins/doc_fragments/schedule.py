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
      - The request in its normal form, as M(cluster.compute.session_request) returns it.
    type: dict
    required: true
  agents:
    description:
      - The results of M(cluster.compute.agent_info) on all agents.
      - If not set, the results that the hosts of the play registered as C(__session_report).
    type: list
    elements: dict
    default: []
  avoid:
    description:
      - The agents that get no container of a new session, each with the reason. The action plugin adds it to O(agents).
    type: dict
    default: {}
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
      - Seconds for which the placement belongs to this controller, at least 1. The action plugin adds the timeouts of the
        bootstrap script and of pulling the image, if the launch may wait for them.
      - A launch that takes longer counts as lost, and becomes V(ERROR) with the next launch of any session.
    type: int
    default: 600
  given:
    description:
      - Whether values of this command line replace those that a waiting session keeps.
    type: bool
    default: true
  queued:
    description:
      - The ID of the waiting session whose request this is, if it comes from the session store. Such a request is launched only as
        this controller made it, and gets secrets only if this controller made it.
    type: str
    default: ''
  wait:
    description:
      - Seconds to wait while the session is V(PENDING). The task fails if it is still V(PENDING) then.
      - With V(0), the task does not wait, and a V(PENDING) session is not a failure.
    type: float
    default: 0
  fail_when_pending:
    description:
      - Whether the task fails if the session is V(PENDING). The session stays in the queue.
    type: bool
    default: false
  holder:
    description:
      - The controller's process; set by the action plugin.
    type: dict
    default: {}
  takeover:
    description:
      - The launch of a controller that no longer runs; set by the action plugin.
    type: str
    default: ''
  artifacts:
    description:
      - The folder on the controller that holds a folder for each session. The folder of this name must not belong to
        another live session.
      - If not set, C(~/.cluster-compute).
    type: path
  plan_format:
    description:
      - The form in which the plan is returned. Every option C(plan) of the collection accepts both.
      - The action plugin makes the text. Ansible visits every value of a dictionary for each host of a task; a text costs no time.
    type: str
    choices: [dict, text]
    default: dict
  folders:
    description:
      - The sessions to which folders in O(artifacts) belong.
      - If not set, they are read from these folders. The folder of a session that has ended is removed.
    type: list
    elements: str
    default: []
  kept:
    description:
      - The ID of the session that the folder of this name belongs to; set by the action plugin.
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
