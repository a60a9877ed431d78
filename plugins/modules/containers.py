#!/usr/bin/python
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: containers
short_description: Create, start, stop or remove all containers of a session
description:
  - Manages all containers of a session on one agent in one call, several at a time, or on many agents in one task.
  - If the creation of a container fails, the module removes the containers that this call has created. If a start fails, it
    removes all containers that this launch has created on the agent.
  - A container that is as in the plan is not changed.
options:
  state:
    description:
      - V(created) creates the containers, so that files can be installed in them before their first start. A stopped container
        is kept with its files. A container that an earlier launch created and never started is created again.
      - V(started) starts the containers that do not run, and checks a moment later that they still run.
      - V(stopped) stops the containers that run. Their files stay. Every program in them receives SIGTERM, in all containers
        at once, and SIGKILL if it still runs after the grace of its session.
      - V(limited) writes the session's lifetime and idle timeout into the containers that run, where they differ.
      - V(absent) stops the containers that run, and removes all of them, with their anonymous volumes and the volumes that the
        session defines. A volume that another container mounts is kept, and is removed with the last session that mounts it.
    type: str
    choices: [created, started, limited, stopped, absent]
    default: started
  agent:
    description:
      - The name of this host in the plan. Required, unless O(agents) is set.
    type: str
  agents:
    description:
      - The hosts of the play on which the task does its work, at least 32 at a time, each with its own connection and variables.
        The task needs C(run_once). It costs the controller a third of what a task of every host costs.
      - The task fails if the work fails on one of them; the others do theirs.
    type: list
    elements: str
  plan:
    description:
      - The plan, as M(cluster.compute.schedule) returns it. Required, unless O(sessions) is set for O(state=stopped) or
        O(state=absent).
      - C(schema) is the version of its format. C(session) is the session, with its C(id), C(name), C(owner), C(size), C(image),
        C(user) and scripts. C(network) is its network, with its C(name), C(driver), C(subnet), C(mtu) and C(labels).
      - C(containers) are the containers in rank order, each with its C(name), C(agent), C(address), C(resources), C(ports) and
        C(labels).
    type: dict
  sessions:
    description:
      - The UUIDs of the sessions whose containers are stopped or removed, for O(state=stopped) and O(state=absent).
    type: list
    elements: str
  launch:
    description:
      - The UUID of a launch. If set, O(state=absent) removes only the containers of this launch.
    type: str
    default: ""
  parallelism:
    description:
      - The number of parallel requests to the engine. If not set, 4 to 8, depending on the number of CPUs.
    type: int
  deadline:
    description:
      - Seconds, after the programs have ended, during which a removal is repeated if the engine refuses it.
    type: int
    default: 60
  logs:
    description:
      - The logs to read for O(state=absent), after the programs have ended and before the containers are removed.
        RV(logs) has them.
    type: dict
    suboptions:
      session:
        description: The UUID of the session whose logs are read.
        type: str
        required: true
      tail:
        description: The number of last lines of each log. If not set, all lines.
        type: int
      total:
        description: The number of bytes of all these logs together. Each log has at least 4096.
        type: int
        default: 67108864
      deadline:
        description: Seconds for reading the logs.
        type: int
        default: 60
  stop_timeout:
    description:
      - Seconds between SIGTERM and SIGKILL, for O(state=stopped). If not set, the grace of each session.
      - The programs have at most the grace of their session.
    type: int
  bootstrap_timeout:
    description:
      - Seconds that the session's bootstrap script may take in each container, for O(state=started).
    type: int
    default: 300
  install_ssh:
    description:
      - Whether O(state=created) also does what M(cluster.compute.ssh) does for the containers that have never been started.
    type: bool
    default: false
  network:
    description:
      - Whether O(state=created) first does what M(cluster.compute.network) does with C(state=present), and O(state=absent) at last
        what it does with C(state=absent) for the networks that are on this engine alone.
    type: bool
    default: false
  network_agent:
    description:
      - The one of O(agents) that has O(network=true), for O(state=created). If empty, O(network) holds for all of them.
    type: str
    default: ''
  bundle:
    description:
      - Keys and texts from the controller, for O(install_ssh=true); set by the action plugin.
    type: str
  secrets:
    description:
      - The session's secrets, for O(state=started); set by the action plugin.
    type: str
  runtime_volume:
    description:
      - The volume that holds the SSH runtime.
      - If empty, the newest complete volume that M(cluster.compute.ssh_runtime) has made with the scripts of O(runtime_edition).
    type: str
    default: ''
  runtime_edition:
    description:
      - The digest of the scripts in the SSH runtime; set by the action plugin. If empty, any.
    type: str
    default: ''
extends_documentation_fragment:
  - cluster.compute.engine
  - cluster.compute.plan.reach
  - cluster.compute.attributes
  - cluster.compute.attributes.action
  - cluster.compute.attributes.actiongroup_compute
