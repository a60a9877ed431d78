#!/usr/bin/python
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: agent_step
short_description: Internal step of the collection
description:
  - Do not use this module directly; it is internal to the collection and may change in any release.
  - Works on an agent and its engine. On the head, it also works on the session store.
options:
  call: {description: The name of the step., type: str, required: true}
  params: {description: Its parameters., type: dict, default: {}}
  secrets: {description: Parameters that no log contains., type: dict, default: {}}
  agent: {description: The agent's name in the inventory; set by the action plugin., type: str, default: ''}
  edition:
    description: The digest of the scripts in the SSH runtime of this release; set by the action plugin.
    type: str
    default: ''
  fabric: {description: The interface of the agent for the fabric; set by the action plugin., type: str, default: ''}
  mps: {description: The directory of the agent's MPS daemon; set by the action plugin., type: str, default: /run/nvidia-mps}
  docker_host:
    description: The address of the engine. If empty, the environment variable E(DOCKER_HOST) of the host, then the default socket.
    type: str
    default: ''
  timeout: {description: Seconds that a single request to the engine may take., type: int, default: 60}
  state_dir: {description: "The directory of the store. If empty, the directory that the users of the engine share.", type: path}
  head:
    description: Whether the host keeps the session store. The process that stays there then takes the steps of the head, too.
    type: bool
    default: false
  stays:
    description: The directory, on the host, of what may stay there for further steps; set by the action plugin.
    type: path
extends_documentation_fragment:
  - cluster.compute.attributes
attributes:
  diff_mode:
    description: With C(--diff), returns what changed or would change.
    support: partial
    details: Depends on the step.
  idempotent:
    description: A second run with the same options and an unchanged target changes nothing.
    support: partial
    details: Depends on the step.
author: The cluster.compute authors (@cluster-compute)
"""

EXAMPLES = r"""
# The roles and actions of the collection call it.
"""

RETURN = r"""
duration: {description: Seconds that the step took., type: float, returned: always}
"""

import json
from functools import partial
from typing import TYPE_CHECKING, Callable, Dict

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._head.state_folder import state_dir
from ..module_utils._shared.codec import Json, decoded
from ..module_utils._steps.step import OF_AGENT, OF_HEAD, AgentHandle, Head, engine_address, noun_of, prepare
from ..module_utils._worker import module as module_end

if TYPE_CHECKING:
    # What Ansible packs: see Steps.
    from ..module_utils._steps import apps, batch, containers, doctor, folders, image  # noqa: F401

    # isort: split
    from ..module_utils._steps import logs, network, queue, report, runtime, session  # noqa: F401

    # isort: split
    from ..module_utils._steps import sessions, ssh, store, swarm  # noqa: F401

ARGUMENT_SPEC: Dict[str, Json] = {
    "call": {"type": "str", "required": True},
    "params": {"type": "dict", "default": {}},
    "secrets": {"type": "dict", "default": {}, "no_log": True},
    "agent": {"type": "str", "default": ""},
    "edition": {"type": "str", "default": ""},
    "fabric": {"type": "str", "default": ""},
    "mps": {"type": "str", "default": "/run/nvidia-mps"},
    "docker_host": {"type": "str", "default": ""},
    "timeout": {"type": "int", "default": 60},
    "state_dir": {"type": "path"},
    "head": {"type": "bool", "default": False},
    "stays": {"type": "path"},
}


def work(params: Json, check_mode: bool) -> Json:
    if noun_of(params["call"]) in OF_HEAD.nouns:
        return OF_HEAD.call(params["call"], Head(state_dir(params["state_dir"]), check_mode), params["params"])
    module_end.at_least(params, timeout=1)
    own = {"name": params["agent"], "docker_host": engine_address(params["docker_host"]), "check": check_mode}
    place = decoded(AgentHandle, {**params, **own})
    return OF_AGENT.call(params["call"], place, {**params["params"], **params["secrets"]})


def serve_once(request: str, directory: str) -> None:
    """Answer a request of the action plugin, in a process that is no module."""
    asked = json.loads(request)
    module_end.serve_once(asked, ARGUMENT_SPEC, work, directory, _preparation(asked["options"]))


def _preparation(options: Json) -> Callable[[], None] | None:
    """The import of what further steps need, if a process stays. The store may be older than the right of its user to the engine."""
    return None if noun_of(options["call"]) == "store" else partial(prepare, is_head=bool(options.get("head")))


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True)
    module_end.run(module, ARGUMENT_SPEC, work, _preparation(module.params))


if __name__ == "__main__":
    main()
