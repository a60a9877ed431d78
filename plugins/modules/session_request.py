#!/usr/bin/python
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: session_request
short_description: Check the variables of the role session
description:
  - Checks every variable that the role C(session) declares and that an entry point of the role reads, and returns their
    normal form. A value that is missing or empty means the default.
  - It takes the variables from the task, so they are not listed as options. It runs on the controller and connects to no host.
options:
  entry_point:
    description:
      - The entry point of the role whose variables are checked. V(check) is C(check_agents.yml).
    type: str
    choices: [main, schedule, terminate, logs, list, exec, copy, apps, environments, policy, usage, check]
    default: main
  name:
    description:
      - The name of the session to terminate, if it is not in the variable C(session_name).
    type: str
    default: ''
  environments:
    description:
      - Names of environments to build, for V(entry_point=environments).
    type: raw
extends_documentation_fragment:
  - cluster.compute.attributes
  - cluster.compute.attributes.action
  - cluster.compute.attributes.actiongroup_compute
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
  idempotent:
    support: full
author:
  - The cluster.compute authors (@cluster-compute)
seealso:
  - module: cluster.compute.schedule
"""

EXAMPLES = r"""
- name: Check the request
  cluster.compute.session_request:
  run_once: true
  register: checked  # checked.requests
  vars:
    session_name: train
    session_cluster_size: 4
"""

RETURN = r"""
requests:
  description: The requests in their normal form, one for each session.
  type: list
  elements: dict
  returned: with O(entry_point=main)
paths:
  description: Folders of the agents that the request mounts.
  type: list
  elements: str
  returned: with O(entry_point=main)
environment:
  description: The environment that builds the image of the request; empty if the collection has none.
  type: str
  returned: with O(entry_point=main)
last_check:
  description:
    - The result of the last check of these agents, if there is a preflight and the result is not too old; otherwise null.
    - C(unfit) has the reason for each agent that failed it, C(unguarded) are the agents whose containers reach overlay
      networks of other sessions, and C(age) is how long ago it was made, such as C(12 min).
  type: dict
  returned: with O(entry_point=main)
is_pattern:
  description: Whether the name is a pattern, which several sessions may match.
  type: bool
  returned: with O(entry_point=terminate)
apps:
  description: The apps to start, in their normal form.
  type: list
  elements: dict
  returned: with O(entry_point=apps)
session:
  description: The ID of the session.
  type: str
  returned: with O(entry_point=apps)
agent:
  description: The agent of C(main1).
  type: str
  returned: with O(entry_point=apps)
apps_timeout:
  description: Seconds within which the apps must be ready.
  type: int
  returned: with O(entry_point=apps)
build:
  description: The builds in their order, each with C(name), C(version), C(image) and the image C(base) that it extends.
  type: list
  elements: dict
  returned: with O(environments)
variables:
  description: The checked variables, by name, without secrets.
  type: dict
  returned: success
"""

from ansible.module_utils.basic import AnsibleModule


def main() -> None:
    """The action plugin does the work; this file documents it."""
    module = AnsibleModule(
        argument_spec={
            "entry_point": {
                "type": "str",
                "choices": [
                    "main",
                    "schedule",
                    "terminate",
                    "logs",
                    "list",
                    "exec",
                    "copy",
                    "apps",
                    "environments",
                    "policy",
                    "usage",
                    "check",
                ],
                "default": "main",
            },
            "name": {"type": "str", "default": ""},
            "environments": {"type": "raw"},
        },
        supports_check_mode=True,
    )
    module.fail_json(msg="cluster.compute.session_request runs on the controller: call it in a task, by its full name.")


if __name__ == "__main__":
    main()
