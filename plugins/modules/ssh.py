#!/usr/bin/python
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ssh
short_description: Install accounts, keys and SSH configuration in a session's created containers
description:
  - Installs all files that SSH needs in the containers of one agent before they are started, through the archive API of the
    engine. No program runs in the containers to configure them.
  - All keys are derived from one secret, which is generated on the controller and never leaves it. It is stored in the file
    C(identity) below O(artifacts). A container that is created again gets the same host key.
  - A certificate authority of the session signs each host key, so that strict host key checking works everywhere, and a
    new container requires no change in the others.
  - Entries are added to the image's accounts, known hosts and client configuration. Existing entries are kept.
  - Nothing is written to a folder that is mounted into a container.
  - On the controller, C(ssh_config), C(id_container) and C(known_hosts) are stored below O(artifacts), so that
    C(ssh -F ssh_config main1) works, and C(ssh -F ssh_config sub1) through C(main1).
options:
  agent:
    description:
      - The name of the agent in the plan, in whose containers the files are installed.
      - If not set, the inventory name of the task's host.
    type: str
  containers:
    description:
      - Hostnames of the containers, in any state.
      - If empty, the containers of O(agent) that have never been started.
    type: list
    elements: str
    default: []
extends_documentation_fragment:
  - cluster.compute.plan
  - cluster.compute.plan.reach
  - cluster.compute.attributes
  - cluster.compute.attributes.action
  - cluster.compute.attributes.actiongroup_compute
  - cluster.compute.engine
attributes:
  check_mode:
    support: full
    details:
      - A container that does not exist is treated as if it will be created.
  diff_mode:
    support: full
    details:
      - Names, modes and owners of the files in the containers, and the public files on the controller; never a key.
  idempotent:
    support: full
author:
  - The cluster.compute authors (@cluster-compute)
seealso:
  - module: cluster.compute.containers
"""

EXAMPLES = r"""
- name: Install the files in the containers that this agent has created
  cluster.compute.ssh:
    plan: "{{ scheduled.plan }}"
  register: installed

- name: Install the files in one container that was created again, and reach main1 at another address
  cluster.compute.ssh:
    plan: "{{ scheduled.plan }}"
    containers: [sub2]
    address: agent1.example.com
"""

RETURN = r"""
installed:
  description: Hostnames of the containers in which files were installed, in rank order.
  type: list
  elements: str
  returned: success
  sample: [main1, sub1]
artifacts:
  description: The session's folder on the controller.
  type: str
  returned: success
  sample: /home/alice/.cluster-compute/train
duration:
  description: Seconds that the work on the agent took.
  type: float
  returned: when the agent holds containers of the plan
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._module import engine_options

ARGUMENT_SPEC = {
    "plan": {"type": "dict", "required": True},
    "agent": {"type": "str"},
    "containers": {"type": "list", "elements": "str", "default": []},
    "artifacts": {"type": "path"},
    "address": {"type": "str"},
    **engine_options(),
}

RULES = {"supports_check_mode": True}


def main() -> None:
    """The action plugin does the work; this file documents it."""
    module = AnsibleModule(argument_spec=ARGUMENT_SPEC, **RULES)
    module.fail_json(msg="cluster.compute.ssh starts on the controller: call it in a task, by its full name.")


if __name__ == "__main__":
    main()
