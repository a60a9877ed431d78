# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: image_distribution
short_description: Give all agents that need an image the same one
description:
  - Pulls the image on all agents that need it, at the same time. Then copies it from one agent to those that could not pull it, or
    that have another image of the same name. See C(docs/images.md).
  - If no agent has the image, the image of the controller's own Docker Engine is copied.
  - It runs once for all hosts of the play, on the controller, which carries the archive of a copy.
options:
  name:
    description:
      - The image, by tag or digest.
    type: str
    required: true
  needing:
    description:
      - The agents that need the image. The image of the first of them that has one is used.
    type: list
    elements: str
    required: true
  asked:
    description:
      - The agents whose images can be copied. They include those of O(needing).
    type: list
    elements: str
    required: true
  elsewhere:
    description:
      - The images of further hosts that can be copied from, each as C(docs/contracts.md) describes it.
    type: list
    elements: dict
    default: []
  pull:
    description:
      - V(missing) pulls on agents whose image differs from that of the first agent in O(needing) that has the image.
      - V(always) pulls on all agents. V(never) only copies.
    type: str
    choices: [missing, always, never]
    default: missing
  deadline:
    description:
      - Seconds that a pull may take.
    type: int
    default: 1800
  registry:
    description:
      - The registry that O(username) is for. If empty, the registry of O(name).
    type: str
    default: ''
  username:
    description:
      - The user that logs in to the registry. If empty, the login of the controller's Docker client is used.
    type: str
    default: ''
  password:
    description:
      - The password or access token of O(username).
    type: str
    default: ''
  variable:
    description:
      - The variable that an error names as the source of O(name).
    type: str
    default: name
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
  - module: cluster.compute.image
"""

EXAMPLES = r"""
- name: Distribute an image
  hosts: agents
  gather_facts: false
  tasks:
    - name: Pull the image, or copy it from an agent that has it
      cluster.compute.image_distribution:
        name: registry.example.org/team/train:2
        needing: "{{ ansible_play_hosts }}"
        asked: "{{ ansible_play_hosts }}"
"""

RETURN = r"""
lines:
  description:
    - Who has pulled the image and who got a copy, as lines. The callback P(cluster.compute.progress#callback) has shown them already.
  type: list
  elements: str
  returned: always
  sample: ["Image train:2: pulled on agent1; copied from agent1 to agent2, in 12.1 s"]
"""

from ansible.module_utils.basic import AnsibleModule

ARGUMENT_SPEC = {
    "name": {"type": "str", "required": True},
    "needing": {"type": "list", "elements": "str", "required": True},
    "asked": {"type": "list", "elements": "str", "required": True},
    "elsewhere": {"type": "list", "elements": "dict", "default": []},
    "pull": {"type": "str", "choices": ["missing", "always", "never"], "default": "missing"},
    "deadline": {"type": "int", "default": 1800},
    "registry": {"type": "str", "default": ""},
    "username": {"type": "str", "default": ""},
    "password": {"type": "str", "default": "", "no_log": True},
    "variable": {"type": "str", "default": "name"},
}


def main() -> None:
    """The action plugin does the work; this file documents it."""
    module = AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True)
    module.fail_json(
        msg="cluster.compute.image_distribution runs on the controller: call it in a task, by its full name."
    )


if __name__ == "__main__":
    main()
