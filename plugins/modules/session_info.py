# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

DOCUMENTATION = r"""
module: session_info
short_description: List sessions and the resources that they use
description:
  - Lists sessions from the store on the head, with the state of their containers from the agents' reports.
  - It runs once for all hosts of the play, on the controller. All agents of the inventory must be hosts of the play.
  - A running session is degraded if a container does not run, or its agent cannot be reached.
options:
  name: {description: Only sessions of this name., type: str}
  owner:
    description:
      - Only sessions of this owner; V(all) for the sessions of all owners.
      - If not set, the controller's user.
    type: str
  ended: {description: "Whether to list ended sessions, too, with their history.", type: bool, default: false}
  state:
    description:
      - Only sessions of this kind. V(running) are those that have not ended, those that wait included. V(finished) are those
        that were terminated or have ended by themselves. V(other) are those that failed to launch or were cancelled.
      - If not set, O(ended) decides.
    type: str
    choices: [running, finished, other]
  limit: {description: "The number of ended sessions to list, the newest first to be chosen; V(0) for all.", type: int, default: 0}
  samples: {description: Seconds for which to return RV(samples); V(0) for none., type: int, default: 0}
  logs:
    description: Whether to return the logs of the newest session's containers, if the session has ended.
    type: bool
    default: false
  agents:
    description:
      - The results of M(cluster.compute.agent_info) on all agents, or the reports in them.
      - If not set, the reports of all hosts of the play.
    type: list
    elements: dict
    default: []
extends_documentation_fragment:
  - cluster.compute.store
  - cluster.compute.attributes.info
author: The cluster.compute authors (@cluster-compute)
seealso:
  - module: cluster.compute.session
"""

EXAMPLES = r"""
- name: List them
  cluster.compute.session_info:
    owner: all
  register: listed

- name: Show their names and states
  ansible.builtin.debug:
    msg: "{{ item.name }} of {{ item.owner }}: {{ item.state }}"
  loop: "{{ listed.sessions }}"
  run_once: true
"""

RETURN = r"""
sessions:
  description: The sessions, oldest first.
  type: list
  elements: dict
  returned: success
  sample:
    - name: train
      state: RUNNING
      kind: cluster
      size: 4
      started: 1795280000.0
      turn:
      time_left: 3600.0
      measured: {millicpus: 1500, memory: 734003200, gpus: []}
      apps: [{name: jupyterlab, address: 192.0.2.7, port: 30001}]
      folders: []
      degraded: []
agents:
  description:
    - The capacity of each agent, and what running sessions and launches use of it, in all and by owner. Waiting sessions use nothing.
    - C(measured) is what their containers really use, if the reports in O(agents) were measured.
  type: list
  elements: dict
  returned: success
groups:
  description:
    - The resource groups, with the capacity of their agents, what is allocated of it, and C(own), the part of the owner.
    - C(own_most) is what the owner may have there at most, which is less than the capacity if a quota of the policy leaves less.
    - Without an owner, both are null.
  type: list
  elements: dict
  returned: success
  sample:
    - group: default
      agents: 2
      capacity: {millicpus: 16000, memory: 68719476736, gpus: 0}
      used: {millicpus: 5000, memory: 5368709120, gpus: 0}
      own: {millicpus: 5000, memory: 5368709120, gpus: 0}
      own_most: {millicpus: 8000, memory: 68719476736, gpus: 0}
owners:
  description:
    - The owners of live sessions, and the owner who is asked for, with what their sessions hold.
    - C(available) is what the owner may still have now. It is what is free in the permitted resource groups, at most what the
      quotas leave.
  type: list
  elements: dict
  returned: success
  sample:
    - owner: alice
      sessions: 2
      waiting: 1
      containers: 5
      used: {millicpus: 5000, memory: 5368709120, gpus: 0}
      allowed: {}
      available: {millicpus: 11000, memory: 63350767616, gpus: 0}
file:
  description: The request of the session as a session file, without values of secrets.
  type: str
  returned: with the variable C(sessions_format) V(file), and nothing else but RV(lines) then
lines:
  description: The list as tables for people, or in the format of the variable C(sessions_format).
  type: list
  elements: str
  returned: success
samples:
  description: Capacity, allocation and measured use over time, oldest first, as each pass over the queue has recorded them.
  type: list
  elements: dict
  returned: success
time: {description: "When the list was made, in seconds since the epoch.", type: float, returned: success}
"""
