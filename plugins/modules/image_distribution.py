#!/usr/bin/python
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: image_distribution
short_description: Distribute one image to all agents that need it
description:
  - Decides on the controller which agents pull an image and which get a copy of it, and carries the copy's archive from one
    agent to the others, so that all agents have the same image.
  - The task file C(distribute.yml) of the role P(cluster.compute.image#role) runs all steps in order. See C(docs/images.md).
options:
  step:
    description:
      - V(plan_pulls) decides which agents pull the image, from what all agents have. Runs once.
      - V(plan_copies) decides which agent's image is used and which agents get a copy of it, after the pulls. If no agent has
        the image, the image of the controller's own Docker Engine is used. Runs once.
      - V(fetch) brings an archive of the image from the agent of the task to the controller. Runs once.
      - V(deliver) carries the archive to the agent of the task and loads the image there.
      - V(clean_up) removes the archive from the controller. Runs once.
    type: str
    choices: [plan_pulls, plan_copies, fetch, deliver, clean_up]
    required: true
  name:
    description:
      - The image's reference. Required for every step but V(clean_up).
    type: str
  agents:
    description:
      - The agents that need the image, in rank order. Required for O(step=plan_pulls) and O(step=plan_copies).
    type: list
    elements: str
  asked:
    description:
      - The hosts of the play that reported their image. Required for O(step=plan_pulls) and O(step=plan_copies).
    type: list
    elements: str
  info_variable:
    description:
      - The name of the variable in which these hosts have registered the result of M(cluster.compute.image_info).
    type: str
    default: __image_info
  pulled_variable:
    description:
      - The name of the variable in which the agents that pull have registered the result of M(cluster.compute.image).
    type: str
    default: __image_pulled
  pull:
    description:
      - V(missing) pulls on agents whose image differs from that of the first agent in O(agents) that has the image.
      - V(always) pulls on all agents. V(never) only copies.
    type: str
    choices: [missing, always, never]
    default: missing
  other_images:
    description:
      - For O(step=plan_copies), the images of further hosts that can be copied from, each as M(cluster.compute.image_info)
        returns it.
    type: list
    elements: dict
    default: []
  pulls:
    description:
      - For O(step=plan_copies), the result of O(step=plan_pulls).
    type: dict
    suboptions:
      agents:
        description: The agents that pull the image.
        type: list
        elements: str
      begun:
        description: When the pulls began, in seconds since the epoch.
        type: float
  variable:
    description:
      - The variable that an error names as the source of O(name).
    type: str
    default: session_image
  id:
    description:
      - The image's ID, for O(step=fetch) and O(step=deliver).
    type: str
  content:
    description:
      - The digest of the image's layers and configuration, for O(step=deliver).
    type: str
  size:
    description:
      - The image's size in bytes, for O(step=fetch). The controller and the agent must have as much space.
    type: int
  agent:
    description:
      - The name of the task's agent, for O(step=fetch) and O(step=deliver).
    type: str
  path:
    description:
      - The archive on the controller, for O(step=deliver) and O(step=clean_up).
    type: path
extends_documentation_fragment:
  - cluster.compute.engine
  - cluster.compute.attributes
  - cluster.compute.attributes.action
  - cluster.compute.attributes.actiongroup_compute
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
  idempotent:
    support: partial
    details:
      - O(step=fetch) makes a new archive in each call. It lies in the temporary folder of the run, which Ansible removes.
author:
  - The cluster.compute authors (@cluster-compute)
seealso:
  - module: cluster.compute.image
  - module: cluster.compute.image_info
"""

EXAMPLES = r"""
- name: Get the image of each agent
  cluster.compute.image_info:
    name: registry.example.org/team/train:2
    agent: "{{ inventory_hostname }}"
  register: train_image

- name: Decide which agents pull the image
  cluster.compute.image_distribution:
    step: plan_pulls
    name: registry.example.org/team/train:2
    agents: "{{ ansible_play_hosts }}"
    asked: "{{ ansible_play_hosts }}"
    info_variable: train_image
  register: train_pulls
  run_once: true
"""

RETURN = r"""
agents:
  description: The agents that pull the image, or that get a copy of it.
  returned: for O(step=plan_pulls) and O(step=plan_copies)
  type: list
  elements: str
  sample: [agent2]
source:
  description: The agent whose image is used.
  returned: for O(step=plan_copies)
  type: str
  sample: agent1
id:
  description: The ID that the image must have; empty if any image of the name is accepted.
  returned: for O(step=plan_pulls) and O(step=plan_copies)
  type: str
content:
  description: The digest of that image's layers and configuration.
  returned: for O(step=plan_pulls) and O(step=plan_copies)
  type: str
digests:
  description: The digests that registries have for that image.
  returned: for O(step=plan_pulls)
  type: list
  elements: str
size:
  description: The size of that image in bytes.
  returned: for O(step=plan_copies)
  type: int
begun:
  description: When the pulls begin, in seconds since the epoch.
  returned: for O(step=plan_pulls)
  type: float
message:
  description: The pulls and copies in one line; empty if all agents have the image.
  returned: for O(step=plan_copies)
  type: str
  sample: "Image train:2: pulled on agent1, agent2 in 8.1 s"
path:
  description: The archive on the controller; empty in check mode.
  returned: for O(step=fetch)
  type: str
image:
  description: The agent's image after the call, as M(cluster.compute.image_info) returns it.
  returned: for O(step=deliver), but not in check mode
  type: dict
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._module import engine_options

ARGUMENT_SPEC = {
    "step": {
        "type": "str",
        "choices": ["plan_pulls", "plan_copies", "fetch", "deliver", "clean_up"],
        "required": True,
    },
    "name": {"type": "str"},
    "agents": {"type": "list", "elements": "str"},
    "asked": {"type": "list", "elements": "str"},
    "info_variable": {"type": "str", "default": "__image_info"},
    "pulled_variable": {"type": "str", "default": "__image_pulled"},
    "pull": {"type": "str", "choices": ["missing", "always", "never"], "default": "missing"},
    "other_images": {"type": "list", "elements": "dict", "default": []},
    "pulls": {
        "type": "dict",
        "options": {"agents": {"type": "list", "elements": "str"}, "begun": {"type": "float"}},
    },
    "variable": {"type": "str", "default": "session_image"},
    "id": {"type": "str"},
    "content": {"type": "str"},
    "size": {"type": "int"},
    "agent": {"type": "str"},
    "path": {"type": "path"},
    **engine_options(),
}

RULES = {
    "supports_check_mode": True,
    "required_if": [
        ("step", "plan_pulls", ["name", "agents", "asked"]),
        ("step", "plan_copies", ["name", "agents", "asked", "pulls"]),
        ("step", "fetch", ["name", "id", "size", "agent"]),
        ("step", "deliver", ["name", "id", "content", "agent", "path"]),
    ],
}


def main() -> None:
    """The action plugin does all the work: this file holds its documentation and the specification of its options."""
    module = AnsibleModule(argument_spec=ARGUMENT_SPEC, **RULES)
    module.fail_json(
        msg="cluster.compute.image_distribution runs on the controller: use it in a task, by its full name."
    )


if __name__ == "__main__":
    main()
