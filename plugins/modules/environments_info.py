# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

DOCUMENTATION = r"""
module: environments_info
short_description: List the environments that sessions can have
description:
  - Lists the environments of the collection and of O(environments), and the agents that have their images; and the presets, from which
    O(cluster.compute.session#module:preset) chooses.
  - It runs on the controller, over connections of its own to all hosts of the play. A host that does not answer is a warning.
extends_documentation_fragment:
  - cluster.compute.attributes.without_diff
  - cluster.compute.options.environments_info
author: The cluster.compute authors (@cluster-compute)
"""

EXAMPLES = r"""
- name: List the environments
  cluster.compute.environments_info:
  register: found  # found.lines
"""

RETURN = r"""
environments:
  description: Every version of every environment.
  type: list
  elements: dict
  returned: without O(build)
  contains:
    name: {description: The name of the environment., type: str}
    version: {description: The version., type: str}
    image: {description: The reference of the image., type: str}
    apps: {description: The names of the apps., type: list, elements: str}
    description: {description: What the environment is for., type: str}
    agents: {description: The agents that have the image., type: list, elements: str}
    size: {description: The size of the image in bytes; 0 if no agent has it., type: int}
presets:
  description: The presets of the inventory, else of the collection. A resource that a preset lacks has its default.
  type: list
  elements: dict
  returned: without O(build)
  contains:
    name: {description: The name of the preset., type: str}
    cpus: {description: CPUs of each container., type: float}
    memory: {description: Memory of each container., type: str}
    shm: {description: Size of C(/dev/shm) in each container., type: str}
    gpus: {description: GPUs of each container., type: float}
build:
  description: What is to be built, in this order, each with C(name), C(version), C(image) and the image C(base) that it extends.
  type: list
  elements: dict
  returned: with O(build)
lines: {description: The same as a table., type: list, elements: str, returned: without O(build)}
"""
