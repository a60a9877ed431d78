# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

DOCUMENTATION = r"""
module: usage_info
short_description: Show what owners have used, by month
description:
  - Reads the ledger of the session store on the head. A session counts with the resources of all of its containers, from its
    placement to its end, whether it uses them or not.
  - If the variable C(usage_month) names a month, such as V(2026-11), the result has this month only.
  - It runs once for all hosts of the play, on the controller.
options:
  owner: {description: "Show this owner only. If not set, all owners and groups of owners.", type: str}
extends_documentation_fragment:
  - cluster.compute.attributes.info
  - cluster.compute.store
author: The cluster.compute authors (@cluster-compute)
seealso:
  - module: cluster.compute.policy_info
"""

EXAMPLES = r"""
- name: Show what owners have used
  cluster.compute.usage_info:
  register: used
"""

RETURN = r"""
usage:
  description: An entry for each month and owner, and for each month and group of owners of the policy, oldest first.
  type: list
  elements: dict
  returned: success
  contains:
    month: {description: The month in UTC., type: str, sample: 2026-11}
    kind: {description: V(owner) or V(group)., type: str}
    name: {description: The name., type: str}
    sessions: {description: Number of sessions that held resources in the month., type: int}
    cpu_hours: {description: CPUs times hours., type: float}
    memory_gib_hours: {description: GiB of memory times hours., type: float}
    gpu_hours: {description: GPUs times hours. A part of a GPU counts as this part., type: float}
lines:
  description: The same as a table, or in the format of the variable C(usage_format); empty if the variable C(usage_file) names a file.
  type: list
  elements: str
  returned: success
csv: {description: "The same as CSV, with a header.", type: str, returned: success}
"""
