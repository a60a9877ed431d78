#!/usr/bin/python
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: agent_diagnosis
short_description: Evaluate the examinations of all agents
description:
  - Evaluates on the controller what M(cluster.compute.agent_examination_info), M(cluster.compute.port_listener),
    M(cluster.compute.port_probe), M(cluster.compute.overlay_network) and M(cluster.compute.overlay_probe) returned on the hosts of
    the play.
options:
  examinations:
    description:
      - The variable in which the hosts registered the result of M(cluster.compute.agent_examination_info).
    type: str
    required: true
  probes:
    description:
      - The variables in which the hosts registered the results of the modules that test ports and the overlay network.
    type: list
    elements: str
    default: []
  pools:
    description:
      - The address pools of sessions.
    type: list
    elements: str
    default: [10.201.0.0/16]
  encrypted:
    description:
      - Whether encrypted sessions are required.
    type: bool
    default: false
  head:
    description:
      - The agent whose Swarm is the right Swarm.
    type: str
    default: ""
  overlay:
    description:
      - The plan of M(cluster.compute.overlay_plan), if there was a test of an overlay network.
    type: dict
    default: {}
  artifacts:
    description:
      - The folder on the controller in which the result is kept for launches with a preflight.
      - If not set, C(~/.cluster-compute).
    type: path
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
  - module: cluster.compute.port_listener
  - module: cluster.compute.port_probe
  - module: cluster.compute.overlay_probe
"""

EXAMPLES = r"""
- name: Examine the agents
  cluster.compute.agent_examination_info:
    name: "{{ inventory_hostname }}"
  register: examination

- name: Evaluate the examinations
  cluster.compute.agent_diagnosis:
    examinations: examination
  register: diagnosis
  run_once: true
"""

RETURN = r"""
lines:
  description: The findings for people; as JSON if the variable C(check_format) is V(json).
  type: list
  elements: str
  returned: success
findings:
  description: The findings, failures first.
  returned: success
  type: list
  elements: dict
  contains:
    check:
      description: The name of the check.
      returned: always
      type: str
      sample: udp 4789
    where:
      description: An agent, or a pair of agents.
      returned: always
      type: str
      sample: agent1 -> agent2
    status:
      description: C(ok), C(warn) or C(fail).
      returned: always
      type: str
      sample: fail
    found:
      description: What the check found.
      returned: always
      type: str
    remedy:
      description: How to fix it; empty if there is nothing to fix.
      returned: always
      type: str
overlay:
  description: The measurements of each pair of agents inside the overlay network.
  returned: success
  type: list
  elements: dict
  contains:
    from:
      description: The agent that sent.
      returned: always
      type: str
    to:
      description: The agent that received.
      returned: always
      type: str
    mbits:
      description: Throughput in megabits per second, null if it was not measured.
      returned: always
      type: float
    milliseconds:
      description: Latency, the least of several round trips, null if it was not measured.
      returned: always
      type: float
unfit:
  description: The agents that sessions should avoid, each with the check that failed.
  returned: success
  type: dict
  sample: {agent3: "udp 4789 on agent1 -> agent3: does not arrive at 192.0.2.13"}
unguarded:
  description: The agents whose containers reach the overlay networks of other sessions.
  returned: success
  type: list
  elements: str
  sample: [agent2]
fit:
  description: Whether no check failed.
  returned: success
  type: bool
counts:
  description: The number of findings of each status.
  returned: success
  type: dict
  contains:
    ok:
      description: Checks that passed.
      returned: always
      type: int
    warn:
      description: Warnings.
      returned: always
      type: int
    fail:
      description: Checks that failed.
      returned: always
      type: int
message:
  description: The outcome in one sentence.
  returned: success
  type: str
"""
