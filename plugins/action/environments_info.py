# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All of ``environments_info``: it asks every host of the play for the images of the environments."""

from __future__ import annotations

from typing import Any, List, Mapping, Sequence

from ansible.errors import AnsibleError

from ..module_utils._core import arrival
from ..module_utils._core.documents import Json
from ..module_utils._core.errors import ComputeError
from ..module_utils._planning.catalogue import listed, to_build
from ..module_utils._planning.options import OPTIONS
from ..module_utils._planning.variable import ENVIRONMENTS
from ..module_utils._text.table import environments_table
from ..plugin_utils._conduct.action import ConductorAction
from ..plugin_utils._conduct.play import Play
from ..plugin_utils._conduct.variables import checked
from ..plugin_utils._other_hosts import OtherHosts
from ..plugin_utils._results import failure_reason


class ActionModule(ConductorAction):
    """One task for all agents."""

    OPTIONS = OPTIONS["environments_info"]

    def conduct(self, play: Play, options: Mapping[str, Any]) -> Json:
        settings = checked(self, play.task_vars, ENVIRONMENTS)["variables"]
        if options["build"] is not None:
            return {"changed": False, "build": to_build(options["build"])}
        environments = listed(settings["session_environments"])
        found, warnings = images_of(play.others, play.names, environments)
        play.warn(*warnings)
        entries = [with_images(entry, found) for entry in environments]
        return {"changed": False, "environments": entries, "lines": environments_table(entries)}


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
