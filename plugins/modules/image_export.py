#!/usr/bin/python
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: image_export
short_description: Write an image to an archive
description:
  - Writes an image of the agent's Docker Engine to an archive on the agent, as C(docker image save) does.
  - Only the owner of the archive's folder can read the archive.
options:
  id:
    description:
      - The image's ID or reference.
    type: str
    required: true
  agent:
    description:
      - The agent's name in the inventory.
    type: str
    default: ""
  path:
    description:
      - The archive. Its folder must exist. An archive that exists is kept and is not written again.
    type: path
    required: true
  size:
    description:
      - Bytes that must be free in the folder of O(path) before the archive is written.
    type: int
    default: 0
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
  - module: cluster.compute.image_load
"""

EXAMPLES = r"""
- name: Write the reference image to an archive
  cluster.compute.image_export:
    id: cluster-compute/reference:1
    agent: "{{ inventory_hostname }}"
    path: /var/tmp/reference.tar
"""

RETURN = r"""
path:
  description: The archive.
  returned: success
  type: str
  sample: /var/tmp/reference.tar
duration:
  description: Seconds that the call took.
  returned: always
  type: float
  sample: 2.4
"""

import os

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._core.documents import Json
from ..module_utils._docker import images
from ..module_utils._docker.images import ImageEngine
from ..module_utils._module import at_least, engine_options, run

ARGUMENT_SPEC = {
    "id": {"type": "str", "required": True},
    "agent": {"type": "str", "default": ""},
    "path": {"type": "path", "required": True},
    "size": {"type": "int", "default": 0},
    **engine_options(),
}

RULES = {"supports_check_mode": True}


def work(params: Json, check_mode: bool) -> Json:
    at_least(params, timeout=1, size=0)
    exists = os.path.exists(params["path"])
    if not exists and not check_mode:
        engine = ImageEngine(params["docker_host"], max(params["timeout"], images.STALL), params["agent"])
        images.save(engine, params["id"], params["path"], params["size"])
    return {"changed": not exists, "path": params["path"]}


def main() -> None:
    run(AnsibleModule(argument_spec=ARGUMENT_SPEC, **RULES), work)


if __name__ == "__main__":
    main()
