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
  call: {description: The name of the step., type: str, required: true}
  params: {description: Its parameters., type: dict, default: {}}
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
  stays:
    description: The directory, on the host, of what may stay there for further steps; set by the action plugin.
    type: path
extends_documentation_fragment:
  - cluster.compute.attributes
attributes:
  diff_mode:
    description: With C(--diff), returns what changed or would change.
    support: partial
    details: Depends on the step.
  idempotent:
    description: A second run with the same options and an unchanged target changes nothing.
    support: partial
    details: Depends on the step.
author: The cluster.compute authors (@cluster-compute)
"""

EXAMPLES = r"""
# The roles and actions of the collection call it.
"""

RETURN = r"""
duration: {description: Seconds that the step took., type: float, returned: always}
"""

from typing import TYPE_CHECKING

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._steps.step import AGENT_SPEC, OF_AGENT, StepModule

if TYPE_CHECKING:
    # What Ansible packs: see Steps.
    from ..module_utils._steps import apps, batch, containers, doctor, folders  # noqa: F401

    # isort: split
    from ..module_utils._steps import image, logs, network, report, runtime  # noqa: F401

    # isort: split
    from ..module_utils._steps import ssh, swarm  # noqa: F401

ARGUMENT_SPEC = AGENT_SPEC
STEPS = StepModule(OF_AGENT, ARGUMENT_SPEC)


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True)
    STEPS.run(module)


if __name__ == "__main__":
    main()
