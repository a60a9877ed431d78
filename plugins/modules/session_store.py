#!/usr/bin/python
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: session_store
short_description: Share the session store of a head with the users of its engine
description:
  - Creates the folder of the session store for the group of the engine's socket, with mode 2770. All users of the engine then
    use the same store, so that no two of them book the same resources.
  - Shares the default folder if it is private. Another folder that exists keeps its mode.
  - Writes the policy of the site.
options:
  docker_host:
    description:
      - The address of the engine. If it has no socket on this host, or only root may use that socket, the store is for this
        user alone.
      - If not set, E(DOCKER_HOST) of the environment there, else C(unix:///var/run/docker.sock).
    type: str
    default: ""
  policy:
    description:
      - The policy of the site, as the variable C(agent_policy) of the role P(cluster.compute.agent#role). It is written to
        C(/etc/cluster-compute/policy.json), or to C(policy.json) in O(state_dir) if that is another folder, where only this user
        can change it. Every decision about a session reads it.
      - An empty dictionary removes all limits. If not set, the policy stays as it is.
    type: dict
extends_documentation_fragment:
  - cluster.compute.attributes
  - cluster.compute.attributes.action
  - cluster.compute.attributes.actiongroup_compute
  - cluster.compute.store
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: full
author:
  - The cluster.compute authors (@cluster-compute)
seealso:
  - module: cluster.compute.schedule
"""

EXAMPLES = r"""
- name: Share the session store
  cluster.compute.session_store:
    policy:
      default: {sessions: 4, gpus: 2, lifetime: 604800}
      owners: {alice: {gpus: 8}}
  become: true
"""

RETURN = r"""
state_dir:
  description: The folder of the store.
  type: str
  returned: success
mode:
  description: The mode of the folder.
  type: str
  returned: success
  sample: "2770"
gid:
  description: The group that shares the folder, or -1 if it is private.
  type: int
  returned: success
"""

from typing import Tuple

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._core.documents import Json
from ..module_utils._head.policy_file import read_document, write_document
from ..module_utils._head.provisioned_store import Folder, desired, provide
from ..module_utils._head.state_folder import engine_group, state_dir
from ..module_utils._module import run, store_options
from ..module_utils._planning.policy import parse_policy

ARGUMENT_SPEC = {
    "docker_host": {"type": "str", "default": ""},
    "policy": {"type": "dict"},
    **store_options(),
}

RULES = {"supports_check_mode": True}


def work(params: Json, check_mode: bool) -> Json:
    folder, gid = state_dir(params["state_dir"]), engine_group(params["docker_host"])
    before, after = Folder.of(folder), desired(folder, gid)
    old, new = _policies(folder, params["policy"])
    if before != after and not check_mode:
        provide(folder, after)
    if old != new and not check_mode:
        write_document(folder, new)
    return {
        "changed": before != after or old != new,
        "state_dir": folder,
        "mode": after.mode,
        "gid": after.gid,
        "diff": {"before": {**before.to_json(), "policy": old}, "after": {**after.to_json(), "policy": new}},
    }


def _policies(folder: str, policy: Json | None) -> Tuple[Json, Json]:
    """The policy as it is, and as it is to be."""
    if policy is None:
        return {}, {}
    parse_policy(policy)
    return read_document(folder), policy


def main() -> None:
    run(AnsibleModule(argument_spec=ARGUMENT_SPEC, **RULES), work)


if __name__ == "__main__":
    main()
