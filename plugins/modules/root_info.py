#!/usr/bin/python
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: root_info
short_description: Find out whether tasks can become root
description:
  - Runs C(id -u) on the host as the task does, with the task's own C(become).
  - A user who cannot become root is a result with C(reason), whatever the become plugin and the connection plugin make of it; the
    task does not fail.
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
  - module: cluster.compute.agent_settings
"""

EXAMPLES = r"""
- name: Find out whether this user can become root
  cluster.compute.root_info:
  become: true
  register: root

- name: Refuse a user who cannot become root
  ansible.builtin.fail:
    msg: "{{ inventory_hostname }}: {{ root.reason }}."
  when: not root.is_root
"""

RETURN = r"""
is_root:
  description: Whether the task runs as root.
  type: bool
  returned: success
reason:
  description: Why it does not, as the become plugin reports it, on one line; empty if it does.
  type: str
  returned: success
  sample: "sudo: a password is required"
"""

from ansible.module_utils.basic import AnsibleModule


def main() -> None:
    """The action plugin does the work; this file documents it."""
    module = AnsibleModule(argument_spec={}, supports_check_mode=True)
    module.fail_json(msg="cluster.compute.root_info starts on the controller: call it in a task, by its full name.")


if __name__ == "__main__":
    main()
