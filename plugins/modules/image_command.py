#!/usr/bin/python
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: image_command
short_description: Run a program that fills a folder with the files of an image
description:
  - Runs a program on the host, such as C(mmdebstrap) or C(dnf), without a shell.
  - While it runs, the callback P(cluster.compute.progress#callback) shows the bytes of the folder that the program fills.
  - At the deadline, the program and the processes that it has started receive TERM, and after ten seconds KILL.
  - A program that fails, fails the task with the line of its output that names the cause.
options:
  argv:
    description:
      - The program and its arguments.
    type: list
    elements: str
    required: true
  folder:
    description:
      - The folder whose bytes are counted. File systems that are mounted below it do not count.
    type: path
    required: true
  agent:
    description:
      - The host's name in the inventory.
    type: str
    default: ""
  deadline:
    description:
      - Seconds that the program may take.
    type: int
    default: 7200
  progress:
    description:
      - A new file on the host, in which the module counts the bytes of O(folder).
      - The action of this module sets it, in a folder of the user who logs in.
    type: path
extends_documentation_fragment:
  - cluster.compute.attributes
  - cluster.compute.attributes.action
  - cluster.compute.attributes.actiongroup_compute
attributes:
  check_mode:
    support: none
    details:
      - What a program would change is unknown, so the task is skipped.
  diff_mode:
    support: none
  idempotent:
    support: none
    details:
      - The program runs at every call.
author:
  - The cluster.compute authors (@cluster-compute)
seealso:
  - module: cluster.compute.image_build
  - module: ansible.builtin.command
"""

EXAMPLES = r"""
- name: Install the packages of an image into a folder
  cluster.compute.image_command:
    argv: [dnf, --assumeyes, --installroot=/var/lib/build/root, --releasever=9, install, bash]
    folder: /var/lib/build
    agent: "{{ inventory_hostname }}"
  become: true
"""

RETURN = r"""
duration:
  description: Seconds that the call took.
  returned: always
  type: float
  sample: 31.4
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._agents.counted_program import run_program
from ..module_utils._core.documents import Json
from ..module_utils._core.errors import InputError
from ..module_utils._module import at_least, run

ARGUMENT_SPEC = {
    "argv": {"type": "list", "elements": "str", "required": True},
    "folder": {"type": "path", "required": True},
    "agent": {"type": "str", "default": ""},
    "deadline": {"type": "int", "default": 7200},
    "progress": {"type": "path"},
}

RULES = {"supports_check_mode": False}


def work(params: Json, _check_mode: bool) -> Json:
    at_least(params, deadline=1)
    if not params["argv"]:
        raise InputError("argv", params["argv"], "must name a program")
    run_program(params)
    return {"changed": True}


def main() -> None:
    run(AnsibleModule(argument_spec=ARGUMENT_SPEC, **RULES), work)


if __name__ == "__main__":
    main()
