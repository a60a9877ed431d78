# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All of ``reference_image_plan``: it decides on the controller, from the registered results of the hosts of the play."""

from __future__ import annotations

from ..module_utils._agents.reference_image import plan_reference_image
from ..module_utils._core.documents import Json
from ..plugin_utils._action import ComputeAction

SPEC = {
    "images": {"type": "str", "required": True},
    "answers": {"type": "list", "elements": "dict", "default": []},
    "head": {"type": "str", "required": True},
}


class ActionModule(ComputeAction):
    """Hosts that have not answered yet, or that have failed, do not count."""

    _requires_connection = False

    def act(self, args: Json, task_vars: Json) -> Json:  # noqa: ARG002 (the check reads the task itself)
        _valid, options = self.validate_argument_spec(argument_spec=SPEC)
        active = task_vars["ansible_play_hosts"]
        found = self.results_of_hosts(options["images"], task_vars)
        answers = [*(found[host] for host in active if host in found), *options["answers"]]
        images = [result["image"] for result in answers if result.get("image")]
        return {"changed": False, "plan": plan_reference_image(images, options["head"], active).to_json()}
