# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

DOCUMENTATION = r"""
module: network
short_description: Create or remove the private network of a session
description:
  - Creates the network of a plan, a bridge on its one agent or an attachable overlay on a Swarm manager.
  - An existing network is used if it has the label of the session. Another network of the same name is an error.
options:
  state: {description: Whether the network exists., type: str, choices: [present, absent], default: present}
  sessions:
    description:
      - The UUIDs of the sessions whose networks are removed, for O(state=absent).
      - A Swarm worker does not remove overlay networks. A manager removes them.
    type: list
    elements: str
  deadline:
    description: Seconds during which a removal is repeated while the last endpoints leave the network.
    type: int
    default: 30
extends_documentation_fragment:
  - cluster.compute.plan
  - cluster.compute.engine
  - cluster.compute.attributes
author: The cluster.compute authors (@cluster-compute)
seealso:
  - module: cluster.compute.containers
"""

EXAMPLES = r"""
- name: Plan a session
  cluster.compute.session:
  check_mode: true
  vars:
    session_name: train
    session_cluster_size: 2
  register: planned

- name: Create its network, on the agent of its first container
  cluster.compute.network:
    state: present
    plan: "{{ planned.plan }}"
  run_once: true
  delegate_to: "{{ planned.plan.containers[0].agent }}"

- name: Remove the networks of two sessions
  cluster.compute.network:
    state: absent
    sessions:
      - 3614fdf3-0e04-4a4b-9d5c-1f7c0a8e6b11
      - 9b2d7b7e-53c1-4f6f-8e0e-2d6a7a5f1c11
"""

RETURN = r"""
network:
  description: The network; empty for O(state=absent).
  returned: success
  type: dict
  sample:
    id: 6d1c…
    name: alice-train-3614fdf3
    driver: bridge
    subnet: 10.201.0.0/27
removed: {description: The names of the networks that were removed., type: list, elements: str, returned: success, sample: []}
left:
  description:
    - The names of overlay networks that the manager keeps, because a lost agent has containers on them. They can be removed after that
      agent answers again, or is removed from the Swarm's list of nodes.
    - The names of networks that the engine keeps although it lists nothing on them, because it has miscounted their endpoints. They
      can be removed after the engine is started again (U(https://github.com/moby/moby/issues/42119)).
  returned: for O(state=absent)
  type: list
  elements: str
  sample: []
duration: {description: Seconds that the call took., type: float, returned: always, sample: 0.12}
failure:
  description: The failure, for playbooks.
  returned: failure
  type: dict
  sample:
    code: conflict
    message: On agent1 the network alice-train-3614fdf3 (0123456789ab) does not belong to this session; remove or rename
      it.
    where: agent1
"""
