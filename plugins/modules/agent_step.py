#!/usr/bin/python
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: agent_step
short_description: Internal step of the collection
description:
  - Do not use this module directly; it is internal to the collection and may change in any release.
  - Works on an agent and its engine.
options:
  secrets: {description: Parameters that no log contains., type: dict, default: {}}
  agent: {description: The agent's name in the inventory; set by the action plugin., type: str, default: ''}
  edition:
    description: The digest of the scripts in the SSH runtime of this release; set by the action plugin.
    type: str
    default: ''
  fabric: {description: The interface of the agent for the fabric; set by the action plugin., type: str, default: ''}
  mps: {description: The directory of the agent's MPS daemon; set by the action plugin., type: str, default: /run/nvidia-mps}
  docker_host:
    description: The address of the engine. If empty, the environment variable E(DOCKER_HOST) of the host, then the default socket.
    type: str
    default: ''
  timeout: {description: Seconds that a single request to the engine may take., type: int, default: 60}
extends_documentation_fragment:
  - cluster.compute.step
  - cluster.compute.attributes
author: The cluster.compute authors (@cluster-compute)
"""

EXAMPLES = r"""
# The roles and actions of the collection call it.
"""

RETURN = r"""
duration: {description: Seconds that the step took., type: float, returned: always}
"""

from typing import TYPE_CHECKING, Dict

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._core.documents import Json
from ..module_utils._module import at_least, run
from ..module_utils._steps.step import OF_AGENT, Agent, engine_address

if TYPE_CHECKING:
    # What Ansible packs: see Steps.
    from ..module_utils._steps import apps, batch, containers, doctor, folders, image  # noqa: F401

    # isort: split
    from ..module_utils._steps import logs, network, report, runtime, ssh, swarm  # noqa: F401

ARGUMENT_SPEC: Dict[str, Json] = {
    "call": {"type": "str", "required": True},
    "params": {"type": "dict", "default": {}},
    "secrets": {"type": "dict", "default": {}, "no_log": True},
    "agent": {"type": "str", "default": ""},
    "edition": {"type": "str", "default": ""},
    "fabric": {"type": "str", "default": ""},
    "mps": {"type": "str", "default": "/run/nvidia-mps"},
    "docker_host": {"type": "str", "default": ""},
    "timeout": {"type": "int", "default": 60},
    "stays": {"type": "path"},
}


def work(params: Json, check_mode: bool) -> Json:
    at_least(params, timeout=1)
    place = Agent(
        name=params["agent"],
        docker_host=engine_address(params["docker_host"]),
        timeout=params["timeout"],
        edition=params["edition"],
        fabric=params["fabric"],
        mps=params["mps"],
        check=check_mode,
    )
    return OF_AGENT.call(params["call"], place, {**params["params"], **params["secrets"]})


def main() -> None:
    run(AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True), ARGUMENT_SPEC, work, OF_AGENT.prepare)


if __name__ == "__main__":
    main()
