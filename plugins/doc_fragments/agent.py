# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options that describe an agent. Private to this collection."""

from __future__ import annotations


class ModuleDocFragment:
    """What the inventory says of an agent: its groups, amounts and addresses."""

    DOCUMENTATION = r"""
options:
  group:
    description:
      - The resource groups of the agent.
    type: list
    elements: str
    default: [default]
  schedulable:
    description:
      - Whether new sessions may be placed on the agent.
    type: bool
    default: true
  reserved_cpus:
    description:
      - CPUs that are reserved for the host, such as V(1) or V(0.5).
    type: str
    default: "0"
  reserved_memory:
    description:
      - Memory that is reserved for the host, such as V(2g).
    type: str
    default: "0"
  cpus:
    description:
      - The number of CPUs of the agent, in place of the engine's own count.
    type: str
  memory:
    description:
      - The memory of the agent, such as V(64g), in place of the engine's own amount.
    type: str
  gpus:
    description:
      - The GPUs of the agent, in place of the GPUs that its kernel shows. Each has an C(id) and, if several sessions
        can share it, a number of C(shares).
    type: list
    elements: dict
  fabric:
    description:
      - The network interface of the agent for C(session_fabric).
    type: str
    default: ""
  publish:
    description:
      - The address of the agent on which ports are published.
    type: str
    default: 127.0.0.1
  address:
    description:
      - The address at which the controller reaches the agent.
    type: str
    default: 127.0.0.1
"""
