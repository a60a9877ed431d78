# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

DOCUMENTATION = r"""
module: image
short_description: Pull an image from its registry
description:
  - Pulls an image into the Docker Engine of one agent.
  - A failed pull does not fail the module, unless O(pull=always). The result says why it failed, so that the image can be
    copied from another agent.
  - The role P(cluster.compute.image#role) brings one image to many agents.
options:
  state: {description: V(present) pulls the image according to O(pull)., type: str, choices: [present], default: present}
  name:
    description: The image's reference, such as V(registry.example.org/team/train:2) or V(pytorch/pytorch@sha256:…).
    type: str
    required: true
  agent: {description: The agent's name in the inventory., type: str, default: ""}
  pull:
    description:
      - V(missing) pulls if the engine does not have the image.
      - V(always) pulls the newest image, and fails if the registry does not provide it.
      - V(never) does not pull.
    type: str
    choices: [missing, always, never]
    default: missing
  registry:
    description:
      - The registry that O(username) is for, such as V(registry.example.org:5000). No other registry receives the login.
      - If not set, it is the registry of O(name).
    type: str
  username:
    description:
      - The user that logs in to the registry.
      - If not set, the login of the controller's Docker client for that registry is used, and then the agent's own.
    type: str
  password: {description: The password or access token of O(username)., type: str}
  deadline:
    description: Seconds that a pull may take. A pull from a registry that does not answer ends after ten seconds.
    type: int
    default: 1800
extends_documentation_fragment:
  - cluster.compute.engine
  - cluster.compute.attributes.without_diff
author: The cluster.compute authors (@cluster-compute)
"""

EXAMPLES = r"""
- name: Pull an image where it is missing
  cluster.compute.image:
    name: registry.example.org/team/train:2
    agent: "{{ inventory_hostname }}"
    username: alice
    password: "{{ vault_registry_password }}"
  register: pulled
"""

RETURN = r"""
image:
  description: The agent's image after the call, as C(docs/contracts.md) describes it.
  returned: success
  type: dict
  contains:
    agent: {description: The agent's name., type: str, sample: agent1}
    reference: {description: "The reference, as in O(name).", type: str, sample: registry.example.org/team/train:2}
    present: {description: Whether the engine has the image., type: bool}
    id: {description: The image's ID; empty without an image., type: str, sample: sha256:0d33…}
    content: {description: The digest of the image's layers and configuration., type: str}
    digests:
      description: The digests that registries have for the image.
      type: list
      elements: str
      sample: ["registry.example.org/team/train@sha256:77af…"]
    size: {description: The image's size in bytes., type: int, sample: 161061273}
    architecture: {description: The architecture that the image is built for., type: str, sample: x86_64}
    host: {description: The architecture of the agent., type: str, sample: x86_64}
    free: {description: Bytes free for images on the agent; -1 if unknown., type: int}
    reason: {description: "Why the image was not pulled; empty after a successful pull, and if none was attempted.", type: str}
duration: {description: Seconds that the call took., type: float, returned: always, sample: 8.1}
"""
