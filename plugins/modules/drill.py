#!/usr/bin/python
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: drill
short_description: Break throw-away sessions in many ways, and check that they are repaired and leave nothing
description:
  - Launches small sessions of an owner of its own with the playbooks of the collection, on the inventory of the current playbook.
    Breaks each of them in another way, repairs or ends it, and checks that nothing of it is left on any agent and on the controller.
  - Compares the containers of sessions of other owners before and after the drill.
  - A fault that stops sessions of others is not run unless O(disruptive) is true.
  - Variables of the command line whose names begin with C(session_) apply to the sessions of the drill.
extends_documentation_fragment:
  - cluster.compute.attributes
  - cluster.compute.attributes.action
  - cluster.compute.attributes.actiongroup_compute
  - cluster.compute.options.drill
attributes:
  check_mode:
    support: full
    details: Lists the faults and runs none.
  diff_mode:
    support: none
  idempotent:
    support: none
    details: Every run launches sessions and ends them.
author:
  - The cluster.compute authors (@cluster-compute)
notes:
  - Passwords that Ansible asks for are not passed on to the playbooks of the drill; files with passwords are.
seealso:
  - module: cluster.compute.agent_diagnosis
"""

EXAMPLES = r"""
- name: Break throw-away sessions
  cluster.compute.drill:
    faults: [sub killed, image gone]
  register: drilled
  run_once: true
"""

RETURN = r"""
outcomes:
  description: The verdict of each fault.
  returned: success
  type: list
  elements: dict
  contains:
    fault:
      description: The name of the fault.
      returned: always
      type: str
    verdict:
      description: C(ok), C(failed) or C(not run).
      returned: always
      type: str
    message:
      description: What a user reads when the fault strikes, or why the fault failed or was not run.
      returned: always
      type: str
    seconds:
      description: The time from the launch to the check of the end.
      returned: always
      type: float
times:
  description:
    - The C(count), and the percentiles C(p50) and C(p95) in seconds, of the successful playbooks C(launch), C(repair) and C(end).
  returned: success
  type: dict
others:
  description: The C(count) of containers of other owners before the drill, and the names of those that C(changed) meanwhile.
  returned: success
  type: dict
passed:
  description: Whether no fault failed and no container of others changed.
  returned: success
  type: bool
message:
  description: The drill in one message.
  returned: success
  type: str
lines:
  description: The drill as a table for people.
  returned: success
  type: list
  elements: str
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._planning.options import OPTIONS


def main() -> None:
    """The action plugin does the work; this file documents it."""
    module = AnsibleModule(
        argument_spec=OPTIONS["drill"].argument_spec(),
        supports_check_mode=True,
    )
    module.fail_json(msg="cluster.compute.drill starts on the controller: call it in a task, by its full name.")


if __name__ == "__main__":
    main()
