#!/usr/bin/python
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: image
short_description: Pull an image from its registry
description:
  - Pulls an image into the Docker Engine of one agent.
  - A failed pull does not fail the module, unless O(pull=always). The result says why it failed, so that the image can be
    copied from another agent.
  - The role P(cluster.compute.image#role) brings one image to many agents.
options:
  state:
    description:
      - V(present) pulls the image according to O(pull).
    type: str
    choices: [present]
    default: present
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
  pull:
    description:
      - V(missing) pulls if the engine does not have the image, or has another image than O(id) or O(content) under this name.
      - V(always) pulls the newest image, and fails if the registry does not provide it.
      - V(never) does not pull.
    type: str
    choices: [missing, always, never]
    default: missing
  id:
    description:
      - The ID that the image must have. If empty, any image of this name is accepted.
    type: str
    default: ""
  content:
    description:
      - The digest of the image's layers and configuration, as M(cluster.compute.image_info) returns it. Identifies the image
        on engines that compute another ID for it.
    type: str
    default: ""
  digests:
    description:
      - The repository digests of the image O(id). The digest for the image's repository is pulled instead of the tag.
    type: list
    elements: str
    default: []
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
  password:
    description:
      - The password or access token of O(username).
    type: str
  identity_token:
    description:
      - The identity token for the registry, used instead of O(username) and O(password).
    type: str
  deadline:
    description:
      - Seconds that a pull may take. A pull from a registry that does not answer ends after ten seconds.
    type: int
    default: 1800
  progress:
    description:
      - A new file on the agent, in which the module counts during a pull the bytes that have arrived and all that it knows of.
      - The action of this module sets it, in a folder of the user who logs in.
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
    support: full
author:
  - The cluster.compute authors (@cluster-compute)
seealso:
  - module: cluster.compute.image_info
  - module: cluster.compute.image_export
  - module: cluster.compute.image_load
  - module: cluster.compute.image_distribution
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
      description: Why the image was not pulled; empty after a successful pull, and if none was attempted.
      returned: always
      type: str
duration:
  description: Seconds that the call took.
  returned: always
  type: float
  sample: 8.1
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._agents.image_distribution import ALWAYS, MISSING, NEVER, same
from ..module_utils._core.documents import Json
from ..module_utils._core.errors import EngineError
from ..module_utils._core.waiting import deadline_in
from ..module_utils._docker import images
from ..module_utils._docker.images import ImageEngine
from ..module_utils._module import at_least, engine_options, run

ARGUMENT_SPEC = {
    "state": {"type": "str", "choices": ["present"], "default": "present"},
    "name": {"type": "str", "required": True},
    "agent": {"type": "str", "default": ""},
    "pull": {"type": "str", "choices": ["missing", "always", "never"], "default": "missing"},
    "id": {"type": "str", "default": ""},
    "content": {"type": "str", "default": ""},
    "digests": {"type": "list", "elements": "str", "default": []},
    "registry": {"type": "str"},
    "username": {"type": "str"},
    "password": {"type": "str", "no_log": True},
    "identity_token": {"type": "str", "no_log": True},
    "deadline": {"type": "int", "default": 1800},
    "progress": {"type": "path"},
    **engine_options(),
}

RULES = {"supports_check_mode": True}


def work(params: Json, check_mode: bool) -> Json:
    at_least(params, deadline=1, timeout=1)
    engine = ImageEngine(params["docker_host"], params["timeout"], params["agent"])
    before = images.describe(engine, params["name"])
    wanted = {"present": True, "id": params["id"], "content": params["content"]}
    fits = before["present"] and (not params["id"] or same(before, wanted))
    if params["pull"] == NEVER or (params["pull"] == MISSING and fits):
        return {"image": before}
    if check_mode:
        return {"changed": True, "image": before}
    impatient = ImageEngine(params["docker_host"], images.REGISTRY_TIMEOUT, params["agent"])
    reason = images.pull(engine, impatient, params, deadline_in(params["deadline"]))
    if reason and params["pull"] == ALWAYS:
        raise EngineError(reason, params["agent"])
    after = images.describe(engine, params["name"], reason)
    return {"changed": after["id"] != before["id"], "image": after}


def main() -> None:
    run(AnsibleModule(argument_spec=ARGUMENT_SPEC, **RULES), work)


if __name__ == "__main__":
    main()
