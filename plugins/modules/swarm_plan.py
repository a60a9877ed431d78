#!/usr/bin/python
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: swarm_plan
short_description: Decide how the agents of an inventory become one Swarm
description:
  - Decides on the controller which agents create, join or leave the Swarm.
  - The input is what M(cluster.compute.swarm_info) returned on each host.
options:
  memberships:
    description:
      - The variable in which the hosts of the play registered the result of M(cluster.compute.swarm_info).
    type: str
    required: true
  answers:
    description:
      - Further results of M(cluster.compute.swarm_info), from agents that are not in the play.
      - Results without a membership are ignored.
    type: list
    elements: dict
    default: []
  leave:
    description:
      - Whether the hosts that registered O(memberships) leave the Swarm. If not, they create or join it.
    type: bool
    default: false
  settings:
    description:
      - The variable in which the hosts registered the result of M(cluster.compute.agent_settings).
    type: str
    default: __agent
  head:
    description:
      - The agent that creates the Swarm if there is none, and that is always a manager.
    type: str
    default: ""
  agents:
    description:
      - All agents of the inventory.
    type: list
    elements: str
    default: []
extends_documentation_fragment:
  - cluster.compute.attributes.info
  - cluster.compute.attributes.action
  - cluster.compute.attributes.actiongroup_compute
attributes:
  check_mode:
    support: full
  diff_mode:
    support: N/A
  idempotent:
    support: full
author:
  - The cluster.compute authors (@cluster-compute)
seealso:
  - module: cluster.compute.swarm
  - module: cluster.compute.swarm_info
  - module: cluster.compute.swarm_node
"""

EXAMPLES = r"""
- name: Get the membership of the engine
  cluster.compute.swarm_info:
    name: "{{ inventory_hostname }}"
  register: membership

- name: Decide which agents join
  cluster.compute.swarm_plan:
    memberships: membership
    head: agent1
  register: planned
  run_once: true
"""

RETURN = r"""
plan:
  description: The plan.
  returned: success
  type: dict
  contains:
    lead:
      description: The manager that other agents join.
      returned: if O(leave=false)
      type: str
    cluster:
      description: The ID of the Swarm; empty if it does not exist yet.
      returned: if O(leave=false)
      type: str
    address:
      description: The address of the lead.
      returned: if O(leave=false)
      type: str
    steps:
      description: The step of each agent that is not yet as it should be, C(init), C(join) or C(promote).
      returned: if O(leave=false)
      type: dict
    managers:
      description: The agents that are, or become, managers.
      returned: if O(leave=false)
      type: list
      elements: str
    port:
      description: The UDP port of the Swarm's overlay networks.
      returned: if O(leave=false)
      type: int
    peers:
      description: For each agent, the addresses of the other agents.
      returned: if O(leave=false)
      type: dict
    keepers:
      description: For each agent that leaves, a manager that stays.
      returned: if O(leave=true)
      type: dict
    staying:
      description: The agents that do not leave.
      returned: if O(leave=true)
      type: list
      elements: str
    refused:
      description: For each agent that cannot join or leave, the reason.
      returned: always
      type: dict
"""
