# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of the modules that carry out steps. Private to this collection."""

from __future__ import annotations


class ModuleDocFragment:
    """What C(agent_step) and C(head_step) share."""

    DOCUMENTATION = r"""
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
attributes:
  diff_mode:
    description: With C(--diff), returns what changed or would change.
    support: partial
    details: Depends on the step.
  idempotent:
    description: A second run with the same options and an unchanged target changes nothing.
    support: partial
    details: Depends on the step.
"""
