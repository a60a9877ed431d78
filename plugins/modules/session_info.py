#!/usr/bin/python
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: session_info
short_description: List sessions and the resources that they use
description:
  - Lists sessions from the store on the head, with the state of their containers from the agents' reports.
  - A running session is degraded if a container does not run, or its agent cannot be reached.
options:
  name:
    description:
      - Only sessions of this name.
    type: str
  owner:
    description:
      - Only sessions of this owner; V(all) for the sessions of all owners.
      - If not set, the controller's user.
    type: str
  ended:
    description:
      - Whether to list ended sessions, too, with their history.
    type: bool
    default: false
  logs:
    description:
      - Whether to return the logs of the newest session's containers, if the session has ended.
    type: bool
    default: false
  newest:
    description:
      - Whether to return the newest of the sessions as RV(session), and to fail if there is none.
    type: bool
    default: false
  containers:
    description:
      - Hostnames that the session must have, with O(newest=true).
    type: list
    elements: str
    default: []
  agents:
    description:
      - The results of M(cluster.compute.agent_info) on all agents, or the reports in them.
      - If not set, the results that the hosts of the play registered as C(__session_report).
    type: list
    elements: dict
    default: []
extends_documentation_fragment:
  - cluster.compute.attributes.actiongroup_compute
  - cluster.compute.store
  - cluster.compute.attributes.info
  - cluster.compute.attributes.action
author:
  - The cluster.compute authors (@cluster-compute)
seealso:
  - module: cluster.compute.session
"""

EXAMPLES = r"""
- name: List the sessions
  cluster.compute.session_info:
    agents: "{{ ansible_play_hosts_all | map('extract', hostvars, ['report', 'agent']) | list }}"
  delegate_to: "{{ groups['head'][0] }}"
  run_once: true
  register: listed
"""

RETURN = r"""
sessions:
  description: The sessions, oldest first.
  type: list
  elements: dict
  returned: success
  sample:
    - name: train
      state: RUNNING
      size: 4
      degraded: []
queue:
  description: The waiting sessions in the order of their turns, each with C(paths), the folders that its agents must have.
  type: list
  elements: dict
  returned: success
session:
  description: The newest of the sessions.
  type: dict
  returned: with O(newest=true)
agents:
  description: The capacity of each agent, and what running sessions and launches use of it. Waiting sessions use nothing.
  type: list
  elements: dict
  returned: success
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json
from ansible_collections.cluster.compute.plugins.module_utils._core.reports import Agent
from ansible_collections.cluster.compute.plugins.module_utils._head.kept_logs import kept_logs
from ansible_collections.cluster.compute.plugins.module_utils._head.listing import list_agents, list_sessions
from ansible_collections.cluster.compute.plugins.module_utils._head.state_folder import state_dir
from ansible_collections.cluster.compute.plugins.module_utils._head.store import Store
from ansible_collections.cluster.compute.plugins.module_utils._head.upkeep import adopt
from ansible_collections.cluster.compute.plugins.module_utils._module import run, store_options

ARGUMENT_SPEC = {
    "name": {"type": "str"},
    "owner": {"type": "str"},
    "ended": {"type": "bool", "default": False},
    "logs": {"type": "bool", "default": False},
    "newest": {"type": "bool", "default": False},
    "containers": {"type": "list", "elements": "str", "default": []},
    "agents": {"type": "list", "elements": "dict", "default": []},
    **store_options(),
}

RULES = {"supports_check_mode": True}


def work(params: Json, check_mode: bool) -> Json:
    agents = tuple(Agent.from_json(report) for report in params["agents"])
    folder = state_dir(params["state_dir"])
    store = Store(folder, read_only=True)
    try:
        # Sessions of a lost store are listed from their labels; the store itself is not touched.
        with store.transaction(keep=False):
            adopt(store, agents, now=0.0)
            rows = store.select(params["name"], params["owner"], params["ended"])
            sessions = list_sessions(rows, agents)
            for session in sessions:
                session["logs"] = []
            if params["logs"] and sessions:
                sessions[-1]["logs"] = kept_logs(folder, sessions[-1]["id"])
            return {"changed": False, "sessions": sessions, "agents": list_agents(store, agents)}
    finally:
        store.close()


def main() -> None:
    run(AnsibleModule(argument_spec=ARGUMENT_SPEC, **RULES), work)


if __name__ == "__main__":
    main()
