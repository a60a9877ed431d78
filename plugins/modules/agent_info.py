#!/usr/bin/python
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: agent_info
short_description: Report what an agent has, and what runs on it
description:
  - Returns everything that the scheduler must know of an agent, from one quick look at its engine and its kernel.
  - An engine that does not answer is a report with C(reachable=false) and a reason; the module does not fail.
options:
  name:
    description:
      - The agent's name in the inventory.
    type: str
    required: true
  image:
    description:
      - An image to look for on the engine.
    type: str
    default: ""
  paths:
    description:
      - Folders and files to look for on the host.
    type: list
    elements: str
    default: []
  group:
    description:
      - The agent's resource group.
    type: str
    default: default
  schedulable:
    description:
      - Whether new sessions may be placed on the agent.
    type: bool
    default: true
  reserved_cpus:
    description:
      - CPUs that sessions never get, such as V(1) or V(0.5).
    type: str
    default: "0"
  reserved_memory:
    description:
      - Memory that sessions never get, such as V(2g).
    type: str
    default: "0"
  cpus:
    description:
      - CPUs of the agent, instead of the engine's own count.
    type: str
  memory:
    description:
      - Memory of the agent, such as V(64g), instead of the engine's own amount.
    type: str
  gpus:
    description:
      - GPUs of the agent, instead of those that its kernel shows, each with an C(id) and, where several sessions
        may share it, a number of C(shares).
    type: list
    elements: dict
  publish:
    description:
      - The agent's address that ports are published on.
    type: str
    default: 127.0.0.1
  address:
    description:
      - The agent's address as the controller reaches it.
    type: str
    default: 127.0.0.1
extends_documentation_fragment:
  - cluster.compute.engine
  - cluster.compute.attributes.info
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
  - module: cluster.compute.schedule
"""

EXAMPLES = r"""
- name: Ask every agent what it has
  cluster.compute.agent_info:
    name: "{{ inventory_hostname }}"
    image: cluster-compute:latest
    reserved_cpus: "1"
    reserved_memory: 2g
  register: report
"""

RETURN = r"""
connected:
  description: V(false) where Ansible itself could not reach the host.
  returned: when the host cannot be reached
  type: bool
  sample: false
agent:
  description: The report.
  returned: success
  type: dict
  contains:
    name:
      description: The agent's name.
      type: str
      returned: always
    reachable:
      description: Whether the engine answered.
      type: bool
      returned: always
    reason:
      description: Why it did not.
      type: str
      returned: always
    architecture:
      description: The host's architecture, as the kernel calls it.
      type: str
      returned: always
      sample: x86_64
    capacity:
      description: What sessions may hold, C(millicpus), C(memory) in bytes, C(gpus) and C(cpu_ids).
      type: dict
      returned: always
    engine:
      description: The engine's versions and its place in a Swarm.
      type: dict
      returned: always
    limits:
      description: What a container may be given, -1 is unlimited and 0 is not known.
      type: dict
      returned: always
      sample:
        nofile: 1048576
        memlock: -1
    paths:
      description: Which of O(paths) are there.
      type: dict
      returned: always
    image:
      description: Whether the image is there.
      type: dict
      returned: always
    runtime:
      description: Whether the SSH runtime is there.
      type: dict
      returned: always
    mtu:
      description: The MTU of the network between the agents.
      type: int
      returned: always
      sample: 1500
    routes:
      description: The networks that the host has a route to.
      type: list
      elements: str
      returned: always
    networks:
      description: The engine's networks.
      type: list
      elements: dict
      returned: always
    ports:
      description: The TCP ports that are in use on the host.
      type: list
      elements: int
      returned: always
    containers:
      description: The containers of sessions, by session and rank.
      type: list
      elements: dict
      returned: always
duration:
  description: Seconds that the call took.
  returned: always
  type: float
  sample: 0.08
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.cluster.compute.plugins.module_utils._agents.report import report
from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json
from ansible_collections.cluster.compute.plugins.module_utils._module import engine_options, run

ARGUMENT_SPEC = {
    "name": {"type": "str", "required": True},
    "image": {"type": "str", "default": ""},
    "paths": {"type": "list", "elements": "str", "default": []},
    "group": {"type": "str", "default": "default"},
    "schedulable": {"type": "bool", "default": True},
    "reserved_cpus": {"type": "str", "default": "0"},
    "reserved_memory": {"type": "str", "default": "0"},
    "cpus": {"type": "str"},
    "memory": {"type": "str"},
    "gpus": {"type": "list", "elements": "dict"},
    "publish": {"type": "str", "default": "127.0.0.1"},
    "address": {"type": "str", "default": "127.0.0.1"},
    **engine_options(),
}

RULES = {"supports_check_mode": True}


def work(params: Json, check_mode: bool) -> Json:
    return {"agent": report(params)}


def main() -> None:
    run(AnsibleModule(argument_spec=ARGUMENT_SPEC, **RULES), work)


if __name__ == "__main__":
    main()
