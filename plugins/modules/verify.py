#!/usr/bin/python
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: verify
short_description: Verify that every container of a session answers by strict SSH
description:
  - Logs in to C(main1) from the controller through its published port, with the key of the session's user, and connects to
    every other container from there. In a session of more than 17 containers, C(main1) connects to one container of each group of up
    to 16 on an agent, which connects to the rest of its group.
  - A container opens as many connections at the same time as its CPUs and memory allow.
  - Every connection uses strict host key checking and shows no prompt. Nothing is changed.
  - Waits for containers that are still starting, until O(timeout). A wrong key or a refused login fails at once.
  - Runs on the controller, on whichever host the task is.
options:
  timeout:
    description:
      - Seconds for all connections together. Four containers add a second.
    type: int
    default: 60
extends_documentation_fragment:
  - cluster.compute.plan
  - cluster.compute.plan.reach
  - cluster.compute.attributes
  - cluster.compute.attributes.action
  - cluster.compute.attributes.actiongroup_compute
attributes:
  check_mode:
    support: none
    details:
      - Skipped, because check mode starts nothing that could be verified.
  diff_mode:
    support: none
    details:
      - This module changes nothing, so there is no difference to show.
  idempotent:
    support: full
requirements:
  - paramiko on the controller
author:
  - The cluster.compute authors (@cluster-compute)
seealso:
  - module: cluster.compute.ssh
"""

EXAMPLES = r"""
- name: Verify that every container answers
  cluster.compute.verify:
    plan: "{{ scheduled.plan }}"
  run_once: true
"""

RETURN = r"""
reached:
  description: Hostnames that answered, in rank order.
  type: list
  elements: str
  returned: success
  sample: [main1, sub1, sub2]
duration:
  description: Seconds that the call took.
  type: float
  returned: success
"""

from ansible.module_utils.basic import AnsibleModule


def main() -> None:
    """The action plugin does the work; this file documents it."""
    module = AnsibleModule(
        argument_spec={
            "plan": {"type": "dict", "required": True},
            "artifacts": {"type": "path"},
            "address": {"type": "str"},
            "timeout": {"type": "int", "default": 60},
        },
        supports_check_mode=False,
    )
    module.fail_json(msg="cluster.compute.verify runs on the controller: call it in a task, by its full name.")


if __name__ == "__main__":
    main()
