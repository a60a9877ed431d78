#!/usr/bin/python
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: session_failure
short_description: Report why a launch failed
description:
  - Collects the failures of the hosts of a play, and the agents that could not be cleaned up. The role C(session) uses it when
    it undoes a launch.
  - It runs on the controller and connects to no host.
options:
  fail_with:
    description:
      - If set, the task fails with this message. Later tasks do not count that as a failure of a launch.
    type: str
    default: ""
extends_documentation_fragment:
  - cluster.compute.plan
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
  - module: cluster.compute.session
"""

EXAMPLES = r"""
- name: Find out why the launch failed
  cluster.compute.session_failure:
    plan: "{{ scheduled.plan }}"
  run_once: true
  register: failure

- name: Fail on every host
  cluster.compute.session_failure:
    plan: "{{ scheduled.plan }}"
    fail_with: "{{ failure.reason }}"
"""

RETURN = r"""
launch:
  description: The UUID of the launch that failed.
  type: str
  returned: success
  sample: 9b2d7b7e-53c1-4f6f-8e0e-2d6a7a5f1c11
reason:
  description: The failures, and the lost agents, as sentences.
  type: str
  returned: success
is_taken:
  description: Whether something outside of the collection has taken the subnet or a port of the session.
  type: bool
  returned: success
is_lost:
  description: Whether a connection was lost, or a module has ended without a result.
  type: bool
  returned: success
lost_agents:
  description: The agents that did not answer during the launch or its removal.
  type: list
  elements: str
  returned: success
network_patience:
  description: Seconds that the removal of a network may wait for its endpoints.
  type: int
  returned: success
"""

from ansible.module_utils.basic import AnsibleModule


def main() -> None:
    """The action plugin does the work; this file documents it."""
    module = AnsibleModule(
        argument_spec={"plan": {"type": "dict", "required": True}, "fail_with": {"type": "str", "default": ""}},
        supports_check_mode=True,
    )
    module.fail_json(msg="cluster.compute.session_failure runs on the controller: call it in a task, by its full name.")


if __name__ == "__main__":
    main()
