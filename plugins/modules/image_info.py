#!/usr/bin/python
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: image_info
short_description: Get an image of an agent
description:
  - Returns whether the Docker Engine of an agent has an image, and what identifies that image.
options:
  name:
    description:
      - The image's reference, such as V(registry.example.org/team/train:2) or V(pytorch/pytorch@sha256:…).
    type: str
    required: true
  agent:
    description:
      - The agent's name in the inventory.
    type: str
    default: ""
extends_documentation_fragment:
  - cluster.compute.engine
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
  - module: cluster.compute.image
"""

EXAMPLES = r"""
- name: Get the reference image
  cluster.compute.image_info:
    name: cluster-compute/reference:1
    agent: "{{ inventory_hostname }}"
  register: reference
"""

RETURN = r"""
image:
  description: The agent's image of this name.
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
  sample: 0.02
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._core.documents import Json
from ..module_utils._docker import images
from ..module_utils._docker.client import Engine
from ..module_utils._module import at_least, engine_options, run

ARGUMENT_SPEC = {
    "name": {"type": "str", "required": True},
    "agent": {"type": "str", "default": ""},
    **engine_options(),
}

RULES = {"supports_check_mode": True}


def work(params: Json, check_mode: bool) -> Json:
    at_least(params, timeout=1)
    engine = Engine(params["docker_host"], params["timeout"], params["agent"])
    return {"image": images.describe(engine, params["name"])}


def main() -> None:
    run(AnsibleModule(argument_spec=ARGUMENT_SPEC, **RULES), work)


if __name__ == "__main__":
    main()
