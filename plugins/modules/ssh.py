# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

DOCUMENTATION = r"""
module: ssh
short_description: Install keys, names and SSH in containers
description:
  - With O(plan), installs all files that SSH needs in the created containers of a session before they are started, through the
    archive API of the engine. No program runs in the containers to configure them.
  - With O(containers), installs keys and SSH configuration in running containers that something else has started, such as Docker
    Compose, writes the names and addresses of all of them into the C(/etc/hosts) of each, and starts an SSH server in each, so that
    C(ssh NAME) works between them with strict host key checking and without a prompt.
  - All keys are derived from one secret, which is generated on the controller and never leaves it. It is stored in the file
    C(identity) below O(artifacts). A container that is created again gets the same host key.
  - A certificate authority of the session or set signs each host key, so that strict host key checking works everywhere, and a
    new container requires no change in the others.
  - Entries are added to the image's accounts, known hosts, client configuration and C(/etc/hosts). Existing entries are kept.
  - Nothing is written to a directory that is mounted into a container.
  - With O(plan), C(ssh_config), C(id_container) and C(known_hosts) are stored below O(artifacts) on the controller, so that
    C(ssh -F ssh_config main1) works, and C(ssh -F ssh_config sub1) through C(main1).
  - The task runs once, for all hosts of the play.
options:
  plan:
    description:
      - The plan of a session, as M(cluster.compute.session) returns it in check mode. C(docs/contracts.md) describes it completely.
    type: dict
  hostnames:
    description:
      - Hostnames of containers of O(plan), in any state.
      - If empty, the containers of the hosts of the play that have never been started.
    type: list
    elements: str
    default: []
  name: {description: The name of the set of O(containers). Its keys are in a directory of this name below O(artifacts)., type: str}
  containers:
    description:
      - The running containers that reach each other. Containers of sessions are refused.
      - Each needs a shell and OpenSSH's server in its image, or the SSH runtime mounted read-only at C(/opt/cluster-compute). The
        runtime is used if it is mounted. M(cluster.compute.agent_info) returns the name of its volume.
      - The server and the lines of C(/etc/hosts) last until the container stops; run the task again then.
    type: list
    elements: dict
    suboptions:
      name: {description: The name of the container in the engine., type: str, required: true}
      host: {description: "The host of the play that has it. If not set, the one host that has a container of this name.", type: str}
      hostname: {description: "Its name for C(ssh) and in C(/etc/hosts). If not set, its name in the engine.", type: str}
  network:
    description:
      - The network in which O(containers) reach each other, such as V(project_default) of a Compose project. Containers on several
        hosts need an overlay network.
      - Required only for containers that have several networks.
    type: str
    default: ''
  user:
    description: The account in O(containers) that C(ssh) logs in to. It is created if it does not exist.
    type: dict
    default: {}
    suboptions:
      name: {description: Its name. V(root) is refused., type: str, default: work}
      uid: {description: Its user ID., type: int, default: 1000}
      gid: {description: Its group ID., type: int, default: 1000}
      home: {description: "Its home. If not set, C(/home) and its name.", type: path}
  port:
    description:
      - The port of the SSH servers in O(containers). Choose another one if a container has an SSH server of its own on port 22.
    type: int
    default: 22
extends_documentation_fragment:
  - cluster.compute.plan.reach
  - cluster.compute.attributes
  - cluster.compute.engine
attributes:
  check_mode:
    support: full
    details: A container of O(plan) that does not exist is treated as if it will be created.
  diff_mode:
    support: full
    details:
      - Names, modes and owners of the files in the containers, C(/etc/hosts), and the public files on the controller; never a key.
author: The cluster.compute authors (@cluster-compute)
seealso:
  - module: cluster.compute.containers
  - module: cluster.compute.session
"""

EXAMPLES = r"""
- name: Let two containers of a Compose project reach each other as main1 and worker1
  cluster.compute.ssh:
    name: project
    containers:
      - name: project-main-1
        hostname: main1
      - name: project-worker-1
        hostname: worker1

- name: Plan a session
  cluster.compute.session:
  vars:
    session_name: train
  check_mode: true
  register: planned

- name: Install the files in the containers that have been created from the plan
  cluster.compute.ssh:
    plan: "{{ planned.plan }}"
"""

RETURN = r"""
installed:
  description: Hostnames of the containers in which something was installed.
  type: list
  elements: str
  returned: success
  sample: [main1, sub1]
addresses:
  description: The address of each container of O(containers), by its hostname.
  type: dict
  returned: with O(containers)
  sample: {"main1": "172.18.0.2", "worker1": "172.18.0.3"}
artifacts:
  description: The directory of the session or set on the controller.
  type: str
  returned: success
  sample: /home/alice/.cluster-compute/train
duration:
  description: Seconds that the work on the slowest host took.
  type: float
  returned: success, if a host of the play has one of the containers
"""
