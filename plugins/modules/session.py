# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

DOCUMENTATION = r"""
module: session
short_description: Launch, repair, restart or end cluster sessions
description:
  - Launches a session on the hosts of the play. A session that runs is compared with the options, and what it lacks is brought back.
  - Every container of a launch runs and answers by SSH, or nothing of the launch is left.
  - With O(state=restarted), restarts the containers of the session O(name) in place, all or O(restart_containers), or the app
    O(restart_app). Containers keep their names, addresses, host keys and files, and are verified again.
  - With O(state=absent), ends the session O(name), or with O(many) all sessions whose names match it.
  - It runs once for all hosts of the play, on the controller. All agents of the inventory must be hosts of the play. With C(run_once),
    the task registers its result for all of them, otherwise for the first one.
  - Each option has a variable, whose name is that of the option after C(session_), such as C(session_cluster_size). An option of
    the task has precedence over its variable. A variable has precedence over O(preset) and over what an environment as O(image)
    sets, and these over the default.
  - Every value is checked before any host is contacted. An error names the option or the variable, the value and the rule.
  - The hosts must be agents already. The playbook C(cluster_session.yml) can provision them, with C(session_provision).
extends_documentation_fragment:
  - cluster.compute.attributes
  - cluster.compute.options.session
attributes:
  diff_mode:
    support: full
    details: The variables of a launch with where each comes from, and the plan, without its defaults and labels, are the difference.
  idempotent:
    support: partial
    details: With O(state=restarted), something restarts each time.
author: The cluster.compute authors (@cluster-compute)
seealso:
  - module: cluster.compute.session_exec
  - module: cluster.compute.session_copy
  - module: cluster.compute.session_apps
  - module: cluster.compute.session_queue
  - module: cluster.compute.session_info
"""

EXAMPLES = r"""
- name: Launch three containers
  cluster.compute.session:
    name: train
    cluster_size: 3
    image: debian:12
    cpus: 4
    memory: 16g
    environment:
      DATASET: /data/images
    mounts:
      - source: /srv/images
        target: /data/images
        mode: ro
  register: train

- name: Show the containers
  ansible.builtin.debug:
    msg: "{{ item.hostname }} runs on {{ item.agent }}"
  loop: "{{ train.session.containers }}"
  run_once: true

- name: Run a program as a job, wait for its result, and end the session
  cluster.compute.session:
    name: sweep-1
    command: python3 /data/sweep.py
    wait_result: true
    terminate_when_done: true

- name: Launch a notebook
  cluster.compute.session:
    name: notebook
    image: lab
    apps: [jupyterlab]

- name: Restart a container
  cluster.compute.session:
    name: train
    state: restarted
    restart_containers: [sub1]

- name: End a session
  cluster.compute.session:
    name: train
    state: absent

- name: End all sessions of a sweep
  cluster.compute.session:
    name: sweep-*
    many: true
    state: absent
"""

