# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

DOCUMENTATION = r"""
module: session_exec
short_description: Run a command in the containers of a session
description:
  - Runs a command in all containers of a session, or in some of them, at the same time, as the session's user. The command goes to the
    user's shell, with the environment of a login.
  - Connects from the controller with the C(ssh_config) that the launch has left there. Host keys are checked strictly.
  - Fails if the command fails in a container, after it has ended in all. With O(fail=false), RV(exit_code) and RV(message)
    say so instead.
  - Each option has a variable of the playbooks, such as C(session_exec_timeout). An option has precedence.
  - When the time is over, or the connection is lost, what the command has started is ended.
  - Runs on the controller alone, whatever host the task is for.
extends_documentation_fragment:
  - cluster.compute.attributes.without_diff
  - cluster.compute.options.session_exec
attributes:
  check_mode:
    support: partial
    details: Names the containers and contacts none. What a command would change is unknown, so it returns C(changed=true).
  idempotent:
    support: none
    details: The command runs each time.
requirements:
  - OpenSSH on the controller
author: The cluster.compute authors (@cluster-compute)
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
message: {description: A message with the containers in which the command failed; empty if it succeeded., type: str, returned: success}
lines: {description: The output for people., type: list, elements: str, returned: success, sample: ["main1: ready", "sub1: ready"]}
containers:
  description: The answer of each container, in rank order; empty in check mode.
  type: list
  elements: dict
  returned: success
  contains:
    hostname: {description: The container's hostname., type: str, sample: sub1}
    exit_code: {description: The exit code., type: int, sample: 0}
    lines:
      description: The last lines of standard output and standard error. Control characters are escapes.
      type: list
      elements: str
    left_out:
      description:
        - Bytes before these lines that are not returned.
        - Of each container, 16 MiB divided by the number of containers are kept, at most 1 MiB and at least 8 KiB.
      type: int
      sample: 0
    problem: {description: Why there is no exit code of the command; empty if there is one., type: str}
duration: {description: Seconds that it took., type: float, returned: when the command ran}
"""
