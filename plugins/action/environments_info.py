# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All of ``environments_info``: it asks every host of the play for the images of the environments."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, List, Mapping, Sequence

from ..module_utils._shared.codec import ModuleResult
from ..module_utils._shared.documents.image import AgentImage, EnvironmentVersion
from ..module_utils._shared.errors import Failure
from ..module_utils._shared.planning.catalogue import list_environments, to_build
from ..module_utils._shared.planning.variable import ENVIRONMENTS
from ..module_utils._shared.text.table import environments_table, presets_table
from ..plugin_utils._hosts.conducted_action import ConductorAction
from ..plugin_utils._hosts.conductor import Play
from ..plugin_utils._hosts.results import one_line
from ..plugin_utils._hosts.steps import IMAGE_DESCRIBE
from ..plugin_utils._settings.options import OPTIONS
from ..plugin_utils._variables.request_variables import checked_settings


class ActionModule(ConductorAction):
    """One task for all agents."""

    OPTIONS = OPTIONS["environments_info"]

    def conduct(self, play: Play, options: Mapping[str, Any]) -> ModuleResult:
        settings = checked_settings(self, ENVIRONMENTS)
        if options["build"] is not None:
            return {"changed": False, "build": [one.to_json() for one in to_build(options["build"])]}
        versions = list_environments(settings.environments)
        found = images_of(play, versions)
        environments = [with_agents(one, found) for one in versions]
        presets = [{"name": name, **resources} for name, resources in settings.presets.items()]
        lines = [*environments_table(environments), "", *presets_table(presets)]
        shown = [one.to_json() for one in environments]
        return {"changed": False, "environments": shown, "presets": presets, "lines": lines}


def images_of(play: Play, versions: Sequence[EnvironmentVersion]) -> List[AgentImage]:
    """The images of the environments that the agents have. An agent that fails is a warning, and not asked again."""
    found: List[AgentImage] = []
    agents = list(play.names)
    for one in versions:
        for agent, image in play.answers(agents, IMAGE_DESCRIBE(name=one.image)).items():
            if isinstance(image, Failure):
                agents.remove(agent)
                reason = one_line(image.message)
                play.warn(reason if agent in reason else f"{agent}: {reason}")
            else:
                found.append(replace(image, agent=agent, reference=one.image))
    return found


def with_agents(one: EnvironmentVersion, images: Sequence[AgentImage]) -> EnvironmentVersion:
    own = [image for image in images if image.present and image.reference == one.image]
    size = max((image.size for image in own), default=0)
    return replace(one, size=size, agents=tuple(image.agent for image in own))
