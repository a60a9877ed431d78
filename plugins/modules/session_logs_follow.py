#!/usr/bin/python
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: session_logs_follow
short_description: Show what the containers of a session write, until the session ends
description:
  - Writes the last lines of each container to the output, and then new lines every two seconds.
  - It ends when no container runs any more, or after a day. An agent that does not answer for ten minutes is no longer asked.
  - It runs on the controller, over connections of its own to the agents.
options:
  session:
    description:
      - The session as M(cluster.compute.session_info) returns it.
    type: dict
    required: true
  containers:
    description:
      - Hostnames of the containers. If empty, all.
    type: list
    elements: str
    default: []
  tail:
    description:
      - The number of lines that each log begins with, at most 500.
    type: int
    default: 200
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
- name: Find the session
  cluster.compute.session_info:
    name: train
    newest: true
  delegate_to: "{{ groups['agents'] | first }}"
  run_once: true
  register: found

- name: Follow its logs
  cluster.compute.session_logs_follow:
    session: "{{ found.session }}"
  run_once: true
"""

RETURN = r"""# """

from ansible.module_utils.basic import AnsibleModule


def main() -> None:
    """The action plugin does the work; this file documents it."""
    module = AnsibleModule(
        argument_spec={
            "session": {"type": "dict", "required": True},
            "containers": {"type": "list", "elements": "str", "default": []},
            "tail": {"type": "int", "default": 200},
        },
        supports_check_mode=True,
    )
    module.fail_json(
        msg="cluster.compute.session_logs_follow runs on the controller: call it in a task, by its full name."
    )


if __name__ == "__main__":
    main()
