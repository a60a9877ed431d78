#!/usr/bin/python
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: image_load
short_description: Load an image from an archive
description:
  - Loads an image from an archive on the agent into its Docker Engine, as C(docker image load) does.
  - The archive must hold the image that O(id) or O(content) identifies. Only then does the image get its name.
options:
  name:
    description:
      - The reference that the image gets.
    type: str
    required: true
  agent:
    description:
      - The agent's name in the inventory.
    type: str
    default: ""
  path:
    description:
      - The archive, as M(cluster.compute.image_export) writes it.
    type: path
    required: true
  id:
    description:
      - The image's ID.
    type: str
    required: true
  content:
    description:
      - The digest of the image's layers and configuration, as M(cluster.compute.image_info) returns it. Identifies the image
        on engines that compute another ID for it.
    type: str
    default: ""
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
    support: full
author:
  - The cluster.compute authors (@cluster-compute)
seealso:
  - module: cluster.compute.image_export
"""

EXAMPLES = r"""
- name: Load an image from an archive on the agent
  cluster.compute.image_load:
    name: registry.example.org/team/train:2
    agent: "{{ inventory_hostname }}"
    path: /var/tmp/train.tar
    id: sha256:0d33ee4b9ae1d1b1a5bbd2d9c1ee86ca2df1ad5c8aeb6ed4f4a9a86a5a0c8c2a
"""

RETURN = r"""
image:
  description: The agent's image after the call, as M(cluster.compute.image_info) returns it.
  returned: success
  type: dict
  contains:
    agent:
      description: The agent's name.
      returned: always
      type: str
      sample: agent1
    reference:
      description: The reference, as in O(name).
      returned: always
      type: str
      sample: registry.example.org/team/train:2
    present:
      description: Whether the engine has the image.
      returned: always
      type: bool
    id:
      description: The image's ID; empty without an image.
      returned: always
      type: str
      sample: sha256:0d33…
    content:
      description: The digest of the image's layers and configuration.
      returned: always
      type: str
    digests:
      description: The digests that registries have for the image.
      returned: always
      type: list
      elements: str
      sample: ["registry.example.org/team/train@sha256:77af…"]
    size:
      description: The image's size in bytes.
      returned: always
      type: int
      sample: 161061273
    architecture:
      description: The architecture that the image is built for.
      returned: always
      type: str
      sample: x86_64
    host:
      description: The architecture of the agent.
      returned: always
      type: str
      sample: x86_64
    free:
      description: Bytes free for images on the agent; -1 if unknown.
      returned: always
      type: int
    reason:
      description: Always empty; M(cluster.compute.image) returns here why a pull failed.
      returned: always
      type: str
duration:
  description: Seconds that the call took.
  returned: always
  type: float
  sample: 3.2
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._agents.image_distribution import same
from ..module_utils._core.documents import Json
from ..module_utils._docker import images
from ..module_utils._docker.images import ImageEngine
from ..module_utils._module import at_least, engine_options, run

ARGUMENT_SPEC = {
    "name": {"type": "str", "required": True},
    "agent": {"type": "str", "default": ""},
    "path": {"type": "path", "required": True},
    "id": {"type": "str", "required": True},
    "content": {"type": "str", "default": ""},
    **engine_options(),
}

RULES = {"supports_check_mode": True}


def work(params: Json, check_mode: bool) -> Json:
    at_least(params, timeout=1)
    engine = ImageEngine(params["docker_host"], max(params["timeout"], images.STALL), params["agent"])
    before = images.describe(engine, params["name"])
    if same(before, {"present": True, "id": params["id"], "content": params["content"]}):
        return {"changed": False, "image": before}
    return {"changed": True, "image": before if check_mode else images.load(engine, params)}


def main() -> None:
    run(AnsibleModule(argument_spec=ARGUMENT_SPEC, **RULES), work)


if __name__ == "__main__":
    main()
