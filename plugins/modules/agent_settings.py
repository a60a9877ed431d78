#!/usr/bin/python
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: agent_settings
short_description: Resolve the variables of the role agent on a host
description:
  - Fills in the defaults of the role P(cluster.compute.agent#role) that depend on the host and on the inventory.
options:
  become:
    description:
      - The variable C(agent_become).
    type: bool
  docker_host:
    description:
      - The variable C(agent_docker_host).
    type: str
    default: ""
  state_dir:
    description:
      - The variable C(agent_state_dir).
    type: str
    default: ""
  swarm:
    description:
      - The variable C(agent_swarm).
    type: bool
  swarm_manager:
    description:
      - The variable C(agent_swarm_manager).
    type: bool
    default: false
  swarm_address:
    description:
      - The variable C(agent_swarm_address).
    type: str
    default: ""
  engine_timeout:
    description:
      - The variable C(agent_engine_timeout). It must be at least 1.
    type: int
    default: 60
extends_documentation_fragment:
  - cluster.compute.attributes.info
  - cluster.compute.attributes.action
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
  - module: cluster.compute.swarm_plan
"""

EXAMPLES = r"""
- name: Resolve the settings of the agent
  cluster.compute.agent_settings:
    state_dir: /srv/store
  register: settings
"""

RETURN = r"""
agents:
  description: All agents of the inventory.
  returned: success
  type: list
  elements: str
head:
  description: The agent that creates the Swarm and is always a manager.
  returned: success
  type: str
is_head:
  description: Whether the host holds the session store.
  returned: success
  type: bool
become:
  description: Whether tasks that need root use C(become).
  returned: success
  type: bool
docker:
  description: The command C(docker) with the options that select the engine.
  returned: success
  type: list
  elements: str
state_dir:
  description: The folder of the session store.
  returned: success
  type: str
swarm:
  description: Whether the engine joins a Swarm.
  returned: success
  type: bool
swarm_manager:
  description: Whether the engine becomes a manager.
  returned: success
  type: bool
swarm_addresses:
  description: Addresses at which other agents may reach the host.
  returned: success
  type: list
  elements: str
engine_packages:
  description: The packages of the engine; empty if they depend on the host's repositories.
  returned: success
  type: list
  elements: str
engine_packages_to_remove:
  description: The packages that contain the engine.
  returned: success
  type: list
  elements: str
engine_choices:
  description:
    - The engines of Red Hat and its derivatives, each with its C(name) and C(packages). The first that a repository of the host offers
      is installed.
  returned: success
  type: list
  elements: dict
"""
