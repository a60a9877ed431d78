#!/usr/bin/python
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: overlay_network
short_description: Create or remove the throw-away overlay network of a check
description:
  - Works on a manager of the Swarm. Networks of checks that were killed more than ten minutes ago are removed first.
  - A manager on which this is not possible is a result with C(probe.network_reason); the task does not fail.
options:
  state:
    description:
      - V(present) creates the network, V(absent) removes it.
    type: str
    choices: [present, absent]
    default: present
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
  - module: cluster.compute.overlay_probe
"""

EXAMPLES = r"""
- name: Create the overlay network of the check
  cluster.compute.overlay_network:
    mark: 3f9c0d1e2b4a
    plan: "{{ overlay.plan }}"
  delegate_to: "{{ overlay.plan.manager }}"
  run_once: true
"""

RETURN = r"""
probe:
  description: What this step contributes to the check.
  returned: always
  type: dict
  contains:
    network_reason:
      description: Why the network cannot be created or removed.
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
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "mark": {"type": "str", "required": True},
    "plan": {"type": "dict", "required": True},
    **engine_options(),
}

RULES = {"supports_check_mode": True}


def work(params: Json, check_mode: bool) -> Json:
    at_least(params, timeout=1)
    engine = Engine(params["docker_host"], params["timeout"], params["plan"].get("manager", ""))
    wanted = params["state"] == "present"
    if check_mode:
        return {"changed": overlay_probe.has_network(engine, params["mark"]) != wanted, "probe": {}}
    if wanted:
        return {"changed": overlay_probe.create_network(engine, params["mark"], params["plan"]), "probe": {}}
    return {"changed": overlay_probe.remove_network(engine, params["mark"]), "probe": {}}


def main() -> None:
    run(AnsibleModule(argument_spec=ARGUMENT_SPEC, **RULES), work)


if __name__ == "__main__":
    main()
