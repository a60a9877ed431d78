#!/usr/bin/python
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: batch_result
short_description: Wait for the result of a session's batch command
description:
  - Polls every agent of the session until the batch command has ended, or the end of a container decides the result.
  - It runs once on the controller, and opens connections of its own to the agents, with their variables from the inventory.
    It tolerates an agent that does not answer for some minutes.
options:
  since:
    description:
      - RV(cluster.compute.batch#module:since) of the start of the command. What C(main1) has written before is not shown.
    type: str
    default: ""
extends_documentation_fragment:
  - cluster.compute.plan
  - cluster.compute.attributes
  - cluster.compute.attributes.action
  - cluster.compute.attributes.actiongroup_compute
attributes:
  check_mode:
    support: none
  diff_mode:
    support: none
  idempotent:
    support: full
author:
  - The cluster.compute authors (@cluster-compute)
seealso:
  - module: cluster.compute.batch_info
"""

EXAMPLES = r"""
- name: Wait for the batch command
  cluster.compute.batch_result:
    plan: "{{ scheduled.plan }}"
  run_once: true
  register: batch
"""

RETURN = r"""
result:
  description: V(SUCCESS) or V(FAILURE).
  type: str
  returned: success
reason:
  description: How the command or the containers ended.
  type: str
  returned: success
terminate:
  description: Whether the session must be terminated now.
  type: bool
  returned: success
duration:
  description: Seconds that the wait took.
  type: float
  returned: success
"""

from ansible.module_utils.basic import AnsibleModule


def main() -> None:
    """The action plugin does the work; this file documents it."""
    module = AnsibleModule(
        argument_spec={"plan": {"type": "dict", "required": True}, "since": {"type": "str", "default": ""}},
        supports_check_mode=False,
    )
    module.fail_json(msg="cluster.compute.batch_result runs on the controller: call it in a task, by its full name.")


if __name__ == "__main__":
    main()
