#!/usr/bin/python
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: batch
short_description: Start a session's batch command
description:
  - Starts the command, which is in C(main1) since the container's creation. PID 1 of C(main1) runs it as the session's user,
    writes its output to the container's log, and keeps its exit code.
options:
  state:
    description:
      - V(started) starts the command. A command that runs or has ended is not started again.
      - If C(main1) has another command than the plan, and that command has ended, the command of the plan replaces it and runs.
        While the other command runs, the module fails.
    type: str
    choices: [started]
    default: started
  agent:
    description:
      - The name of the agent that holds C(main1), as in the plan.
    type: str
    required: true
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
  - module: cluster.compute.batch_info
  - module: cluster.compute.logs_info
"""

EXAMPLES = r"""
- name: Start the batch command
  cluster.compute.batch:
    state: started
    plan: "{{ scheduled.plan }}"
    agent: "{{ inventory_hostname }}"
"""

RETURN = r"""
exit_code:
  description:
    - The command's exit code; V(124) after a timeout, V(255) if its exit code is unknown.
    - Null while the command runs, and on agents that do not hold C(main1).
  type: int
  returned: success
  sample: 0
oom_killed:
  description: Whether the kernel killed a process of the command because memory ran out.
  type: bool
  returned: success
begun:
  description: V(false) if C(main1) was started after the command, which has ended with the earlier run of C(main1).
  type: bool
  returned: success
since:
  description: When another command was replaced, in the form of the times in the log of C(main1); otherwise empty.
  type: str
  returned: success
reason:
  description: Why the exit code is unknown; otherwise empty.
  type: str
  returned: success
dead:
  description: The session's containers on this agent that do not run.
  type: list
  elements: dict
  returned: success
  contains:
    hostname:
      description: The container's hostname.
      type: str
      returned: always
      sample: sub1
    agent:
      description: The container's agent.
      type: str
      returned: always
      sample: agent1
    state:
      description: The container's state in the engine, or V(missing).
      type: str
      returned: always
      sample: exited
    exit_code:
      description: The container's exit code; null if the container is missing.
      type: int
      returned: always
      sample: 137
    oom_killed:
      description: Whether the kernel killed the container because memory ran out.
      type: bool
      returned: always
duration:
  description: Seconds that the call took.
  type: float
  returned: always
  sample: 0.03
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._core.documents import Json
from ..module_utils._docker.batch import Batch
from ..module_utils._docker.client import Engine
from ..module_utils._module import at_least, engine_options, read_plan, run

ARGUMENT_SPEC = {
    "state": {"type": "str", "choices": ["started"], "default": "started"},
    "plan": {"type": "dict", "required": True},
    "agent": {"type": "str", "required": True},
    **engine_options(),
}

RULES = {"supports_check_mode": True}


def work(params: Json, check_mode: bool) -> Json:
    at_least(params, timeout=1)
    engine = Engine(params["docker_host"], params["timeout"], params["agent"])
    return Batch(engine, read_plan(params["plan"]), params["agent"]).start(check=check_mode)


def main() -> None:
    run(AnsibleModule(argument_spec=ARGUMENT_SPEC, **RULES), work)


if __name__ == "__main__":
    main()
