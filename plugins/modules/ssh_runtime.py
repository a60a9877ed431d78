#!/usr/bin/python
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ssh_runtime
short_description: Create the volume with the SSH runtime on an agent
description:
  - Fills a volume with the programs of the reference image and the scripts of this release. Every container of a session mounts it
    read-only.
  - The name of the volume ends with a digest of its content. Other packages or other scripts are another volume. Containers keep
    the volume that they were created with.
  - A second, empty volume marks a volume as complete. A volume without that mark does not count, and is filled again.
  - Removes volumes with other contents that no container mounts.
options:
  image:
    description:
      - The reference image.
    type: str
    default: cluster-compute/reference:1
  agent:
    description:
      - The agent's name in the inventory.
    type: str
    default: ""
  scripts:
    description:
      - The scripts by their path in the runtime. The action plugin sets this option.
    type: dict
  applets:
    description:
      - The names that BusyBox has in the runtime. The action plugin sets this option.
    type: list
    elements: str
    default: []
extends_documentation_fragment:
  - cluster.compute.engine
  - cluster.compute.attributes
  - cluster.compute.attributes.action
  - cluster.compute.attributes.actiongroup_compute
attributes:
  check_mode:
    support: full
    details:
      - An agent without the image gets it before, so the volume would be created.
  diff_mode:
    support: none
  idempotent:
    support: full
author:
  - The cluster.compute authors (@cluster-compute)
seealso:
  - module: cluster.compute.containers
"""

EXAMPLES = r"""
- name: Create the volume with the SSH runtime
  cluster.compute.ssh_runtime:
    agent: "{{ inventory_hostname }}"
"""

RETURN = r"""
volume:
  description: The name of the volume; empty in check mode if the agent does not have the image.
  type: str
  returned: success
  sample: cluster-compute-runtime-0123456789abcdef
removed:
  description: Volumes with other contents that were removed.
  type: list
  elements: str
  returned: success
  sample: []
duration:
  description: Seconds that the call took.
  type: float
  returned: always
  sample: 0.41
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._core.constants import REFERENCE_IMAGE
from ..module_utils._core.documents import Json
from ..module_utils._core.errors import InputError
from ..module_utils._docker.client import Engine
from ..module_utils._docker.runtime import Scripts, install_runtime
from ..module_utils._module import at_least, engine_options, run

ARGUMENT_SPEC = {
    "image": {"type": "str", "default": REFERENCE_IMAGE},
    "agent": {"type": "str", "default": ""},
    "scripts": {"type": "dict"},
    "applets": {"type": "list", "elements": "str", "default": []},
    **engine_options(),
}

RULES = {"supports_check_mode": True}


def work(params: Json, check_mode: bool) -> Json:
    at_least(params, timeout=1)
    if not params["scripts"]:
        message = "is set by the action plugin; use the module as cluster.compute.ssh_runtime in a task"
        raise InputError("scripts", None, message)
    engine = Engine(params["docker_host"], params["timeout"], params["agent"])
    return install_runtime(engine, params["image"], Scripts(params["scripts"], params["applets"]), check=check_mode)


def main() -> None:
    run(AnsibleModule(argument_spec=ARGUMENT_SPEC, **RULES), work)


if __name__ == "__main__":
    main()
