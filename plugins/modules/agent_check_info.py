# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

DOCUMENTATION = r"""
module: agent_check_info
short_description: Check that agents can run sessions
description:
  - Examines every agent of the play, and tests the ports and an overlay network between them. C(docs/check.md) describes the checks.
  - A check that fails is a finding with a remedy. The task itself fails only for a wrong option.
  - An agent that cannot be reached is a finding, too, and the other agents are checked.
  - The containers and the overlay network of the check are removed at its end. If the controller or an agent is lost meanwhile, the
    containers end after at most eight minutes and their engine removes them. A later check removes the network.
  - It reads C(agent_docker_host) and C(agent_swarm_address) of each agent from the inventory. All agents should be in the Swarm of the
    head, which is C(session_head), else the first host of the group C(head), else the first agent.
  - It runs once for all hosts of the play, on the controller.
options:
  seconds:
    description:
      - Seconds for which the throughput between two agents is measured, from 0 to 60; with V(0) it is not measured.
      - Each agent sends to the next agent of the play, and the last to the first. Two links are measured at the same time only if
        they have no agent in common.
    type: float
    default: 2
  pools:
    description:
      - The address pools of sessions, which no route of an agent should overlap. The overlay network of the check is in one of them.
    type: list
    elements: str
    default: [10.201.0.0/16]
  encrypted:
    description: Whether sessions need encrypted networks. The overlay network of the check is encrypted if all agents support it.
    type: bool
    default: false
  artifacts:
    description:
      - The directory on the controller in which the result is kept for launches with a preflight.
      - If not set, the variable C(session_artifacts), else C(~/.cluster-compute).
    type: path
extends_documentation_fragment:
  - cluster.compute.attributes.info
attributes:
  check_mode:
    support: full
    details: The check is the same. Its result is not kept for launches.
author: The cluster.compute authors (@cluster-compute)
seealso:
  - module: cluster.compute.agent_info
"""

EXAMPLES = r"""
- name: Check each agent and the network between them
  cluster.compute.agent_check_info:
    seconds: 0.5
  register: checked
  run_once: true

- name: Show the findings
  ansible.builtin.debug:
    msg: "{{ checked.lines | join('\n') }}"
  run_once: true

- name: Stop if an agent is not fit for sessions
  ansible.builtin.assert:
    that: checked.fit
    fail_msg: "{{ checked.message }}"
  run_once: true
"""

RETURN = r"""
findings:
  description: The findings, failures first.
  returned: success
  type: list
  elements: dict
  contains:
    check: {description: The name of the check., type: str, sample: udp 4789}
    where: {description: "An agent, a pair of agents, C(all) or C(all pairs).", type: str, sample: agent1 -> agent2}
    status: {description: "C(ok), C(warn) or C(fail).", type: str, sample: fail}
    found: {description: What the check found., type: str, sample: does not arrive at 192.0.2.12}
    remedy:
      description: How to fix it; empty if there is nothing to fix.
      type: str
      sample: allow UDP 4789 (VXLAN) from agent1 (192.0.2.11) on agent2, and outgoing on agent1
overlay:
  description: The measurements between agents inside the overlay network, one for each pair and direction; empty without a network.
  returned: success
  type: list
  elements: dict
  contains:
    from: {description: The agent that sent., type: str, sample: agent1}
    to: {description: The agent that received., type: str, sample: agent2}
    mbits: {description: Throughput in megabits per second; null if it was not measured., type: float, sample: 941.3}
    milliseconds: {description: "Latency, the least of several round trips; null if it was not measured.", type: float, sample: 0.21}
fit: {description: Whether no check failed., type: bool, returned: success, sample: false}
counts:
  description: The number of findings of each status.
  returned: success
  type: dict
  contains:
    ok: {description: Checks that passed., type: int, sample: 58}
    warn: {description: Warnings., type: int, sample: 1}
    fail: {description: Checks that failed., type: int, sample: 1}
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
message: {description: The outcome as one message., type: str, returned: success, sample: All agents can run sessions.}
lines:
  description: The findings as a table, and the measurements between the agents as a second table.
  returned: success
  type: list
  elements: str
  sample:
    - STATUS  CHECK   WHERE   FOUND     REMEDY
    - ok      engine  agent1  20.10.24
"""
