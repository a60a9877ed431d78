# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Make an image of a container of a running session, and give it to all agents that can be reached."""

from __future__ import annotations

from typing import List

from ...module_utils._shared.codec import ModuleResult
from ...module_utils._shared.documents.image import NEVER
from ...module_utils._shared.documents.step_documents import CommitSpec
from ...module_utils._shared.errors import ComputeError, Failure, InputError
from .._client.answers import chosen
from .._client.shell import Shell
from .._hosts.conductor import Play, succeeded
from .._hosts.results import UNREACHABLE
from .._hosts.steps import IMAGE_CHECK_NAME, IMAGE_COMMIT, IMAGE_MEASURE, STORE_CHECK_COMMIT
from .._settings.settings import Settings
from .images import ImageTarget, distribute

_VARIABLE = "session_commit_image"


def commit_container(play: Play, settings: Settings) -> ModuleResult:
    """Make the image that these variables describe; its name and ID. Nothing is changed if any agent or the policy refuses."""
    with play.phase("check"):
        name, image = str(play.value("session_name")), settings.commit_image
        if not image:
            raise InputError(_VARIABLE, "", "must be given, as in -e session_commit_image=team/train:2")
        document = Shell(play.artifacts, name).document
        [host] = chosen(document, [settings.commit_container], "session_commit_container")
        session, owner = document.session.id, document.session.owner
        if play.owner not in ("", owner):
            raise InputError("session_owner", play.owner, f"is not the owner of session {name}, who is {owner}")
        agent = next(one.agent for one in document.containers if one.hostname == host)
        if agent not in play.names:
            raise InputError("session_name", name, f"{host} is on {agent}, which this inventory does not have")
        play.on_head(STORE_CHECK_COMMIT(session=session, owner=owner, image=image))
        others = [one for one in _reached(play, image, owner) if one != agent]
        wanted = CommitSpec(session, owner, name, host, image, squash=settings.commit_squash)
        measured = play.on(agent, IMAGE_MEASURE(wanted=wanted))
    play.say(measured.message)
    if play.check:
        return {"changed": True, "image": image, "id": ""}
    with play.phase("commit"):
        commit = IMAGE_COMMIT(wanted=wanted, deadline=settings.commit_timeout)
        made = play.counted([agent], commit)[agent]
    play.say(f"Image {image} is {made.id} on {agent}")
    _spread(play, image, owner, [agent, *others])
    return {"changed": True, "image": image, "id": made.id}


def _reached(play: Play, image: str, owner: str) -> List[str]:
    """The agents that answer. Raises StepError if one of them has another image of that name."""
    found = play.try_on_each(play.names, IMAGE_CHECK_NAME(name=image, owner=owner))
    lost = [agent for agent, one in found.items() if isinstance(one, Failure) and one.code == UNREACHABLE]
    succeeded({agent: one for agent, one in found.items() if agent not in lost})
    if lost:
        message = "%s cannot be reached; a former image of this name stays there until a launch replaces it."
        play.warn(message % ", ".join(lost))
    return [agent for agent in found if agent not in lost]


def _spread(play: Play, image: str, owner: str, agents: List[str]) -> None:
    """Copy the image from the first of the agents to the others. A copy that fails is a warning: a launch copies it again."""
    wanted = ImageTarget(image, agents, agents, pull=NEVER, variable=_VARIABLE, owner=owner)
    try:
        distribute(play, wanted)
    except ComputeError as error:
        play.warn(f"Image {image} is on {agents[0]}, and not on all other agents: {error.message}")
