#!/usr/bin/python
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: overlay_probe
short_description: Test the throw-away overlay network of a check from an agent
description:
  - A container of the agent in that network resolves the names of the containers of the other agents, sends them small packets and
    packets of the full MTU, and measures latency and throughput.
  - An agent on which this is not possible is a result with C(probe.overlay_reason); the task does not fail. An agent that is no
    member of O(plan) does nothing.
options:
  state:
    description:
      - V(present) starts the container and waits until it answers.
      - V(started) lets it measure, and does not wait for the end.
      - V(absent) waits for the end of the measurements, removes the container, and returns what it found.
    type: str
    choices: [present, started, absent]
    default: present
  name:
    description:
      - The agent's name in the inventory.
    type: str
    required: true
  image:
    description:
      - The image for the container. It contains C(python3).
    type: str
    default: cluster-compute/reference:1
extends_documentation_fragment:
  - cluster.compute.plan.overlay
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
  - module: cluster.compute.overlay_plan
  - module: cluster.compute.overlay_network
  - module: cluster.compute.agent_diagnosis
"""

EXAMPLES = r"""
- name: Start the container in the overlay network of the check
  cluster.compute.overlay_probe:
    name: "{{ inventory_hostname }}"
    mark: 3f9c0d1e2b4a
    plan: "{{ overlay.plan }}"

- name: Remove the container, and read what it found
  cluster.compute.overlay_probe:
    name: "{{ inventory_hostname }}"
    mark: 3f9c0d1e2b4a
    plan: "{{ overlay.plan }}"
    state: absent
  register: measured
"""

RETURN = r"""
probe:
  description: What this step contributes to the check of the agent.
  returned: always
  type: dict
  contains:
    overlay:
      description:
        - What the container found. C(names) has the address that Docker's DNS answers, C(latency) milliseconds and C(mbits)
          megabits per second, each by agent. C(heard) lists the packets that arrived, each as the name of the sender and C(small) or
          C(full). C(measured) is whether the container has finished.
      returned: with O(state=absent)
      type: dict
    overlay_reason:
      description: Why the agent has no container in the network.
      returned: when that is not possible
      type: str
duration:
  description: Seconds that the call took.
  returned: success
  type: float
  sample: 0.12
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._agents import overlay_probe
from ..module_utils._core.documents import Json
from ..module_utils._docker.client import Engine
from ..module_utils._module import at_least, engine_options, run

ARGUMENT_SPEC = {
    "state": {"type": "str", "choices": ["present", "started", "absent"], "default": "present"},
    "name": {"type": "str", "required": True},
    "image": {"type": "str", "default": "cluster-compute/reference:1"},
    "mark": {"type": "str", "required": True},
    "plan": {"type": "dict", "required": True},
    **engine_options(),
}

RULES = {"supports_check_mode": True}


def work(params: Json, check_mode: bool) -> Json:
    at_least(params, timeout=1)
    name, mark, plan = params["name"], params["mark"], params["plan"]
    if name not in [member["name"] for member in plan["members"]]:
        return {"changed": False, "probe": {}}
    engine = Engine(params["docker_host"], params["timeout"], name)
    exists = overlay_probe.exists(engine, mark)
    if params["state"] == "absent":
        found = {} if check_mode else overlay_probe.stop(engine, mark, plan["budget"])
        return {"changed": exists, "probe": {"overlay": found} if found else {}}
    if params["state"] == "started":
        if exists and not check_mode:
            overlay_probe.measure(engine, mark)
        return {"changed": exists, "probe": {}}
    if not exists and not check_mode:
        overlay_probe.start(engine, params["image"], mark, name, plan)
    return {"changed": not exists, "probe": {}}


def main() -> None:
    run(AnsibleModule(argument_spec=ARGUMENT_SPEC, **RULES), work)


if __name__ == "__main__":
    main()
