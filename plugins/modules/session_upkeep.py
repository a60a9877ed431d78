#!/usr/bin/python
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: session_upkeep
short_description: Record the use of the agents, and remove old sessions and logs from the store
description:
  - Records a sample of what is allocated and of what is used on all agents, for the plot of use over time.
  - Notes in the history when a running session loses containers, and when it has all of them again.
  - Removes sessions that ended long ago, with their plans, their history and their logs, and the oldest logs beyond a size.
options:
  keep_days:
    description:
      - Days for which a session is kept after its end; V(0) for ever.
    type: int
    default: 90
  keep_logs:
    description:
      - Size of all kept logs together, such as V(4g); V(0) for no limit. The logs of the sessions that ended first are removed.
    type: str
    default: 4g
  owner:
    description:
      - The owner whose degraded sessions are noted in their history.
    type: str
    default: ''
  folders:
    description:
      - The sessions to which directories of the controller belong. RV(ended_folders) are those that have ended.
    type: list
    elements: str
    default: []
  agents:
    description:
      - The results of M(cluster.compute.agent_info) on all agents, with O(ignore:measure=true).
    type: list
    elements: dict
    default: []
extends_documentation_fragment:
  - cluster.compute.attributes
  - cluster.compute.attributes.actiongroup_compute
  - cluster.compute.store
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
  idempotent:
    support: partial
    details: A sample is recorded each time, at most every 20 seconds. It is no change.
author:
  - The cluster.compute authors (@cluster-compute)
seealso:
  - module: cluster.compute.session_info
"""

EXAMPLES = r"""
- name: Record a sample, and remove what ended more than a month ago
  cluster.compute.session_upkeep:
    keep_days: 30
  delegate_to: "{{ groups['agents'] | first }}"
  run_once: true
"""

RETURN = r"""
sample:
  description: The sums of capacity, allocation and measured use over the agents, and the numbers of live and waiting sessions.
  type: dict
  returned: success
degraded:
  description: The sessions of the owner that have lost a container since the last pass.
  type: list
  elements: dict
  returned: success
ended_folders:
  description: Those of O(folders) that have ended.
  type: list
  elements: str
  returned: success
retired:
  description: The sessions that were removed from the store.
  type: list
  elements: str
  returned: success
logs_removed:
  description: The sessions whose logs were removed.
  type: list
  elements: str
  returned: success
"""

import time

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._core.documents import Json
from ..module_utils._core.reports import Agent
from ..module_utils._core.units import parse_bytes
from ..module_utils._head.health import note_degraded
from ..module_utils._head.listing import list_agents
from ..module_utils._head.retention import expired, remove_logs, retire, surplus_logs
from ..module_utils._head.samples import add_sample, sample
from ..module_utils._head.state_folder import state_dir
from ..module_utils._head.store import Store
from ..module_utils._head.usage import holdings
from ..module_utils._module import at_least, run, store_options

ARGUMENT_SPEC = {
    "keep_days": {"type": "int", "default": 90},
    "keep_logs": {"type": "str", "default": "4g"},
    "owner": {"type": "str", "default": ""},
    "folders": {"type": "list", "elements": "str", "default": []},
    "agents": {"type": "list", "elements": "dict", "default": []},
    **store_options(),
}

RULES = {"supports_check_mode": True}


def work(params: Json, check_mode: bool) -> Json:
    at_least(params, keep_days=0)
    log_bytes = parse_bytes(params["keep_logs"], "keep_logs")
    now = time.time()
    agents = tuple(Agent.from_json(report) for report in params["agents"])
    folder = state_dir(params["state_dir"])
    store = Store(folder, read_only=check_mode)
    try:
        with store.transaction(keep=not check_mode):
            live = store.live()
            taken = sample(list_agents(holdings(store, agents), agents), [row.state for row in live], now)
            add_sample(store, taken)
            degraded = note_degraded(store, agents, params["owner"], now)
            retired = expired(store, agents, now, params["keep_days"])
            retire(store, retired, now)
            ended_folders = store.ended(params["folders"])
    finally:
        store.close()
    # After the transaction: a launch does not wait for the removal of files.
    surplus = list(dict.fromkeys([*retired, *surplus_logs(folder, {row.id for row in live}, log_bytes)]))
    removed = [] if check_mode else remove_logs(folder, surplus)
    return {
        "changed": bool(retired or removed),
        "sample": taken,
        "degraded": [row.to_json() for row in degraded],
        "ended_folders": ended_folders,
        "retired": retired,
        "logs_removed": removed,
    }


def main() -> None:
    run(AnsibleModule(argument_spec=ARGUMENT_SPEC, **RULES), work)


if __name__ == "__main__":
    main()
