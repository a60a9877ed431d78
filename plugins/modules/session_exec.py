#!/usr/bin/python
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: session_exec
short_description: Run a command in the containers of a session
description:
  - Runs a command in all containers of a session, or in some of them, at the same time, as the session's user. The command goes to the
    user's shell, with the environment of a login.
  - Connects from the controller with the C(ssh_config) that the launch has left there. Host keys are checked strictly.
  - Does not fail if the command fails. RV(exit_code) and RV(message) say so.
  - When the time is over, or the connection is lost, what the command has started is ended.
  - Runs on the controller alone, whatever host the task is for.
options:
  name:
    description:
      - The name of the session.
    type: str
    required: true
  command:
    description:
      - The command, at most 60,000 bytes. Its standard input is empty.
    type: str
    required: true
  containers:
    description:
      - Hostnames of the containers. If empty, all.
    type: list
    elements: str
    default: []
  output:
    description:
      - Whether RV(lines) has each line after the name of its container, or a block for each container.
    type: str
    choices: [prefixed, grouped]
    default: prefixed
  timeout:
    description:
      - Seconds after which the command is ended.
    type: int
    default: 600
  artifacts:
    description:
      - The folder on the controller that holds a folder for each session.
      - If not set, C(~/.cluster-compute).
    type: path
extends_documentation_fragment:
  - cluster.compute.attributes
  - cluster.compute.attributes.action
  - cluster.compute.attributes.actiongroup_compute
attributes:
  check_mode:
    support: partial
    details:
      - Names the containers and contacts none. What a command would change is unknown, so it returns C(changed=true).
  diff_mode:
    support: none
  idempotent:
    support: none
    details:
      - The command runs each time.
requirements:
  - OpenSSH on the controller
author:
  - The cluster.compute authors (@cluster-compute)
seealso:
  - module: cluster.compute.session_copy
"""

EXAMPLES = r"""
- name: Show the free memory of every container
  cluster.compute.session_exec:
    name: train
    command: free -m
  register: free_memory
  delegate_to: localhost

- name: Stop the program of two containers
  cluster.compute.session_exec:
    name: train
    command: pkill -f train.py
    containers: [sub1, sub2]
  delegate_to: localhost
"""

RETURN = r"""
exit_code:
  description: The highest exit code; V(124) after O(timeout), V(255) for a container without a connection.
  type: int
  returned: success
  sample: 0
message:
  description: One sentence with the containers in which the command failed; empty if it succeeded.
  type: str
  returned: success
lines:
  description: The output for people.
  type: list
  elements: str
  returned: success
  sample: ["main1: ready", "sub1: ready"]
containers:
  description: The answer of each container, in rank order; empty in check mode.
  type: list
  elements: dict
  returned: success
  contains:
    hostname:
      description: The container's hostname.
      type: str
      returned: always
      sample: sub1
    exit_code:
      description: The exit code.
      type: int
      returned: always
      sample: 0
    lines:
      description: The last lines of standard output and standard error. Control characters are escapes.
      type: list
      elements: str
      returned: always
    left_out:
      description:
        - Bytes before these lines that are not returned.
        - Of each container, 16 MiB divided by the number of containers are kept, at most 1 MiB and at least 8 KiB.
      type: int
      returned: always
      sample: 0
    problem:
      description: Why there is no exit code of the command; empty if there is one.
      type: str
      returned: always
duration:
  description: Seconds that it took.
  type: float
  returned: when the command ran
"""

from ansible.module_utils.basic import AnsibleModule


def main() -> None:
    """The action plugin does the work; this file documents it."""
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "required": True},
            "command": {"type": "str", "required": True},
            "containers": {"type": "list", "elements": "str", "default": []},
            "output": {"type": "str", "choices": ["prefixed", "grouped"], "default": "prefixed"},
            "timeout": {"type": "int", "default": 600},
            "artifacts": {"type": "path"},
        },
        supports_check_mode=True,
    )
    module.fail_json(msg="cluster.compute.session_exec runs on the controller: call it in a task, by its full name.")


if __name__ == "__main__":
    main()
