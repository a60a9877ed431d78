# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

DOCUMENTATION = r"""
module: containers
short_description: Create, start, stop or remove all containers of a session
description:
  - Manages all containers of a session on one agent in one call, several at a time.
  - If a creation or a start fails, the containers stay, so that their logs can be read. Remove them with O(state=absent).
  - A container that is as in the plan is not changed.
options:
  state:
    description:
      - V(created) creates the containers, so that files can be installed in them before their first start. A stopped container
        is kept with its files. A container that an earlier launch created and never started is created again.
      - V(started) starts the containers that do not run, and checks a moment later that they still run.
      - V(stopped) stops the containers that run. Their files stay. Every program in them receives SIGTERM, in all containers
        at once, and SIGKILL if it still runs after the grace of its session.
      - V(limited) writes the session's lifetime and idle timeout into the containers that run, where they differ.
      - V(absent) stops the containers that run, and removes all of them, with their anonymous volumes and the volumes that the
        session defines. A volume that another container mounts is kept, and is removed with the last session that mounts it.
    type: str
    choices: [created, started, limited, stopped, absent]
    default: started
  agent: {description: The name of this host in the plan., type: str, required: true}
  sessions:
    description: The UUIDs of the sessions whose containers are stopped or removed, for O(state=stopped) and O(state=absent).
    type: list
    elements: str
  launch:
    description: The UUID of a launch. If set, O(state=absent) removes only the containers of this launch.
    type: str
    default: ""
  deadline:
    description: Seconds, after the programs have ended, during which a removal is repeated if the engine refuses it.
    type: int
    default: 60
  logs:
    description:
      - The logs to read for O(state=absent), after the programs have ended and before the containers are removed.
        RV(logs) has them.
    type: dict
    suboptions:
      session: {description: The UUID of the session whose logs are read., type: str, required: true}
      tail: {description: "The number of last lines of each log. If not set, all lines.", type: int}
      total: {description: The number of bytes of all these logs together. Each log has at least 4096., type: int, default: 67108864}
      deadline: {description: Seconds for reading the logs., type: int, default: 60}
  bootstrap_timeout:
    description: Seconds that the session's bootstrap script may take in each container, for O(state=started).
    type: int
    default: 300
  install_ssh:
    description:
      - Whether the containers that have never been started get what M(cluster.compute.ssh) installs. For O(state=started), PID 1 of
        each container unpacks it before it does anything else. For O(state=created), the engine unpacks it, which takes longer.
    type: bool
    default: false
  network:
    description:
      - Whether O(state=created) first does what M(cluster.compute.network) does with C(state=present), and O(state=absent) at last
        what it does with C(state=absent) for the networks that are on this engine alone.
    type: bool
    default: false
  runtime_volume:
    description:
      - The volume that holds the SSH runtime.
      - If empty, the newest complete volume with the scripts of this release.
    type: str
    default: ''
extends_documentation_fragment:
  - cluster.compute.engine
  - cluster.compute.plan
  - cluster.compute.plan.reach
  - cluster.compute.attributes
notes:
  - Containers have the restart policy C(no). A container that ends stays stopped, so that its exit code and an out-of-memory
    kill are reported. Another launch of the session starts it again with its name, address and files.
  - The limits for open files and locked memory are as high as the host allows.
attributes:
  diff_mode:
    support: full
    details: Shows the state of each container, but not its environment.
author: The cluster.compute authors (@cluster-compute)
seealso:
  - module: cluster.compute.network
  - module: cluster.compute.session
"""

EXAMPLES = r"""
- name: Plan a session, without recording or reserving anything
  cluster.compute.session:
  check_mode: true
  vars:
    session_name: train
    session_cluster_size: 2
  register: planned

- name: Create the containers of this agent
  cluster.compute.containers:
    state: created
    agent: "{{ inventory_hostname }}"
    plan: "{{ planned.plan }}"

- name: Start the containers of this agent, with SSH
  cluster.compute.containers:
    state: started
    agent: "{{ inventory_hostname }}"
    plan: "{{ planned.plan }}"
    install_ssh: true

- name: Remove the containers of one launch
  cluster.compute.containers:
    state: absent
    agent: "{{ inventory_hostname }}"
    sessions: ["3614fdf3-0e04-4a4b-9d5c-1f7c0a8e6b11"]
    launch: 9b2d7b7e-53c1-4f6f-8e0e-2d6a7a5f1c11
"""

RETURN = r"""
containers:
  description: The containers after the call, in rank order. In check mode, containers that would be created have the state C(planned).
  returned: success
  type: list
  elements: dict
  sample:
    - engine_name: alice.train.main1
      hostname: main1
      state: running
      address: 10.201.0.2
logs:
  description: The logs that O(logs) asks for, in rank order, each with C(hostname), C(rank), C(name), C(state) and C(text).
  returned: if O(logs) is set
  type: list
  elements: dict
  sample:
    - hostname: main1
      name: alice.train.main1
      rank: 0
      state: exited
      text: "step 100\n"
changed_names:
  description: The names of the changed containers in the engine.
  returned: success
  type: list
  elements: str
  sample: [alice.train.main1]
installed:
  description: Hostnames of the containers in which SSH was installed, in rank order.
  returned: if O(install_ssh=true)
  type: list
  elements: str
  sample: [main1, sub1]
artifacts:
  description: The session's directory on the controller.
  returned: if O(install_ssh=true)
  type: str
  sample: /home/alice/.cluster-compute/train
actions:
  description: The changes of containers, volumes and networks.
  returned: success
  type: list
  elements: dict
  contains:
    name: {description: "The name of the container, volume or network in the engine.", type: str, sample: alice.train.main1}
    action:
      description: The change, such as V(created), V(recreated), V(renamed), V(started), V(updated), V(limited), V(stopped),
        V(removed), V(volume removed) or V(network removed).
      type: str
      sample: created
left:
  description: For O(state=absent), the volumes of these sessions that other containers still mount.
  returned: success
  type: list
  elements: str
  sample: []
network:
  description: The network of the session, as M(cluster.compute.network) returns it.
  returned: if O(network=true), for O(state=created)
  type: dict
  sample:
    name: alice.train
    driver: bridge
    subnet: 10.201.0.0/26
network_duration:
  description: Seconds of the call for the network.
  returned: if O(network=true), for O(state=created)
  type: float
  sample: 0.08
left_networks:
  description:
    - The networks of these sessions that M(cluster.compute.network) can remove afterwards on this engine, because the engines of a
      Swarm share them and this one is a manager, or because the engine does not let go of them.
  returned: if O(network=true), for O(state=absent)
  type: list
  elements: str
  sample: []
duration: {description: Seconds that the call took., type: float, returned: always, sample: 0.41}
failure:
  description: The failure, for playbooks.
  returned: failure
  type: dict
  sample:
    code: conflict
    message: "sub1: on agent1 the name alice.train.sub1 is used by container 0123456789ab, which does not belong to this
      session; remove or rename it."
    where: agent1
"""
