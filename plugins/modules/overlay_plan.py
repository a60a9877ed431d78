#!/usr/bin/python
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: overlay_plan
short_description: Plan a throw-away overlay network over all agents
description:
  - Computes on the controller which agents take part in the test of an overlay network, with which addresses, and for how long.
  - The agents of the Swarm of O(head) that have the reference image take part. The subnet is free on all agents.
options:
  examinations:
    description:
      - The variable in which the hosts registered the result of M(cluster.compute.agent_examination_info).
    type: str
    required: true
  pools:
    description:
      - The address pools of sessions.
    type: list
    elements: str
    default: [10.201.0.0/16]
  encrypted:
    description:
      - Whether the network is encrypted, if all agents support it.
    type: bool
    default: false
  head:
    description:
      - The agent whose Swarm is tested.
    type: str
    default: ""
  seconds:
    description:
      - Seconds of each measurement of throughput, less if there are many agents; all of them take a minute at most.
      - V(0) measures no throughput.
    type: float
    default: 2
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
  - module: cluster.compute.agent_examination_info
  - module: cluster.compute.overlay_network
  - module: cluster.compute.overlay_probe
"""

EXAMPLES = r"""
- name: Plan the overlay network of the check
  cluster.compute.overlay_plan:
    examinations: examination
  register: overlay
  run_once: true
"""

RETURN = r"""
plan:
  description: The plan.
  returned: success
  type: dict
  contains:
    reason:
      description: Why there is nothing to test; empty if there is.
      returned: always
      type: str
    members:
      description: The agents that take part, each with its C(name), and the C(host) name and C(address) of its container.
      returned: always
      type: list
      elements: dict
    manager:
      description: The agent that creates the network.
      returned: when there are members
      type: str
    subnet:
      description: The subnet of the network.
      returned: when there are members
      type: str
    gateway:
      description: The gateway of the network.
      returned: when there are members
      type: str
    ip_range:
      description: The addresses that engines use for their own endpoints.
      returned: when there are members
      type: str
    mtu:
      description: The MTU of the containers' interfaces.
      returned: when there are members
      type: int
    encrypted:
      description: Whether the network is encrypted.
      returned: when there are members
      type: bool
    seconds:
      description: Seconds of each measurement of throughput.
      returned: when there are members
      type: float
    budget:
      description: Seconds for all measurements of throughput.
      returned: when there are members
      type: float
"""
