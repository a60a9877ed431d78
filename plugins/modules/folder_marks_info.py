#!/usr/bin/python
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: folder_marks_info
short_description: Check that an agent sees the same data folders as another agent
description:
  - Looks for the marks that M(cluster.compute.folder_marks) wrote on another agent. Fails if a folder on this host is a different one.
options:
  marks:
    description:
      - What M(cluster.compute.folder_marks) returned on the other agent.
    type: dict
    required: true
  token:
    description:
      - A string that distinguishes these marks from all others, such as the launch of the plan.
    type: str
    required: true
  agent:
    description:
      - The name of this host in the plan.
    type: str
    required: true
  patience:
    description:
      - Seconds that a mark may take to appear.
    type: float
    default: 5
extends_documentation_fragment:
  - cluster.compute.attributes.info
  - cluster.compute.attributes.action
  - cluster.compute.attributes.actiongroup_compute
attributes:
  check_mode:
    support: full
  diff_mode:
    support: N/A
  idempotent:
    support: full
author:
  - The cluster.compute authors (@cluster-compute)
seealso:
  - module: cluster.compute.folder_marks
"""

EXAMPLES = r"""
- name: Check that this host has the folder that agent1 marked
  cluster.compute.folder_marks_info:
    marks:
      /data:
        agent: agent1
        written: true
    token: 0b9e2ad4
    agent: "{{ inventory_hostname }}"
"""

RETURN = r"""
folders:
  description: The folders that are the same on both agents.
  returned: success
  type: list
  elements: str
  sample: [/data]
duration:
  description: Seconds that the call took.
  returned: success
  type: float
  sample: 0.12
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._agents.shared_folders import find_marks
from ..module_utils._core.documents import Json
from ..module_utils._module import run

ARGUMENT_SPEC = {
    "marks": {"type": "dict", "required": True},
    # It names a file that exists for a moment; it is not secret.
    "token": {"type": "str", "required": True, "no_log": False},
    "agent": {"type": "str", "required": True},
    "patience": {"type": "float", "default": 5},
}

RULES = {"supports_check_mode": True}


def work(params: Json, check_mode: bool) -> Json:
    find_marks(params["marks"], params["token"], params["agent"], params["patience"])
    return {"folders": sorted(params["marks"])}


def main() -> None:
    run(AnsibleModule(argument_spec=ARGUMENT_SPEC, **RULES), work)


if __name__ == "__main__":
    main()
