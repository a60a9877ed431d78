#!/usr/bin/python
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: logs_info
short_description: Get the logs of a session's containers on one agent
description:
  - Returns the log of each container of a session on this agent, whether it runs or not. Of a long log,
    only the end is returned.
  - Control characters are escaped, as in C(\\x1b), and colours are left out.
  - A log that cannot be read, for example because of its logging driver, does not fail the module. RV(logs) then holds
    the reason as its text.
options:
  session:
    description:
      - The session's UUID.
    type: str
    required: true
  containers:
    description:
      - Hostnames of the containers, such as V(main1). If empty, the logs of all containers are returned.
    type: list
    elements: str
    default: []
  ended:
    description:
      - Whether only the logs of containers that have ended are returned.
    type: bool
    default: false
  tail:
    description:
      - The number of lines to return from the end of each log. If not set, all lines are returned.
    type: int
  since:
    description:
      - Return only lines written since this time, in seconds since the epoch.
    type: int
    default: 0
  timestamps:
    description:
      - Whether each line begins with its time.
    type: bool
    default: false
  total:
    description:
      - The number of bytes that all logs together may have. Each log has an equal share, of 4 KiB to 4 MiB. Of a longer log, only
        the end is returned.
    type: int
    default: 67108864
  deadline:
    description:
      - Seconds after which no more is read. A container can write faster than its log is read.
    type: int
    default: 60
extends_documentation_fragment:
  - cluster.compute.engine
  - cluster.compute.attributes.info
  - cluster.compute.attributes.action
  - cluster.compute.attributes.actiongroup_compute
attributes:
  check_mode:
    support: full
  diff_mode:
    support: N/A
  idempotent:
    support: full
author:
  - The cluster.compute authors (@cluster-compute)
"""

EXAMPLES = r"""
- name: Get the last 20 lines of main1
  cluster.compute.logs_info:
    session: 3614fdf3-0e04-4a4b-9d5c-1f7c0a8e6b11
    containers: [main1]
    tail: 20
  register: main_log
"""

RETURN = r"""
logs:
  description: One entry for each container, in rank order.
  returned: success
  type: list
  elements: dict
  contains:
    hostname:
      description: The container's hostname.
      type: str
      returned: always
      sample: main1
    name:
      description: The container's name in the engine.
      type: str
      returned: always
    rank:
      description: The container's rank in the session.
      type: int
      returned: always
    state:
      description: The container's state.
      type: str
      returned: always
      sample: running
    text:
      description: What the container wrote to standard output and standard error, in the order of its writing.
      type: str
      returned: always
duration:
  description: Seconds that the call took.
  returned: always
  type: float
  sample: 0.03
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._core.documents import Json
from ..module_utils._docker.client import Engine
from ..module_utils._docker.logs import LogRequest, read_logs
from ..module_utils._module import at_least, engine_options, run

ARGUMENT_SPEC = {
    "session": {"type": "str", "required": True},
    "containers": {"type": "list", "elements": "str", "default": []},
    "ended": {"type": "bool", "default": False},
    "tail": {"type": "int"},
    "since": {"type": "int", "default": 0},
    "timestamps": {"type": "bool", "default": False},
    "total": {"type": "int", "default": 64 << 20},
    "deadline": {"type": "int", "default": 60},
    **engine_options(),
}

RULES = {"supports_check_mode": True}


def work(params: Json, check_mode: bool) -> Json:
    at_least(params, tail=0, since=0, timeout=1, total=1, deadline=1)
    asked = {name: value for name, value in params.items() if name not in engine_options()}
    return {"logs": read_logs(Engine(params["docker_host"], params["timeout"]), LogRequest.from_options(asked))}


def main() -> None:
    run(AnsibleModule(argument_spec=ARGUMENT_SPEC, **RULES), work)


if __name__ == "__main__":
    main()
