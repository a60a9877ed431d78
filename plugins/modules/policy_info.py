# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

DOCUMENTATION = r"""
module: policy_info
short_description: Show the policy of the site, and who has how much of what it permits
description:
  - Reads the policy and the session store on the head.
  - It runs once for all hosts of the play, on the controller.
options:
  agents:
    description:
      - The results of M(cluster.compute.agent_info) on all agents. Sessions that the store knows from their labels alone count
        with what these show.
      - If not set, the reports of all hosts of the play.
    type: list
    elements: dict
    default: []
extends_documentation_fragment:
  - cluster.compute.attributes.info
  - cluster.compute.store
author: The cluster.compute authors (@cluster-compute)
seealso:
  - module: cluster.compute.usage_info
"""

EXAMPLES = r"""
- name: Show the policy
  cluster.compute.policy_info:
  register: found
"""

RETURN = r"""
policy: {description: The policy as the site has written it; empty without a policy., type: dict, returned: success}
owners:
  description: Every owner and group that has something or is named in the policy.
  type: list
  elements: dict
  returned: success
  contains:
    kind: {description: V(owner) or V(group)., type: str}
    name: {description: The name., type: str}
    used: {description: "What is held now. CPUs are in thousandths, memory is in bytes.", type: dict}
    allowed: {description: "What is permitted at a time, in the same units; V(null) without a limit.", type: dict}
lines:
  description: The same for people; as JSON if the variable C(policy_format) is V(json).
  type: list
  elements: str
  returned: success
"""
