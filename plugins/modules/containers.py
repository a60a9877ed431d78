#!/usr/bin/python
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: containers
short_description: Create, start, stop or remove all containers of a session on one agent
description:
  - Handles all of an agent's containers in one call, several at a time.
  - A call ends with every container as asked for, or fails with one sentence and removes what it had made.
    A failed start removes what the whole launch had made on this agent.
  - A container that already is as the plan says is never touched.
options:
  state:
    description:
      - V(created) makes the containers, so that files can be put into them before their first start. One that has
        ended is kept with its files; one that an earlier launch made and never started is made anew.
      - V(started) starts those that do not run, and checks a moment later that they still do.
      - V(stopped) stops those that run; their files stay.
      - V(absent) removes them, with their anonymous volumes and the volumes that the session itself describes. A volume
        that another session or anybody else mounts is left to them, and goes with the last session.
    type: str
    choices: [created, started, stopped, absent]
    default: started
  agent:
    description:
      - The name that the plan has for this host.
    type: str
    required: true
  plan:
    description:
      - The plan, as M(cluster.compute.schedule) returns it. Required, unless O(state=absent) is given O(sessions).
    type: dict
  sessions:
    description:
      - The UUIDs of the sessions whose containers go, for O(state=absent).
    type: list
    elements: str
  launch:
    description:
      - For O(state=absent), removes only what this attempt made.
    type: str
    default: ""
  parallelism:
    description:
      - How many requests the engine gets at a time. By default 4 to 8, by the number of CPUs.
    type: int
  deadline:
    description:
      - Seconds for which removals are tried again that the engine refuses for the moment.
    type: int
    default: 60
  stop_timeout:
    description:
      - Seconds that a container has to end by itself, for O(state=stopped).
    type: int
    default: 10
  bootstrap_timeout:
    description:
      - Seconds that the session's bootstrap script may take in each container, for O(state=started).
    type: int
    default: 300
  runtime_volume:
    description:
      - The volume that holds the SSH runtime.
    type: str
    default: cluster-compute-runtime-1
extends_documentation_fragment:
  - cluster.compute.engine
  - cluster.compute.attributes
  - cluster.compute.attributes.action
  - cluster.compute.attributes.actiongroup_compute
notes:
  - Containers have the restart policy C(no). One that ends stays ended, so that its exit code and a kill for lack of
    memory are told, and launching the session again brings it back with its name, address and files.
  - No capability is added and none taken. Limits for open files and locked memory are as high as the host allows.
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
    details: Shows the state of each container, never its environment.
  idempotent:
    support: full
author:
  - The cluster.compute authors (@cluster-compute)
seealso:
  - module: cluster.compute.network
  - module: cluster.compute.schedule
"""

EXAMPLES = r"""
- name: Create the containers of this agent
  cluster.compute.containers:
    state: created
    agent: "{{ inventory_hostname }}"
    plan: "{{ scheduled.plan }}"

- name: Start them
  cluster.compute.containers:
    state: started
    agent: "{{ inventory_hostname }}"
    plan: "{{ scheduled.plan }}"

- name: Remove what one attempt has made
  cluster.compute.containers:
    state: absent
    agent: "{{ inventory_hostname }}"
    sessions: ["3614fdf3-0e04-4a4b-9d5c-1f7c0a8e6b11"]
    launch: 9b2d7b7e-53c1-4f6f-8e0e-2d6a7a5f1c11
"""

RETURN = r"""
containers:
  description:
    - The containers after the call, in rank order; in check mode those that would be made are in state C(planned).
  returned: success
  type: list
  elements: dict
  sample:
    - engine_name: alice.train.main1
      hostname: main1
      state: running
      address: 10.201.0.2
changed_names:
  description: The engine's names of the containers that were changed.
  returned: success
  type: list
  elements: str
  sample: [alice.train.main1]
actions:
  description: What was done to each.
  returned: success
  type: list
  elements: dict
  sample:
    - name: alice.train.main1
      action: created
left:
  description: For O(state=absent), the volumes of these sessions that others still mount.
  returned: success
  type: list
  elements: str
  sample: []
duration:
  description: Seconds that the call took.
  returned: always
  type: float
  sample: 0.41
failure:
  description: What failed, for playbooks.
  returned: failure
  type: dict
  sample:
    code: conflict
    message: "sub1: on agent1 the name alice.train.sub1 is held by a container that is not this session's
      (0123456789ab); remove or rename it."
    where: agent1
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.cluster.compute.plugins.module_utils._agents.host import engine_limits
from ansible_collections.cluster.compute.plugins.module_utils._core.constants import RUNTIME_VOLUME
from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json
from ansible_collections.cluster.compute.plugins.module_utils._core.parallel import default_parallelism
from ansible_collections.cluster.compute.plugins.module_utils._core.waiting import deadline_in
from ansible_collections.cluster.compute.plugins.module_utils._docker.client import Engine
from ansible_collections.cluster.compute.plugins.module_utils._docker.containers import AgentContainers
from ansible_collections.cluster.compute.plugins.module_utils._docker.removal import removed
from ansible_collections.cluster.compute.plugins.module_utils._module import at_least, engine_options, read_plan, run

ARGUMENT_SPEC = {
    "state": {"type": "str", "choices": ["created", "started", "stopped", "absent"], "default": "started"},
    "agent": {"type": "str", "required": True},
    "plan": {"type": "dict"},
    "sessions": {"type": "list", "elements": "str"},
    "launch": {"type": "str", "default": ""},
    "parallelism": {"type": "int"},
    "deadline": {"type": "int", "default": 60},
    "stop_timeout": {"type": "int", "default": 10},
    "bootstrap_timeout": {"type": "int", "default": 300},
    "runtime_volume": {"type": "str", "default": RUNTIME_VOLUME},
    **engine_options(),
}

RULES = {
    "mutually_exclusive": [["plan", "sessions"]],
    "required_if": [
        *[("state", state, ["plan"]) for state in ("created", "started", "stopped")],
        ("state", "absent", ["plan", "sessions"], True),
    ],
    "supports_check_mode": True,
}


def work(params: Json, check_mode: bool) -> Json:
    at_least(params, parallelism=1, deadline=0, stop_timeout=0, timeout=1)
    parallelism = params["parallelism"] or default_parallelism()
    deadline = deadline_in(params["deadline"])
    engine = Engine(params["docker_host"], params["timeout"], params["agent"])
    if params["state"] == "absent":
        sessions = params["sessions"] if params["plan"] is None else [read_plan(params["plan"]).session.id]
        return removed(engine, sessions, params["launch"], parallelism, deadline, check=check_mode).to_json()
    launch = AgentContainers(
        engine=engine,
        plan=read_plan(params["plan"]),
        agent=params["agent"],
        parallelism=parallelism,
        deadline=deadline,
        limits=engine_limits(params["docker_host"]),
        runtime=params["runtime_volume"],
        bootstrap_timeout=params["bootstrap_timeout"],
        check=check_mode,
    )
    if params["state"] == "stopped":
        return launch.stopped(params["stop_timeout"]).to_json()
    return (launch.created() if params["state"] == "created" else launch.started()).to_json()


def main() -> None:
    run(AnsibleModule(argument_spec=ARGUMENT_SPEC, **RULES), work)


if __name__ == "__main__":
    main()
