#!/usr/bin/python
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: logs
short_description: Read the logs of a session's containers on one agent
description:
  - Returns what each container of a session on this agent has written, running or not; of a log that is longer than 4 MiB
    its end.
  - A log that cannot be read, as with a logging driver that keeps none, is a text that says so; the module does not fail.
options:
  session:
    description:
      - The session's UUID.
    type: str
    required: true
  containers:
    description:
      - Hostnames such as V(main1) to read, instead of all.
    type: list
    elements: str
    default: []
  tail:
    description:
      - How many of the last lines to read; by default all.
    type: int
  since:
    description:
      - Only what was written since this time, in seconds since the epoch.
    type: int
    default: 0
  timestamps:
    description:
      - Whether each line begins with its time.
    type: bool
    default: false
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
- name: The last 20 lines of main1
  cluster.compute.logs:
    session: 3614fdf3-0e04-4a4b-9d5c-1f7c0a8e6b11
    containers: [main1]
    tail: 20
"""

RETURN = r"""
logs:
  description: One entry per container, in rank order.
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
      description: The engine's name of the container.
      type: str
      returned: always
    rank:
      description: Its rank in the session.
      type: int
      returned: always
    state:
      description: Its state.
      type: str
      returned: always
      sample: running
    text:
      description: What it has written, to standard output and standard error, as it came.
      type: str
      returned: always
duration:
  description: Seconds that the call took.
  returned: always
  type: float
  sample: 0.03
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.cluster.compute.plugins.module_utils._core.errors import EngineError
from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json
from ansible_collections.cluster.compute.plugins.module_utils._core.parallel import (
    default_parallelism,
    first_error,
    map_bounded,
)
from ansible_collections.cluster.compute.plugins.module_utils._docker.client import Engine
from ansible_collections.cluster.compute.plugins.module_utils._docker.reports import container_entry
from ansible_collections.cluster.compute.plugins.module_utils._module import at_least, engine_options, run

ARGUMENT_SPEC = {
    "session": {"type": "str", "required": True},
    "containers": {"type": "list", "elements": "str", "default": []},
    "tail": {"type": "int"},
    "since": {"type": "int", "default": 0},
    "timestamps": {"type": "bool", "default": False},
    **engine_options(),
}

RULES = {"supports_check_mode": True}


def work(params: Json, check_mode: bool) -> Json:
    at_least(params, tail=0, since=0, timeout=1)
    engine = Engine(params["docker_host"], params["timeout"])
    entries = [container_entry(one) for one in engine.containers(session=params["session"])]
    chosen = [one for one in entries if not params["containers"] or one["hostname"] in params["containers"]]
    ranked = sorted(chosen, key=lambda one: one["rank"])

    def read(entry: Json) -> str:
        """A log that cannot be read is told in its place: it keeps nobody from reading the rest, or from ending it all."""
        try:
            return engine.logs(entry["engine_id"], params["tail"], params["since"], params["timestamps"])
        except EngineError as error:
            return "(its log cannot be read: %s)\n" % error.message.rstrip(".")

    outcomes = map_bounded(read, ranked, default_parallelism())
    error = first_error(outcomes)
    if error is not None:
        raise error
    return {"logs": [_shown(one.item, one.value or "") for one in outcomes]}


def _shown(entry: Json, text: str) -> Json:
    shown = {key: entry[key] for key in ("hostname", "rank", "state")}
    return {**shown, "name": entry["engine_name"], "text": text}


def main() -> None:
    run(AnsibleModule(argument_spec=ARGUMENT_SPEC, **RULES), work)


if __name__ == "__main__":
    main()