notes:
  - Containers have the restart policy C(no). A container that ends stays stopped, so that its exit code and an out-of-memory
    kill are reported. Another launch of the session starts it again with its name, address and files.
  - The limits for open files and locked memory are as high as the host allows.
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
    details: Shows the state of each container, but not its environment.
  idempotent:
    support: full
author:
  - The cluster.compute authors (@cluster-compute)
seealso:
  - module: cluster.compute.network
  - module: cluster.compute.schedule
"""

EXAMPLES = r"""
- name: Create the containers of this agent, with SSH
  cluster.compute.containers:
    state: created
    agent: "{{ inventory_hostname }}"
    plan: "{{ scheduled.plan }}"
    install_ssh: true

- name: Start the containers of this agent
  cluster.compute.containers:
    state: started
    agent: "{{ inventory_hostname }}"
    plan: "{{ scheduled.plan }}"

- name: Start the containers of all agents
  cluster.compute.containers:
    state: started
    agents: "{{ scheduled.deployment.agents }}"
    plan: "{{ scheduled.plan }}"
  run_once: true

- name: Remove the containers of one launch
  cluster.compute.containers:
    state: absent
    agent: "{{ inventory_hostname }}"
    sessions: ["3614fdf3-0e04-4a4b-9d5c-1f7c0a8e6b11"]
    launch: 9b2d7b7e-53c1-4f6f-8e0e-2d6a7a5f1c11
"""

RETURN = r"""
containers:
  description:
    - The containers after the call, in rank order. In check mode, containers that would be created have the state C(planned).
  returned: success, if O(agents) is not set
  type: list
  elements: dict
  sample:
    - engine_name: alice.train.main1
      hostname: main1
      state: running
      address: 10.201.0.2
logs:
  description:
    - The logs that O(logs) asks for, in rank order, as M(cluster.compute.logs_info) returns them.
  returned: if O(logs) is set
  type: list
  elements: dict
  sample:
    - hostname: main1
      name: alice.train.main1
      rank: 0
      state: exited
      text: "step 100\n"
changed_names:
  description:
    - The names of the changed containers in the engine. This and each other list has the items of all O(agents), in their order.
  returned: success
  type: list
  elements: str
  sample: [alice.train.main1]
installed:
  description: Hostnames of the containers in which SSH was installed, in rank order.
  returned: if O(install_ssh=true)
  type: list
  elements: str
  sample: [main1, sub1]
artifacts:
  description: The session's folder on the controller.
  returned: if O(install_ssh=true)
  type: str
  sample: /home/alice/.cluster-compute/train
actions:
  description: The changes of containers, volumes and networks.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: The name of the container, volume or network in the engine.
      returned: always
      type: str
      sample: alice.train.main1
    action:
      description: The change, such as V(created), V(recreated), V(started), V(limited), V(stopped), V(removed),
        V(volume removed) or V(network removed).
      returned: always
      type: str
      sample: created
left:
  description: For O(state=absent), the volumes of these sessions that other containers still mount.
  returned: success
  type: list
  elements: str
  sample: []
network:
  description: The network of the session, as M(cluster.compute.network) returns it.
  returned: if O(network=true), for O(state=created)
  type: dict
  sample:
    name: alice.train
    driver: bridge
    subnet: 10.201.0.0/26
network_duration:
  description: Seconds of the call for the network.
  returned: if O(network=true), for O(state=created)
  type: float
  sample: 0.08
left_networks:
  description:
    - The networks of these sessions that M(cluster.compute.network) can remove afterwards on this engine, because the engines of a
      Swarm share them and this one is a manager, or because the engine does not let go of them.
  returned: if O(network=true), for O(state=absent)
  type: list
  elements: str
  sample: []
duration:
  description: Seconds that the call took; on the slowest of O(agents).
  returned: always
  type: float
  sample: 0.41
failure:
  description: The failure, for playbooks.
  returned: failure
  type: dict
  sample:
    code: conflict
    message: "sub1: on agent1 the name alice.train.sub1 is used by container 0123456789ab, which does not belong to this
      session; remove or rename it."
    where: agent1
