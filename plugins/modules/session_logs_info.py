#!/usr/bin/python
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: session_logs_info
short_description: Collect the logs of a session
description:
  - Returns the logs that the head has kept, followed by those that the hosts of the play have registered as
    C(__session_logs).
  - It runs on the controller and touches no host.
options:
  kept:
    description:
      - The logs that M(cluster.compute.session_info) returns for the session.
    type: list
    elements: dict
    default: []
    suboptions:
      hostname:
        description: The hostname of the container.
        type: str
        required: true
      state:
        description: The state of the container.
        type: str
      text:
        description: What the container has written.
        type: str
        required: true
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
  - module: cluster.compute.logs_info
"""

EXAMPLES = r"""
- name: Collect the logs of all hosts
  cluster.compute.session_logs_info:
    kept: "{{ found.session.logs }}"
  run_once: true
  register: collected
"""

RETURN = r"""
logs:
  description: The logs of the containers.
  type: list
  elements: dict
  returned: success
  contains:
    hostname:
      description: The hostname of the container.
      type: str
    state:
      description: The state of the container.
      type: str
    text:
      description: What the container has written.
      type: str
"""

from ansible.module_utils.basic import AnsibleModule

ARGUMENT_SPEC = {
    "kept": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {
            "hostname": {"type": "str", "required": True},
            "state": {"type": "str"},
            "text": {"type": "str", "required": True},
        },
    },
}


def main() -> None:
    """The action plugin does the work; this file documents it."""
    module = AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True)
    module.fail_json(
        msg="cluster.compute.session_logs_info runs on the controller: call it in a task, by its full name."
    )


if __name__ == "__main__":
    main()
