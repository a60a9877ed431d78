#!/usr/bin/python
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: session_logs_info
short_description: Read the logs of a session
description:
  - Reads the logs of all containers of a session from its agents, and adds those that the head has kept.
  - With O(follow=true), it writes the last lines of each container to the output, and then new lines every two seconds.
    It ends when no container runs any more, or after a day. An agent that does not answer for ten minutes is no longer asked.
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
      - The number of lines from the end of each log; with O(follow=true), at most 500.
    type: int
    default: 200
  follow:
    description:
      - Whether to show new lines until the session ends.
    type: bool
    default: false
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
  - module: cluster.compute.session_info
"""

EXAMPLES = r"""
- name: Find the session
  cluster.compute.session_info:
    name: train
    newest: true
  delegate_to: "{{ groups['agents'] | first }}"
  run_once: true
  register: found

- name: Read the last lines of each log
  cluster.compute.session_logs_info:
    session: "{{ found.session }}"
    tail: 20
  run_once: true
  register: logs  # logs.lines
"""

RETURN = r"""
lines:
  description: The same for people, each line after the name of its container, in rank order.
  type: list
  elements: str
  returned: without O(follow)
logs:
  description: The logs of the containers, the kept ones first.
  type: list
  elements: dict
  returned: without O(follow)
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
    "session": {"type": "dict", "required": True},
    "containers": {"type": "list", "elements": "str", "default": []},
    "tail": {"type": "int", "default": 200},
    "follow": {"type": "bool", "default": False},
}


def main() -> None:
    """The action plugin does the work; this file documents it."""
    module = AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True)
    module.fail_json(
        msg="cluster.compute.session_logs_info runs on the controller: call it in a task, by its full name."
    )


if __name__ == "__main__":
    main()
