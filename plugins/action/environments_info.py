# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All of ``environments_info``: it asks every host of the play for the images of the environments."""

from __future__ import annotations

from typing import List, Sequence

from ansible.errors import AnsibleError

from ..module_utils._core import arrival
from ..module_utils._core.documents import Json
from ..module_utils._core.errors import ComputeError
from ..module_utils._planning.catalogue import check_environments, listed
from ..module_utils._text.table import environments_table
from ..plugin_utils._action import ComputeAction, failure_reason
from ..plugin_utils._other_hosts import OtherHosts

SPEC = {"environments": {"type": "dict", "default": {}}}


class ActionModule(ComputeAction):
    """One task for all agents."""

    _requires_connection = False

    def act(self, args: Json, task_vars: Json) -> Json:  # noqa: ARG002 (the check reads the task itself)
        _valid, checked = self.validate_argument_spec(argument_spec=SPEC)
        environments = listed(check_environments("environments", checked["environments"]))
        hosts = OtherHosts(self, task_vars)
        try:
            found, warnings = images_of(hosts, task_vars["ansible_play_hosts_all"], environments)
        finally:
            hosts.close()
        entries = [with_images(entry, found) for entry in environments]
        return {
            "changed": False,
            "environments": entries,
            "lines": environments_table(entries),
            "warnings": warnings,
        }


def images_of(hosts: OtherHosts, agents: Sequence[str], environments: Sequence[Json]) -> tuple[List[Json], List[str]]:
    """The images of the environments that the agents have, and why agents did not answer."""

    def answer(agent: str) -> tuple[List[Json], str]:
        found: List[Json] = []
        try:
            for entry in environments:
                result = hosts.step(agent, "image.describe", {"name": entry["image"]})
                if result.get("failed"):
                    return found, f"{agent}: {failure_reason(result)}"
                found.append({**arrival.image(result, agent), "reference": entry["image"], "agent": agent})
        except ComputeError as error:
            return found, error.message
        except AnsibleError as error:
            return found, f"{agent}: {failure_reason({'msg': str(error)})}"
        return found, ""

    answers = hosts.each(agents, answer)
    return [image for images, _reason in answers for image in images], [reason for _images, reason in answers if reason]


def with_images(entry: Json, images: Sequence[Json]) -> Json:
    """An environment with the agents that have its image, and the size of the largest of these images."""
    own = [image for image in images if image["present"] and image["reference"] == entry["image"]]
    size = max((image["size"] for image in own), default=0)
    return {**entry, "size": size, "agents": [image["agent"] for image in own]}
