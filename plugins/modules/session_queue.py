# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

DOCUMENTATION = r"""
module: session_queue
short_description: Go through the queue of an owner
description:
  - Ends the sessions that have finished, repairs those that ask for it, and launches the waiting sessions that fit, in their order.
  - An owner has one pass at a time. Another pass that begins meanwhile makes the first one look again before it ends.
  - Each option has a variable, such as C(session_queue_policy). An option of the task has precedence.
  - It runs once for all hosts of the play, on the controller.
extends_documentation_fragment:
  - cluster.compute.attributes.without_diff
  - cluster.compute.options.session_queue
author: The cluster.compute authors (@cluster-compute)
seealso:
  - module: cluster.compute.session
"""

EXAMPLES = r"""
- name: Launch what waits
  cluster.compute.session_queue:
"""

RETURN = r"""
lines:
  description: The report for people, as lines. The callback P(cluster.compute.progress#callback) has shown them already.
  type: list
  elements: str
  returned: always
"""
