# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What an agent adds to the containers of a plan: its image, its SSH runtime, its logging driver, its AMD GPUs."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from .._core.documents import Json
from .._core.errors import EngineError
from .._core.image_reference import names_of
from .client import Engine
from .device_nodes import amd_gpus
from .payloads import AgentSettings
from .runtime import find_runtime


def agent_settings(engine: Engine, reference: str, runtime: str, edition: str) -> AgentSettings:
    """The settings, without limits. Raises an EngineError if the image or the SSH runtime is missing.

    ``runtime`` is the volume of the SSH runtime; if empty, the newest one with the scripts of this edition.
    """
    image = engine.image(reference)
    if image is None:
        message = "Agent %s does not have image %s; build or pull the image there, or use another image."
        raise EngineError(message % (engine.agent, reference), engine.agent)
    volume = runtime or find_runtime(engine, edition)
    if not volume or (runtime and engine.volume(runtime) is None):
        missing = f" (volume {runtime})" if runtime else ""
        message = "Agent %s does not have the SSH runtime of this release%s; run provision_agents.yml."
        raise EngineError(message % (engine.agent, missing), engine.agent)
    environment = (image.get("Config") or {}).get("Env") or []
    path = next((text[len("PATH=") :] for text in environment if text.startswith("PATH=")), "")
    driver = str(engine.info().get("LoggingDriver") or "")
    name = _name_of(image, reference)
    return AgentSettings(image_path=path, runtime=volume, image=name, log_driver=driver, nodes=amd_gpus())


def _name_of(image: Json, reference: str) -> str:
    """The image's name in the engine: its reference, or the name that a copy has instead of a digest."""
    known = image.get("RepoTags") or ()
    return next((name for name in names_of(reference)[1:] if name in known), reference)
