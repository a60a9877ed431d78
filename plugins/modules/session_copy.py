# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

DOCUMENTATION = r"""
module: session_copy
short_description: Copy files to the containers of a session, or from them
description:
  - Copies a file or a directory to all containers of a session, or to some of them, or from them into a directory for each container.
  - Connects from the controller with the C(ssh_config) that the launch has left there. Host keys are checked strictly.
  - To a container, it uses C(rsync) if the controller and the image have it, else a tar stream, for which the image needs nothing.
  - From a container, it reads a tar stream. Links and devices are left out, and no symlink of the controller is followed.
  - Fails if the copy fails in a container, after it has ended in all. With O(fail=false), RV(message) says so instead.
  - Each option has a variable of the playbooks, such as C(session_copy_timeout). An option has precedence.
  - Runs on the controller alone, whatever host the task is for.
extends_documentation_fragment:
  - cluster.compute.attributes.without_diff
  - cluster.compute.options.session_copy
attributes:
  check_mode:
    support: partial
    details: Names the containers and contacts none, so it returns C(changed=true) also if there is nothing to copy.
  idempotent:
    support: partial
    details: With C(rsync), files that are equal in size and time are not sent again. A tar stream writes all files.
requirements:
  - OpenSSH on the controller
author: The cluster.compute authors (@cluster-compute)
seealso:
  - module: cluster.compute.session_exec
"""

EXAMPLES = r"""
- name: Copy a directory into the home of every container
  cluster.compute.session_copy:
    name: train
    source: scripts
  delegate_to: localhost

- name: Collect the results in results/main1, results/sub1 and so on
  cluster.compute.session_copy:
    name: train
    direction: from
    source: output
    target: results
  delegate_to: localhost
"""

RETURN = r"""
message: {description: A message with the containers for which the copy failed; empty if it succeeded., type: str, returned: success}
lines:
  description: What was copied, for people.
  type: list
  elements: str
  returned: success
  sample: ["main1: 12 files, 3.4m", "sub1: 12 files, 3.4m"]
containers:
  description: The result of each container, in rank order; empty in check mode.
  type: list
  elements: dict
  returned: success
  contains:
    hostname: {description: The container's hostname., type: str, sample: sub1}
    exit_code: {description: The exit code of the copy; V(124) after O(timeout)., type: int, sample: 0}
    lines: {description: What was copied., type: list, elements: str}
    left_out: {description: "Bytes of RV(containers[].lines) that are not returned.", type: int, sample: 0}
    problem: {description: Why the copy failed; empty if it succeeded., type: str}
duration: {description: Seconds that it took., type: float, returned: when something was copied}
"""
