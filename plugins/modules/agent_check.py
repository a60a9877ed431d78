#!/usr/bin/python
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: agent_check
short_description: Prove that agents are fit for sessions
description:
  - What the playbook P(cluster.compute.agent#role) checks agents with, in steps, each on all agents before the next.
  - Containers that listen or try the kernel are removed again; nothing else is made, and nothing of the host is changed.
options:
  state:
    description:
      - V(examined) reports on the agent itself. V(opened) begins to listen for the others, V(probed) sends to them, and
        V(closed) tells whom the agent has heard.
      - V(judged) works on the controller and makes findings of it all.
    type: str
    choices: [examined, opened, probed, closed, judged]
    default: examined
  name:
    description:
      - The agent's name in the inventory.
    type: str
    default: ""
  image:
    description:
      - The image that containers of a check are made from; it has C(python3) and C(ip).
    type: str
    default: cluster-compute/reference:1
  addresses:
    description:
      - Where other agents may reach this one. The first that an interface of the host holds is taken, else the address
        that the host's default route begins at. The engine's own address in a Swarm comes first.
    type: list
    elements: str
    default: []
  several:
    description:
      - Whether there are other agents, for O(state=examined).
    type: bool
    default: false
  mark:
    description:
      - What tells the datagrams of this check from any other's; O(state=examined) makes one.
    type: str
    default: ""
  agents:
    description:
      - The reports that O(state=examined) returned, of all agents.
    type: list
    elements: dict
    default: []
  probes:
    description:
      - For O(state=judged), by agent what O(state=opened), O(state=probed) and O(state=closed) returned, joined.
    type: dict
    default: {}
  pools:
    description:
      - For O(state=judged), the address pools of sessions.
    type: list
    elements: str
    default: [10.201.0.0/16]
  encrypted:
    description:
      - For O(state=judged), whether encrypted sessions must work.
    type: bool
    default: false
  head:
    description:
      - For O(state=judged), the agent whose Swarm is the right one.
    type: str
    default: ""
extends_documentation_fragment:
  - cluster.compute.engine
  - cluster.compute.attributes
  - cluster.compute.attributes.action
  - cluster.compute.attributes.actiongroup_compute
attributes:
  check_mode:
    support: full
    details:
      - A check changes nothing that stays, so check mode makes no difference.
  diff_mode:
    support: none
  idempotent:
    support: full
author:
  - The cluster.compute authors (@cluster-compute)
seealso:
  - module: cluster.compute.agent_info
"""

EXAMPLES = r"""
- name: Examine this agent by itself
  cluster.compute.agent_check:
    name: "{{ inventory_hostname }}"
  register: examined

- name: Tell what must be mended
  cluster.compute.agent_check:
    state: judged
    agents:
      - "{{ examined.report }}"
  register: judged
"""

RETURN = r"""
report:
  description: What was found on the agent.
  returned: for O(state=examined)
  type: dict
mark:
  description: A mark for the datagrams of this check.
  returned: for O(state=examined)
  type: str
  sample: 3f9c0d1e2b4a
probe:
  description: What this step adds to the agent's part of O(probes).
  returned: for O(state=opened), O(state=probed) and O(state=closed)
  type: dict
  sample:
    heard: [[agent2, 4789/udp]]
findings:
  description: What was found, what must be mended first.
  returned: for O(state=judged)
  type: list
  elements: dict
  contains:
    check:
      description: What was looked at.
      type: str
      returned: always
      sample: udp 4789
    where:
      description: An agent, or a pair of them.
      type: str
      returned: always
      sample: agent1 -> agent2
    status:
      description: C(ok), C(warn) or C(fail).
      type: str
      returned: always
      sample: fail
    found:
      description: What was found.
      type: str
      returned: always
    remedy:
      description: What mends it; empty where nothing is to mend.
      type: str
      returned: always
fit:
  description: Whether nothing must be mended.
  returned: for O(state=judged)
  type: bool
counts:
  description: How many findings there are of each status.
  returned: for O(state=judged)
  type: dict
  sample:
    ok: 30
    warn: 1
    fail: 0
message:
  description: The outcome in one sentence.
  returned: for O(state=judged)
  type: str
duration:
  description: Seconds that the call took.
  returned: always
  type: float
  sample: 0.4
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.cluster.compute.plugins.module_utils._agents import port_probe
from ansible_collections.cluster.compute.plugins.module_utils._agents.examination import examine
from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json
from ansible_collections.cluster.compute.plugins.module_utils._core.waiting import deadline_in
from ansible_collections.cluster.compute.plugins.module_utils._docker.client import Engine
from ansible_collections.cluster.compute.plugins.module_utils._module import engine_options, run

ARGUMENT_SPEC = {
    "state": {"type": "str", "choices": ["examined", "opened", "probed", "closed", "judged"], "default": "examined"},
    "name": {"type": "str", "default": ""},
    "image": {"type": "str", "default": "cluster-compute/reference:1"},
    "addresses": {"type": "list", "elements": "str", "default": []},
    "several": {"type": "bool", "default": False},
    "mark": {"type": "str", "default": ""},
    "agents": {"type": "list", "elements": "dict", "default": []},
    "probes": {"type": "dict", "default": {}},
    "pools": {"type": "list", "elements": "str", "default": ["10.201.0.0/16"]},
    "encrypted": {"type": "bool", "default": False},
    "head": {"type": "str", "default": ""},
    **engine_options(),
}

RULES = {"supports_check_mode": True}

# A listener that nobody comes back for ends after this.
LISTEN = 300
START = 30


def examined(params: Json) -> Json:
    return {"report": examine(params)}


def opened(params: Json) -> Json:
    engine = Engine(params["docker_host"], params["timeout"], params["name"])
    port_probe.listen(engine, params["image"], params["mark"], LISTEN, deadline_in(START))
    return {"probe": {"listened": True}}


def probed(params: Json) -> Json:
    mine = next(one for one in params["agents"] if one["name"] == params["name"])
    others = [one for one in params["agents"] if one["name"] != params["name"] and one.get("address")]
    port_probe.send(params["name"], {one["name"]: one["address"] for one in others}, params["mark"], mine["mtu"])
    joined = {one["name"]: one["address"] for one in others if one["swarm"]["state"] == "active"}
    return {"probe": {"sent": True, "connected": port_probe.connect(joined)}}


def closed(params: Json) -> Json:
    engine = Engine(params["docker_host"], params["timeout"], params["name"])
    return {"probe": {"heard": port_probe.gather(engine, params["mark"])}}


STATES = {"examined": examined, "opened": opened, "probed": probed, "closed": closed}


def work(params: Json, check_mode: bool) -> Json:
    return STATES[params["state"]](params)


def main() -> None:
    run(AnsibleModule(argument_spec=ARGUMENT_SPEC, **RULES), work)


if __name__ == "__main__":
    main()
