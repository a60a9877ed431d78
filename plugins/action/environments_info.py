# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All of ``environments_info``: it asks every host of the play for the images of the environments."""

from __future__ import annotations

from typing import Any, List, Mapping, Sequence

from ..module_utils._shared.codec import Json
from ..module_utils._shared.documents import validation
from ..module_utils._shared.planning.catalogue import list_environments, to_build
from ..module_utils._shared.planning.variable import ENVIRONMENTS
from ..module_utils._shared.text.table import environments_table, presets_table
from ..plugin_utils._hosts.conducted_action import ConductorAction
from ..plugin_utils._hosts.conductor import Play
from ..plugin_utils._hosts.results import failure_reason
from ..plugin_utils._hosts.steps import IMAGE_DESCRIBE
from ..plugin_utils._settings.options import OPTIONS
from ..plugin_utils._variables.request_variables import checked_settings


class ActionModule(ConductorAction):
    """One task for all agents."""

    OPTIONS = OPTIONS["environments_info"]

    def conduct(self, play: Play, options: Mapping[str, Any]) -> Json:
        settings = checked_settings(self, play.task_vars, ENVIRONMENTS)
        if options["build"] is not None:
            return {"changed": False, "build": to_build(options["build"])}
        environments = list_environments(settings.environments)
        found = images_of(play, environments)
        entries = [with_images(entry, found) for entry in environments]
        presets = [{"name": name, **resources} for name, resources in settings.presets.items()]
        lines = [*environments_table(entries), "", *presets_table(presets)]
        return {"changed": False, "environments": entries, "presets": presets, "lines": lines}


def images_of(play: Play, environments: Sequence[Json]) -> List[Json]:
    """The images of the environments that the agents have. An agent that fails is a warning, and not asked again."""
    found: List[Json] = []
    agents = list(play.names)
    for entry in environments:
        asked = IMAGE_DESCRIBE(name=entry["image"])
        for agent, image in play.answers(agents, asked, validation.image).items():
            if image.get("failed"):
                agents.remove(agent)
                reason = failure_reason(image)
                play.warn(reason if agent in reason else f"{agent}: {reason}")
            else:
                found.append({**image, "reference": entry["image"], "agent": agent})
    return found


def with_images(entry: Json, images: Sequence[Json]) -> Json:
    """An environment with the agents that have its image, and the size of the largest of these images."""
    own = [image for image in images if image["present"] and image["reference"] == entry["image"]]
    size = max((image["size"] for image in own), default=0)
    return {**entry, "size": size, "agents": [image["agent"] for image in own]}
