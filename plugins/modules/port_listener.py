#!/usr/bin/python
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: port_listener
short_description: Listen on an agent for the datagrams of other agents
description:
  - A container with a raw socket receives a copy of each UDP datagram that the host's firewall accepts, on any port.
  - An agent on which this is not possible is a result with C(probe.reason); the task does not fail.
options:
  state:
    description:
      - V(present) starts the listener and waits until it listens. V(absent) removes the listener and returns what it received.
    type: str
    choices: [present, absent]
    default: present
  name:
    description:
      - The agent's name in the inventory, for messages.
    type: str
    default: ""
  image:
    description:
      - The image for the container. It contains C(python3).
    type: str
    default: cluster-compute/reference:1
  mark:
    description:
      - A string that distinguishes the datagrams of this check from those of other checks. All agents of a check use the same mark.
    type: str
    required: true
  lifetime:
    description:
      - Seconds after which a listener that was not removed stops by itself.
    type: int
    default: 300
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
  - module: cluster.compute.port_probe
  - module: cluster.compute.agent_diagnosis
"""

EXAMPLES = r"""
- name: Start to listen
  cluster.compute.port_listener:
    name: "{{ inventory_hostname }}"
    mark: 3f9c0d1e2b4a

- name: Stop listening
  cluster.compute.port_listener:
    name: "{{ inventory_hostname }}"
    mark: 3f9c0d1e2b4a
    state: absent
  register: listener
"""

RETURN = r"""
probe:
  description: What this step contributes to the check of the agent.
  returned: always
  type: dict
  contains:
    listened:
      description: Whether the agent listens.
      returned: with O(state=present)
      type: bool
    received:
      description: The received datagrams, each as the name of the sender and the channel.
      returned: with O(state=absent)
      type: list
      elements: list
      sample: [[agent2, vxlan]]
    reason:
      description: Why the agent cannot listen.
      returned: when the agent cannot listen
      type: str
duration:
  description: Seconds that the call took.
  returned: success
  type: float
  sample: 0.12
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._agents import port_probe
from ..module_utils._core.documents import Json
from ..module_utils._core.waiting import deadline_in
from ..module_utils._docker.client import Engine
from ..module_utils._module import at_least, engine_options, run

ARGUMENT_SPEC = {
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "name": {"type": "str", "default": ""},
    "image": {"type": "str", "default": "cluster-compute/reference:1"},
    "mark": {"type": "str", "required": True},
    "lifetime": {"type": "int", "default": 300},
    **engine_options(),
}

RULES = {"supports_check_mode": True}

# Seconds that the container may take until it listens.
START = 30


def work(params: Json, check_mode: bool) -> Json:
    at_least(params, lifetime=1, timeout=1)
    engine = Engine(params["docker_host"], params["timeout"], params["name"])
    mark = params["mark"]
    exists = port_probe.has_listener(engine, mark)
    if params["state"] == "absent":
        received = [] if check_mode else port_probe.stop_listener(engine, mark)
        return {"changed": exists, "probe": {"received": received}}
    if not exists and not check_mode:
        port_probe.start_listener(engine, params["image"], mark, params["lifetime"], deadline_in(START))
    return {"changed": not exists, "probe": {"listened": True}}


def main() -> None:
    run(AnsibleModule(argument_spec=ARGUMENT_SPEC, **RULES), work)


if __name__ == "__main__":
    main()
