#!/usr/bin/python
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: usage_info
short_description: Show what owners have used, by month
description:
  - Reads the ledger of the session store on the head. A session counts with the resources of all of its containers, from its
    placement to its end, whether it uses them or not.
  - It runs once for all hosts of the play, on the controller.
options:
  owner:
    description:
      - Show this owner only. If not set, all owners and groups of owners.
    type: str
extends_documentation_fragment:
  - cluster.compute.attributes.info
  - cluster.compute.attributes.action
  - cluster.compute.attributes.actiongroup_compute
  - cluster.compute.store
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
  - module: cluster.compute.policy_info
"""

EXAMPLES = r"""
- name: Show what owners have used
  cluster.compute.usage_info:
  register: used
"""

RETURN = r"""
usage:
  description: An entry for each month and owner, and for each month and group of owners of the policy, oldest first.
  type: list
  elements: dict
  returned: success
  contains:
    month:
      description: The month in UTC.
      type: str
      sample: 2026-11
    kind:
      description: V(owner) or V(group).
      type: str
    name:
      description: The name.
      type: str
    sessions:
      description: Number of sessions that held resources in the month.
      type: int
    cpu_hours:
      description: CPUs times hours.
      type: float
    memory_gib_hours:
      description: GiB of memory times hours.
      type: float
    gpu_hours:
      description: GPUs times hours. A part of a GPU counts as this part.
      type: float
lines:
  description: The same as a table, or in the format of the variable C(usage_format); empty if the variable C(usage_file) names a file.
  type: list
  elements: str
  returned: success
csv:
  description: The same as CSV, with a header.
  type: str
  returned: success
"""

import time

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._core.documents import Json
from ..module_utils._head.policy_file import read_policy
from ..module_utils._head.state_folder import state_dir
from ..module_utils._head.store import Store
from ..module_utils._module import run, store_options
from ..module_utils._planning.fair_share import usage
from ..module_utils._text.table import usage_csv, usage_lines

ARGUMENT_SPEC = {
    "owner": {"type": "str"},
    **store_options(),
}

RULES = {"supports_check_mode": True}


def work(params: Json, check_mode: bool) -> Json:
    folder = state_dir(params["state_dir"])
    groups = {name: group.owners for name, group in read_policy(folder).groups.items()}
    store = Store(folder, read_only=True)
    try:
        with store.transaction(keep=False):
            found = usage(store.holdings(), groups, time.time())
    finally:
        store.close()
    if params["owner"]:
        found = [entry for entry in found if (entry["kind"], entry["name"]) == ("owner", params["owner"])]
    return {"changed": False, "usage": found, "lines": usage_lines(found), "csv": usage_csv(found)}


def main() -> None:
    run(AnsibleModule(argument_spec=ARGUMENT_SPEC, **RULES), work)


if __name__ == "__main__":
    main()