RETURN = r"""
session:
  description: The session, as C(session.json) on the controller describes it. With O(count), the first of the sessions.
  type: dict
  returned: with O(state=present), when the session runs, but not in check mode
  contains:
    schema:
      description: The version of this document. Fields may be added to it, but none is removed or renamed.
      type: int
      sample: 1
    session:
      description: What the session is.
      type: dict
      contains:
        id: {description: The UUID of the session., type: str, sample: 4b1ff98e-9a57-4d5d-9c5c-1d7c1d8f3f0a}
        name: {description: The name., type: str, sample: train}
        owner: {description: The owner., type: str, sample: alice}
        group: {description: The resource group., type: str, sample: default}
        state: {description: The state., type: str, sample: RUNNING}
        mode: {description: Whether the containers are on several agents., type: str, sample: multi-node}
        size: {description: The number of containers., type: int, sample: 3}
        image: {description: "The image, as it was requested.", type: str, sample: debian:12}
        user:
          description: The user in each container, with C(name), C(uid) and C(gid).
          type: dict
          sample: {name: work, uid: 1000, gid: 1000}
        created: {description: "When the session was requested, in seconds since the epoch.", type: float, sample: 1795280000.0}
        running: {description: "When its state last changed, in seconds since the epoch.", type: float, sample: 1795280002.4}
    network:
      description: The private network, with C(name), C(driver) and C(subnet).
      type: dict
      sample: {name: alice-train-3614fdf3, driver: overlay, subnet: 10.201.0.0/27}
    resources:
      description: The resources of each container, with C(cpus), C(memory) and C(shm) in bytes, and C(gpus).
      type: dict
      sample: {cpus: 4.0, memory: 17179869184, shm: 67108864, gpus: 0}
    containers:
      description: The containers in the order of their ranks.
      type: list
      elements: dict
      contains:
        id: {description: The UUID of the container., type: str}
        hostname: {description: "V(main1), V(sub1) and so on.", type: str, sample: main1}
        agent: {description: "The agent, by its name in the inventory.", type: str, sample: node1}
        rank: {description: The rank in the session., type: int, sample: 0}
        local_rank:
          description: The rank among the containers of its agent. Containers that compute are counted apart from the others.
          type: int
          sample: 0
        address: {description: The address in the private network., type: str, sample: 10.201.0.2}
        gpus: {description: The IDs of its GPUs., type: list, elements: str}
    apps:
      description: The ports of C(main1) that are published; the first is that of SSH. Apps that are reached by SSH have port 0.
      type: list
      elements: dict
      contains:
        name: {description: The name of the app., type: str, sample: ssh}
        address: {description: The address that the port is published at., type: str, sample: 192.0.2.7}
        port: {description: The port., type: int, sample: 30000}
        tunnel:
          description: The command that connects a port of the controller to the app.
          type: str
          returned: for an app on the loopback address of its agent, or one that is reached by SSH
        container: {description: The container of the app., type: str, returned: for an app that is reached by SSH, sample: worker1}
        relay:
          description: Whether a relay publishes the port.
          type: bool
          returned: for an app that M(cluster.compute.session_apps) has published
    command:
      description:
        - The end of the batch command, with C(result), which is V(SUCCESS), V(FAILURE) or empty while it runs, and C(reason); null
          without O(command).
      type: dict
      sample: {result: SUCCESS, reason: ""}
    timings:
      description: Seconds of each phase of the launch.
      type: dict
      sample: {inform: 0.2, schedule: 0.1, network: 0.3, create: 0.4, start: 0.6, verify: 0.5}
names: {description: The names of the sessions., type: list, elements: str, returned: with O(state=present), sample: [train]}
sessions:
  description: The sessions as the store has them, each with C(id), C(name), C(owner), C(state) and C(reason), also those that wait.
  type: list
  elements: dict
  returned: success
  sample: [{name: train, owner: alice, state: PENDING, reason: no agent has enough memory}]
plan:
  description:
    - The plan of the session, which M(cluster.compute.network), M(cluster.compute.containers) and M(cluster.compute.ssh) carry out.
    - It is neither recorded nor reserved. A session that runs has the plan that it was launched with.
  type: dict
  returned: in check mode, if there is one session and it does not wait
lines:
  description: The report for people. The callback P(cluster.compute.progress#callback) has shown it already.
  type: list
  elements: str
  returned: always
unprepared: {description: Whether something is to be prepared first., type: bool, returned: with O(state=present)}
provision: {description: The hosts that are to become agents first., type: list, elements: str, returned: when RV(unprepared)}
environment: {description: The environment whose image is to be built first; may be empty., type: str, returned: when RV(unprepared)}
preflight: {description: Whether the agents are to be checked first., type: bool, returned: when RV(unprepared)}
last_check:
  description:
    - The result of the last check of these agents, if there is a preflight and the result is not too old; otherwise null.
    - C(unfit) has the reason for each agent that failed it, C(unguarded) are the agents whose containers reach overlay
      networks of other sessions, and C(age) is how long ago it was made, such as C(12 min).
  type: dict
  returned: when RV(unprepared)
"""
