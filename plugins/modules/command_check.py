#!/usr/bin/python
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: command_check
short_description: Refuse misspelled variables and an inventory without agents
description:
  - The first task of each playbook of the collection. It touches no host.
  - Refuses names of variables that begin like those of the collection and that the collection does not have, with the nearest
    name. It reads the names of the command line (C(-e)), and those that the inventory gives the agents, the head and the host of the
    task.
  - On the command line, the prefixes C(session_), C(sessions_), C(agent_), C(check_), C(drill_), C(environments), C(image_),
    C(policy_), C(timer_) and C(usage_) belong to the collection. In an inventory, other software may have variables with all of these
    prefixes but the first two, so that only a name that resembles one of the collection is refused there.
  - The variable C(session_ignored_variables) has names that are not refused.
options:
  agents:
    description:
      - Whether the inventory must have a host in the group C(agents).
    type: bool
    default: true
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
  - module: cluster.compute.session
"""

EXAMPLES = r"""
- name: Check the inventory and the names of variables
  cluster.compute.command_check:
"""

RETURN = r"""# """

from ansible.module_utils.basic import AnsibleModule


def main() -> None:
    """The action plugin does the work; this file documents it."""
    module = AnsibleModule(argument_spec={"agents": {"type": "bool", "default": True}}, supports_check_mode=True)
    module.fail_json(msg="cluster.compute.command_check runs on the controller: call it in a task, by its full name.")


if __name__ == "__main__":
    main()
