#!/usr/bin/python
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: folders
short_description: Prove that every agent sees the same data folders
description:
  - A marker is written on one agent and looked for on the others, before anything of the session is made.
  - A folder that root cannot write into is compared by its inode and the time of its last change, which a network file system
    shows alike on every host.
options:
  state:
    description:
      - V(marked) writes the markers, V(found) looks for them, V(cleared) removes them.
    type: str
    choices: [marked, found, cleared]
    required: true
  folders:
    description:
      - The folders, as absolute paths.
    type: list
    elements: str
    default: []
  marks:
    description:
      - What O(state=marked) returned, for O(state=found).
    type: dict
    default: {}
  token:
    description:
      - What tells this proof's markers from any other's, such as the launch of the plan.
    type: str
    required: true
  agent:
    description:
      - The name that the plan has for this host.
    type: str
    required: true
  uid:
    description:
      - With O(state=marked), the user who is to write there; a folder that it cannot write into is warned of.
    type: int
    default: 1000
  gid:
    description:
      - The group of that user.
    type: int
    default: 1000
  writable:
    description:
      - The folders that the session is to write into.
    type: list
    elements: str
    default: []
  patience:
    description:
      - Seconds that a marker may take to show, for O(state=found).
    type: float
    default: 5
extends_documentation_fragment:
  - cluster.compute.attributes
  - cluster.compute.attributes.action
  - cluster.compute.attributes.actiongroup_compute
attributes:
  check_mode:
    support: none
    details: Nothing is proved without writing.
  diff_mode:
    support: none
  idempotent:
    support: N/A
    details: The markers are gone when the proof is done.
author:
  - The cluster.compute authors (@cluster-compute)
"""

EXAMPLES = r"""
- name: Write the markers on one agent
  cluster.compute.folders:
    state: marked
    folders: [/data]
    token: 0b9e2ad4
    agent: agent1
  register: marked

- name: Look for them on another
  cluster.compute.folders:
    state: found
    marks: "{{ marked.marks }}"
    token: 0b9e2ad4
    agent: agent2
"""

RETURN = r"""
marks:
  description: By folder, how it is recognised.
  type: dict
  returned: with O(state=marked)
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.cluster.compute.plugins.module_utils._agents.shared_folders import (
    clear_marks,
    find_marks,
    leave_marks,
    unwritable,
)
from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json
from ansible_collections.cluster.compute.plugins.module_utils._module import run

ARGUMENT_SPEC = {
    "state": {"type": "str", "choices": ["marked", "found", "cleared"], "required": True},
    "folders": {"type": "list", "elements": "str", "default": []},
    "marks": {"type": "dict", "default": {}},
    # It names a file that is gone a moment later; it is no secret.
    "token": {"type": "str", "required": True, "no_log": False},
    "agent": {"type": "str", "required": True},
    "uid": {"type": "int", "default": 1000},
    "gid": {"type": "int", "default": 1000},
    "writable": {"type": "list", "elements": "str", "default": []},
    "patience": {"type": "float", "default": 5},
}

RULES = {"supports_check_mode": False}


def work(params: Json, check_mode: bool) -> Json:
    if params["state"] == "marked":
        marks = leave_marks(params["folders"], params["token"])
        warnings = [
            "The session's user (uid %d) cannot write to %s on %s: set session_user to the uid of its owner, or mount it "
            "with mode ro." % (params["uid"], folder, params["agent"])
            for folder in unwritable(params["writable"], params["uid"], params["gid"])
        ]
        return {
            "marks": {folder: dict(mark, agent=params["agent"]) for folder, mark in marks.items()},
            "warnings": warnings,
        }
    if params["state"] == "found":
        find_marks(params["marks"], params["token"], params["agent"], params["patience"])
    else:
        clear_marks(params["folders"], params["token"])
    return {"changed": False}


def main() -> None:
    run(AnsibleModule(argument_spec=ARGUMENT_SPEC, **RULES), work)


if __name__ == "__main__":
    main()
