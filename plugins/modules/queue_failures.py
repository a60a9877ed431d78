#!/usr/bin/python
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: queue_failures
short_description: Collect the failures of a pass over the queue
description:
  - Adds the last failure of the host, C(ansible_failed_result), to the failures before it. A session that fails does not keep
    the others from their turn, so a pass reports all failures at its end.
  - It runs on the controller and touches no host.
options:
  previous:
    description:
      - The failures before this one.
    type: list
    elements: str
    default: []
  failure:
    description:
      - What has failed. If not set, no failure is added.
      - A V(repair) that fails is no failure of the pass. The session runs as before, and the next pass tries again.
    type: str
    choices: [launch, repair, termination, upkeep]
  session:
    description:
      - The name of the session, with O(failure=launch) and O(failure=repair).
    type: str
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
- name: Keep the failure
  cluster.compute.queue_failures:
    previous: "{{ failed.failures | default([]) }}"
    failure: launch
    session: train
  run_once: true
  register: failed
"""

RETURN = r"""
failures:
  description: A sentence for each failure, in the order of their occurrence.
  type: list
  elements: str
  returned: success
unrepaired:
  description: The sentence of a repair that failed, with O(failure=repair); empty otherwise.
  type: str
  returned: success
"""

from ansible.module_utils.basic import AnsibleModule

ARGUMENT_SPEC = {
    "previous": {"type": "list", "elements": "str", "default": []},
    "failure": {"type": "str", "choices": ["launch", "repair", "termination", "upkeep"]},
    "session": {"type": "str"},
}


def main() -> None:
    """The action plugin does the work; this file documents it."""
    module = AnsibleModule(
        argument_spec=ARGUMENT_SPEC,
        required_if=[("failure", "launch", ["session"]), ("failure", "repair", ["session"])],
        supports_check_mode=True,
    )
    module.fail_json(msg="cluster.compute.queue_failures runs on the controller: call it in a task, by its full name.")


if __name__ == "__main__":
    main()
