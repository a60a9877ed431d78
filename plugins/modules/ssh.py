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
  bundle:
    description:
      - Keys and texts from the controller. The action plugin sets this option.
    type: str
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

from ..module_utils._core.documents import Json
from ..module_utils._core.errors import InputError
from ..module_utils._docker.client import Engine
from ..module_utils._module import at_least, engine_options, read_plan, run
from ..module_utils._ssh.container_files import Bundle
from ..module_utils._ssh.installer import FileInstaller

ARGUMENT_SPEC = {
    "plan": {"type": "dict", "required": True},
    "agent": {"type": "str"},
    "containers": {"type": "list", "elements": "str", "default": []},
    "artifacts": {"type": "path"},
    "address": {"type": "str"},
    "bundle": {"type": "str", "no_log": True},
    **engine_options(),
}

RULES = {"supports_check_mode": True}


def work(params: Json, check_mode: bool) -> Json:
    at_least(params, timeout=1)
    if not params["agent"] or not params["bundle"]:
        raise InputError("bundle", None, "is set by the action plugin; use the module as cluster.compute.ssh in a task")
    engine = Engine(params["docker_host"], params["timeout"], params["agent"])
    installer = FileInstaller(engine, read_plan(params["plan"]), params["agent"], Bundle.from_text(params["bundle"]))
    return installer.install(params["containers"], check_mode)


def main() -> None:
    run(AnsibleModule(argument_spec=ARGUMENT_SPEC, **RULES), work)


if __name__ == "__main__":
    main()