"""

import time

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.cluster.compute.plugins.module_utils._agents.host import engine_limits
from ansible_collections.cluster.compute.plugins.module_utils._core.errors import InputError
from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json
from ansible_collections.cluster.compute.plugins.module_utils._core.parallel import default_parallelism
from ansible_collections.cluster.compute.plugins.module_utils._core.waiting import deadline_in
from ansible_collections.cluster.compute.plugins.module_utils._docker.client import Engine
from ansible_collections.cluster.compute.plugins.module_utils._docker.containers import AgentContainers
from ansible_collections.cluster.compute.plugins.module_utils._docker.logs import LogRequest
from ansible_collections.cluster.compute.plugins.module_utils._docker.networks import present, without_networks
from ansible_collections.cluster.compute.plugins.module_utils._docker.removal import Removal, stopped
from ansible_collections.cluster.compute.plugins.module_utils._docker.secrets import Delivery
from ansible_collections.cluster.compute.plugins.module_utils._module import (
    at_least,
    engine_options,
    joined,
    read_plan,
    run,
)
from ansible_collections.cluster.compute.plugins.module_utils._ssh.container_files import Bundle
from ansible_collections.cluster.compute.plugins.module_utils._ssh.installer import FileInstaller

ARGUMENT_SPEC = {
    "state": {"type": "str", "choices": ["created", "started", "limited", "stopped", "absent"], "default": "started"},
    "agent": {"type": "str"},
    "agents": {"type": "list", "elements": "str"},
    "plan": {"type": "dict"},
    "sessions": {"type": "list", "elements": "str"},
    "launch": {"type": "str", "default": ""},
    "parallelism": {"type": "int"},
    "deadline": {"type": "int", "default": 60},
    "logs": {
        "type": "dict",
        "options": {
            "session": {"type": "str", "required": True},
            "tail": {"type": "int"},
            "total": {"type": "int", "default": 64 << 20},
            "deadline": {"type": "int", "default": 60},
        },
    },
    "stop_timeout": {"type": "int"},
    "bootstrap_timeout": {"type": "int", "default": 300},
    "install_ssh": {"type": "bool", "default": False},
    "network": {"type": "bool", "default": False},
    "network_agent": {"type": "str", "default": ""},
    "artifacts": {"type": "path"},
    "address": {"type": "str"},
    "bundle": {"type": "str", "no_log": True},
    "secrets": {"type": "str", "no_log": True},
    "runtime_volume": {"type": "str", "default": ""},
    "runtime_edition": {"type": "str", "default": ""},
    **engine_options(),
}

RULES = {
    "mutually_exclusive": [["plan", "sessions"], ["agent", "agents"]],
    "required_one_of": [["agent", "agents"]],
    "required_if": [
        *[("state", state, ["plan"]) for state in ("created", "started", "limited")],
        *[("state", state, ["plan", "sessions"], True) for state in ("stopped", "absent")],
    ],
    "supports_check_mode": True,
}


def work(params: Json, check_mode: bool) -> Json:
    at_least(params, parallelism=1, deadline=0, stop_timeout=0, timeout=1)
    if not params["agent"]:
        raise InputError(
            "agents",
            params["agents"],
            "is read by the action plugin; use the module as cluster.compute.containers in a task",
        )
    parallelism = params["parallelism"] or default_parallelism()
    engine = Engine(params["docker_host"], params["timeout"], params["agent"])
    if params["state"] == "absent":
        return _absent(engine, params, parallelism, check_mode)
    if params["plan"] is None:
        return stopped(engine, params["sessions"], parallelism, params["stop_timeout"], check=check_mode).to_json()
    launch = AgentContainers(
        engine=engine,
        plan=read_plan(params["plan"]),
        agent=params["agent"],
        parallelism=parallelism,
        deadline=deadline_in(params["deadline"]),
        limits=engine_limits(params["docker_host"]),
        runtime=params["runtime_volume"],
        edition=params["runtime_edition"],
        delivery=Delivery.from_text(params["secrets"]) if params["secrets"] else None,
        bootstrap_timeout=params["bootstrap_timeout"],
        check=check_mode,
    )
    if params["state"] == "created":
        return _created(launch, params)
    if params["state"] == "stopped":
        return launch.stopped(params["stop_timeout"]).to_json()
    work_of = {"started": launch.started, "limited": launch.limited}
    return work_of[params["state"]]().to_json()


def _absent(engine: Engine, params: Json, parallelism: int, check: bool) -> Json:
    sessions = params["sessions"] if params["plan"] is None else [read_plan(params["plan"]).session.id]
    logs = LogRequest.from_options(params["logs"]) if params["logs"] else None
    removal = Removal(engine, sessions, params["launch"], parallelism, params["deadline"], logs)
    result = removal.carry_out(check=check).to_json()
    if not params["network"]:
        return result
    networks, left = without_networks(engine, sessions, params["deadline"], check)
    removed = [{"name": name, "action": "network removed"} for name in networks["removed"]]
    return {**joined(result, networks), "actions": [*result["actions"], *removed], "left_networks": left}


def _created(launch: AgentContainers, params: Json) -> Json:
    begun = time.monotonic()
    network = present(launch.engine, launch.plan, launch.check) if params["network"] else {}
    seconds = round(time.monotonic() - begun, 3)
    result = launch.created().to_json()
    if params["install_ssh"]:
        if not params["bundle"]:
            raise InputError(
                "bundle", None, "is set by the action plugin; use the module as cluster.compute.containers in a task"
            )
        installer = FileInstaller(launch.engine, launch.plan, launch.agent, Bundle.from_text(params["bundle"]))
        installed = installer.install((), launch.check)
        result = {**joined(result, installed), "installed": installed["installed"]}
    if not network:
        return result
    return {**joined(network, result), "network": network["network"], "network_duration": seconds}


def main() -> None:
    run(AnsibleModule(argument_spec=ARGUMENT_SPEC, **RULES), work)


if __name__ == "__main__":
    main()
