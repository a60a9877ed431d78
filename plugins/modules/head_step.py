#!/usr/bin/python
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: head_step
short_description: Internal step of the collection
description:
  - Do not use this module directly; it is internal to the collection and may change in any release.
  - Works on the session store of the head.
options:
  state_dir: {description: "The directory of the store. If empty, the directory that the users of the engine share.", type: path}
extends_documentation_fragment:
  - cluster.compute.step
  - cluster.compute.attributes
author: The cluster.compute authors (@cluster-compute)
"""

EXAMPLES = r"""
# The roles and actions of the collection call it.
"""

RETURN = r"""
duration: {description: Seconds that the step took., type: float, returned: always}
"""

from typing import TYPE_CHECKING, Dict

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._core.documents import Json
from ..module_utils._head.state_folder import state_dir
from ..module_utils._module import run
from ..module_utils._steps.step import OF_HEAD, Head

if TYPE_CHECKING:
    # What Ansible packs: see Steps.
    from ..module_utils._steps import queue, session, sessions, store  # noqa: F401

ARGUMENT_SPEC: Dict[str, Json] = {
    "call": {"type": "str", "required": True},
    "params": {"type": "dict", "default": {}},
    "state_dir": {"type": "path"},
    "stays": {"type": "path"},
}


def work(params: Json, check_mode: bool) -> Json:
    return OF_HEAD.call(params["call"], Head(state_dir(params["state_dir"]), check_mode), params["params"])


def main() -> None:
    run(AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True), ARGUMENT_SPEC, work, OF_HEAD.prepare)


if __name__ == "__main__":
    main()
