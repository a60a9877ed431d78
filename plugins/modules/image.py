#!/usr/bin/python
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: image
short_description: Bring one image to all agents that need it
description:
  - Pulls an image from its registry, or copies it from an agent that has it to those that lack it, so that all have the very same.
  - The role P(cluster.compute.image#role) puts the steps in order.
options:
  state:
    description:
      - V(asked) tells whether the engine has the image. V(present) pulls it; where that fails the result says why, and the
        module does not fail.
      - V(planned) and V(decided) work on the controller, from what all agents answered. V(planned) tells who pulls, V(decided)
        whose image counts and who gets a copy of it.
      - V(fetched) brings an archive of the image to the controller, V(copied) takes it from there into the engine, and V(cleared)
        removes it from the controller.
      - V(saved) and V(loaded) are the agent's parts of those.
    type: str
    choices: [asked, present, planned, decided, fetched, copied, cleared, saved, loaded]
    default: asked
  name:
    description:
      - The image's reference, such as V(registry.example.org/team/train:2) or V(pytorch/pytorch@sha256:…).
    type: str
    default: ""
  agent:
    description:
      - The agent's name in the inventory.
    type: str
    default: ""
  pull:
    description:
      - When to pull, for O(state=present), O(state=planned) and O(state=decided).
      - V(missing) is where the image is not there, or is another one than the first agent's of O(needing) that has it.
        V(always) asks the registry for the newest, and fails without it. V(never) leaves copying alone.
    type: str
    choices: [missing, always, never]
    default: missing
  needing:
    description:
      - The agents that need the image, in rank order.
    type: list
    elements: str
    default: []
  images:
    description:
      - What the agents answered, for O(state=planned) and O(state=decided).
    type: list
    elements: dict
    default: []
  pulled:
    description:
      - For O(state=decided), the agents that were to pull.
    type: list
    elements: str
    default: []
  begun:
    description:
      - For O(state=decided), when O(state=planned) was.
    type: float
    default: 0
  variable:
    description:
      - The variable that an error names for O(name).
    type: str
    default: session_image
  id:
    description:
      - The id of the image that it must be.
    type: str
    default: ""
  content:
    description:
      - A digest of the image that it must be, where engines number images in different ways.
    type: str
    default: ""
  digests:
    description:
      - What registries know that image by.
    type: list
    elements: str
    default: []
  size:
    description:
      - Its size in bytes.
    type: int
    default: 0
  path:
    description:
      - The archive.
    type: path
  username:
    description:
      - Who logs in to the registry. Without one, the login that the controller's Docker client has for that registry is used,
        and then the agent's own.
    type: str
  password:
    description:
      - That user's password, or a token in its place.
    type: str
  identity_token:
    description:
      - What some registries give instead of a password.
    type: str
  deadline:
    description:
      - Seconds that a pull may take. A registry that does not answer at all is given up after ten.
    type: int
    default: 1800
extends_documentation_fragment:
  - cluster.compute.engine
  - cluster.compute.attributes
  - cluster.compute.attributes.action
  - cluster.compute.attributes.actiongroup_compute
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
  idempotent:
    support: full
author:
  - The cluster.compute authors (@cluster-compute)
"""

EXAMPLES = r"""
- name: Pull an image where it is missing
  cluster.compute.image:
    state: present
    name: registry.example.org/team/train:2
    agent: "{{ inventory_hostname }}"
    username: alice
    password: "{{ vault_registry_password }}"
  register: pulled
"""

RETURN = r"""
image:
  description: The agent's image, or that it has none and why.
  returned: for O(state=asked), O(state=present), O(state=copied) and O(state=loaded)
  type: dict
  sample:
    agent: agent1
    reference: registry.example.org/team/train:2
    present: true
    id: sha256:0d33…
    digests: ["registry.example.org/team/train@sha256:77af…"]
    size: 161061273
    architecture: x86_64
    reason: ""
plan:
  description: Who pulls which image, or whose is copied to whom.
  returned: for O(state=planned) and O(state=decided)
  type: dict
begun:
  description: When O(state=planned) was, in seconds since the epoch.
  returned: for O(state=planned)
  type: float
told:
  description: How the image comes to the agents, in one line.
  returned: for O(state=decided)
  type: str
  sample: "Image train:2: pulled on agent1, agent2 in 8.1 s"
path:
  description: The archive on the controller.
  returned: for O(state=fetched)
  type: str
duration:
  description: Seconds that the call took.
  returned: always
  type: float
  sample: 8.1
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.cluster.compute.plugins.module_utils._agents.image_distribution import (
    ALWAYS,
    MISSING,
    NEVER,
    same,
)
from ansible_collections.cluster.compute.plugins.module_utils._core.errors import EngineError
from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json
from ansible_collections.cluster.compute.plugins.module_utils._core.waiting import deadline_in
from ansible_collections.cluster.compute.plugins.module_utils._docker import images
from ansible_collections.cluster.compute.plugins.module_utils._docker.images import ImageEngine
from ansible_collections.cluster.compute.plugins.module_utils._module import at_least, engine_options, run

ARGUMENT_SPEC = {
    "state": {
        "type": "str",
        "choices": [
            "asked",
            "present",
            "planned",
            "decided",
            "fetched",
            "copied",
            "cleared",
            "saved",
            "loaded",
        ],
        "default": "asked",
    },
    "name": {"type": "str", "default": ""},
    "agent": {"type": "str", "default": ""},
    "pull": {"type": "str", "choices": ["missing", "always", "never"], "default": "missing"},
    "needing": {"type": "list", "elements": "str", "default": []},
    "images": {"type": "list", "elements": "dict", "default": []},
    "pulled": {"type": "list", "elements": "str", "default": []},
    "begun": {"type": "float", "default": 0},
    "variable": {"type": "str", "default": "session_image"},
    "id": {"type": "str", "default": ""},
    "content": {"type": "str", "default": ""},
    "digests": {"type": "list", "elements": "str", "default": []},
    "size": {"type": "int", "default": 0},
    "path": {"type": "path"},
    "username": {"type": "str"},
    "password": {"type": "str", "no_log": True},
    "identity_token": {"type": "str", "no_log": True},
    "deadline": {"type": "int", "default": 1800},
    **engine_options(),
}

RULES = {"supports_check_mode": True}

# The states that leave an agent, with what its own module does of them.
ON_AGENT = ("asked", "present", "saved", "loaded")


def asked(params: Json, check_mode: bool, engine: ImageEngine) -> Json:
    return {"image": images.describe(engine, params["name"])}


def present(params: Json, check_mode: bool, engine: ImageEngine) -> Json:
    before = images.describe(engine, params["name"])
    wanted = {"present": True, "id": params["id"], "content": params["content"]}
    fits = before["present"] and (not params["id"] or same(before, wanted))
    if params["pull"] == NEVER or (params["pull"] == MISSING and fits):
        return {"image": before}
    if check_mode:
        return {"changed": True, "image": before}
    asking = ImageEngine(params["docker_host"], images.PATIENCE, params["agent"])
    reason = images.pull(engine, asking, params, deadline_in(params["deadline"]))
    if reason and params["pull"] == ALWAYS:
        raise EngineError(reason, params["agent"])
    after = images.describe(engine, params["name"], reason)
    return {"changed": after["id"] != before["id"], "image": after}


def saved(params: Json, check_mode: bool, engine: ImageEngine) -> Json:
    images.save(engine, params["id"], params["path"], params["size"])
    return {"changed": False}


def loaded(params: Json, check_mode: bool, engine: ImageEngine) -> Json:
    return {"changed": True, "image": images.load(engine, params)}


STATES = dict(zip(ON_AGENT, (asked, present, saved, loaded)))


def work(params: Json, check_mode: bool) -> Json:
    at_least(params, deadline=1, timeout=1)
    patient = params["state"] in ("saved", "loaded")
    seconds = max(params["timeout"], images.STALL) if patient else params["timeout"]
    engine = ImageEngine(params["docker_host"], seconds, params["agent"])
    return STATES[params["state"]](params, check_mode, engine)


def main() -> None:
    run(AnsibleModule(argument_spec=ARGUMENT_SPEC, **RULES), work)


if __name__ == "__main__":
    main()
