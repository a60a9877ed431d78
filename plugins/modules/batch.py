#!/usr/bin/python
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: batch
short_description: Start a session's batch command, and see how it ends
description:
  - The command lies in C(main1) since before its start; PID 1 there runs it as the session's user when it is told to, writes
    what it prints to the container's log, and keeps its exit code.
options:
  state:
    description:
      - V(started) lets the command begin; to say it twice changes nothing.
      - V(waited) returns when the command has ended, when a container of this agent has died, or after O(wait).
    type: str
    choices: [started, waited]
    required: true
  agent:
    description:
      - The name that the plan has for this host.
    type: str
    required: true
  wait:
    description:
      - Seconds to wait at most, for O(state=waited); 0 just looks.
    type: float
    default: 0
extends_documentation_fragment:
  - cluster.compute.plan
  - cluster.compute.attributes
  - cluster.compute.attributes.action
  - cluster.compute.attributes.actiongroup_compute
  - cluster.compute.engine
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
  - module: cluster.compute.logs
"""

EXAMPLES = r"""
- name: Begin
  cluster.compute.batch:
    state: started
    plan: "{{ scheduled.plan }}"
    agent: "{{ inventory_hostname }}"

- name: Wait a minute for the end
  cluster.compute.batch:
    state: waited
    plan: "{{ scheduled.plan }}"
    agent: "{{ inventory_hostname }}"
    wait: 60
  register: batch
"""

RETURN = r"""
exit_code:
  description: The command's exit code; 124 when it took longer than its timeout, 255 when nobody can tell; null while it runs.
  type: int
  returned: success
oom_killed:
  description: Whether memory ran out while it ran.
  type: bool
  returned: success
reason:
  description: Why nobody can tell the exit code, where that is so.
  type: str
  returned: success
dead:
  description: The session's containers of this agent that do not run, each with how it ended.
  type: list
  elements: dict
  returned: success
duration:
  description: Seconds that the call took.
  type: float
  returned: always
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json
from ansible_collections.cluster.compute.plugins.module_utils._docker.batch import Batch
from ansible_collections.cluster.compute.plugins.module_utils._docker.client import Engine
from ansible_collections.cluster.compute.plugins.module_utils._module import at_least, engine_options, read_plan, run

ARGUMENT_SPEC = {
    "state": {"type": "str", "choices": ["started", "waited"], "required": True},
    "plan": {"type": "dict", "required": True},
    "agent": {"type": "str", "required": True},
    "wait": {"type": "float", "default": 0},
    **engine_options(),
}

RULES = {"supports_check_mode": True}


def work(params: Json, check_mode: bool) -> Json:
    at_least(params, timeout=1, wait=0)
    engine = Engine(params["docker_host"], params["timeout"], params["agent"])
    command = Batch(engine, read_plan(params["plan"]), params["agent"])
    if params["state"] == "started":
        return command.start(check=check_mode)
    return command.wait(params["wait"])


def main() -> None:
    run(AnsibleModule(argument_spec=ARGUMENT_SPEC, **RULES), work)


if __name__ == "__main__":
    main()
