#!/usr/bin/python
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: folder_marks
short_description: Mark data folders so that other agents can recognize them
description:
  - Writes a mark into each folder on one agent. M(cluster.compute.folder_marks_info) looks for it on the others.
  - A folder into which root cannot write is recognized by its inode and the time of its last change, which a network file system
    shows alike on every host.
options:
  state:
    description:
      - V(present) writes the marks. V(absent) removes them.
    type: str
    choices: [present, absent]
    default: present
  folders:
    description:
      - The folders, as absolute paths.
    type: list
    elements: str
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
  uid:
    description:
      - The ID of the session's user. The module warns of each of O(writable) into which this user cannot write.
    type: int
    default: 1000
  gid:
    description:
      - The ID of that user's group.
    type: int
    default: 1000
  writable:
    description:
      - The folders into which the session writes.
    type: list
    elements: str
    default: []
  permitted:
    description:
      - The folders below which the policy of the site permits data folders. Below them the module follows no symbolic link.
    type: list
    elements: str
    default: []
extends_documentation_fragment:
  - cluster.compute.attributes
  - cluster.compute.attributes.action
  - cluster.compute.attributes.actiongroup_compute
attributes:
  check_mode:
    support: none
    details: Folders cannot be compared without a mark.
  diff_mode:
    support: none
  idempotent:
    support: full
author:
  - The cluster.compute authors (@cluster-compute)
seealso:
  - module: cluster.compute.folder_marks_info
"""

EXAMPLES = r"""
- name: Mark the folder
  cluster.compute.folder_marks:
    folders: [/data]
    token: 0b9e2ad4
    agent: agent1

- name: Remove the mark
  cluster.compute.folder_marks:
    state: absent
    folders: [/data]
    token: 0b9e2ad4
    agent: agent1
"""

RETURN = r"""
marks:
  description: For each folder, how other agents recognize it.
  returned: with O(state=present)
  type: dict
  sample: {/data: {agent: agent1, written: true}}
duration:
  description: Seconds that the call took.
  returned: success
  type: float
  sample: 0.12
"""

from typing import List

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._agents.shared_folders import read_only, remove_marks, unwritable, write_marks
from ..module_utils._core.documents import Json
from ..module_utils._module import run

ARGUMENT_SPEC = {
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "folders": {"type": "list", "elements": "str", "required": True},
    # It names a file that exists for a moment; it is not secret.
    "token": {"type": "str", "required": True, "no_log": False},
    "agent": {"type": "str", "required": True},
    "uid": {"type": "int", "default": 1000},
    "gid": {"type": "int", "default": 1000},
    "writable": {"type": "list", "elements": "str", "default": []},
    "permitted": {"type": "list", "elements": "str", "default": []},
}

RULES = {"supports_check_mode": False}

_READ_ONLY = (
    "No container can write to %s: %s has mounted it read-only; mount it there for writing, or mount it with mode ro."
)
_REFUSED = "The session's user (uid %d) cannot write to %s on %s: set session_user to the uid of its owner, or mount it with mode ro."


def work(params: Json, check_mode: bool) -> Json:
    if params["state"] == "absent":
        removed = remove_marks(params["folders"], params["token"], params["agent"], permitted=params["permitted"])
        return {"changed": bool(removed)}
    marks, changed = write_marks(params["folders"], params["token"], params["agent"], permitted=params["permitted"])
    named = {folder: {**mark, "agent": params["agent"]} for folder, mark in marks.items()}
    return {"changed": changed, "marks": named, "warnings": _warnings(params)}


def _warnings(params: Json) -> List[str]:
    """Why the session's user cannot write to folders that it mounts for writing."""
    agent, uid = params["agent"], params["uid"]
    fixed = read_only(params["writable"], agent)
    others = [folder for folder in params["writable"] if folder not in fixed]
    refused = unwritable(others, uid, params["gid"], agent)
    return [
        *[_READ_ONLY % (folder, agent) for folder in fixed],
        *[_REFUSED % (uid, folder, agent) for folder in refused],
    ]


def main() -> None:
    run(AnsibleModule(argument_spec=ARGUMENT_SPEC, **RULES), work)


if __name__ == "__main__":
    main()
