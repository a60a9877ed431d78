#!/usr/bin/python
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: image_build
short_description: Build an image from a Dockerfile
description:
  - Builds an image on the agent with the classic builder of its Docker Engine, as C(docker build) does with C(DOCKER_BUILDKIT=0).
  - An image that exists is not built again.
  - The steps of the build use the network of the host.
  - While the image is built, the callback P(cluster.compute.progress#callback) shows the bytes that the steps have written.
  - A build that fails, or that has not ended at the deadline, leaves no container.
options:
  name:
    description:
      - The reference that the image gets, such as V(cluster-compute/lab:1.0).
    type: str
    required: true
  path:
    description:
      - A folder on the agent with a file C(Dockerfile). The engine receives all files of the folder. A file C(.dockerignore) has no
        effect.
    type: path
    required: true
  build_arguments:
    description:
      - Values of the C(ARG) instructions by name. The engine keeps them in the history of the image, so they must not contain a
        password.
    type: dict
    default: {}
  agent:
    description:
      - The agent's name in the inventory.
    type: str
    default: ""
  deadline:
    description:
      - Seconds that the build may take.
    type: int
    default: 7200
  progress:
    description:
      - A new file on the agent, in which the module counts the bytes that the build has written.
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
  - module: cluster.compute.image_command
"""

EXAMPLES = r"""
- name: Build an image from the files of a folder
  cluster.compute.image_build:
    name: team/train:2
    agent: "{{ inventory_hostname }}"
    path: /srv/train
    build_arguments:
      BASE: cluster-compute/reference:1
"""

RETURN = r"""
id:
  description: The image's ID; empty in check mode if the image would be built.
  returned: success
  type: str
  sample: sha256:0d33…
message:
  description: What was done, or what would be done in check mode.
  returned: success
  type: str
  sample: team/train:2 would be built from /srv/train.
duration:
  description: Seconds that the call took.
  returned: always
  type: float
  sample: 95.2
"""

import os

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._core.documents import Json
from ..module_utils._core.errors import InputError
from ..module_utils._docker.image_build import COUNT_TIMEOUT, BuildEngine, build
from ..module_utils._module import at_least, engine_options, run

ARGUMENT_SPEC = {
    "name": {"type": "str", "required": True},
    "path": {"type": "path", "required": True},
    "build_arguments": {"type": "dict", "default": {}},
    "agent": {"type": "str", "default": ""},
    "deadline": {"type": "int", "default": 7200},
    "progress": {"type": "path"},
    **engine_options(),
}

RULES = {"supports_check_mode": True}


def work(params: Json, check_mode: bool) -> Json:
    at_least(params, deadline=1, timeout=1)
    name, folder = params["name"], params["path"]
    engine = BuildEngine(params["docker_host"], params["timeout"], params["agent"])
    before = engine.image(name)
    if before is not None:
        return {"id": before["Id"], "message": f"{name} exists."}
    if not os.path.isfile(os.path.join(folder, "Dockerfile")):
        raise InputError("path", folder, "must be a folder with a file Dockerfile")
    if check_mode:
        return {"changed": True, "id": "", "message": f"{name} would be built from {folder}."}
    counter = BuildEngine(params["docker_host"], min(params["timeout"], COUNT_TIMEOUT), params["agent"])
    identity = build(engine, counter, params)
    return {"changed": True, "id": identity, "message": f"{name} was built from {folder}."}


def main() -> None:
    run(AnsibleModule(argument_spec=ARGUMENT_SPEC, **RULES), work)


if __name__ == "__main__":
    main()
