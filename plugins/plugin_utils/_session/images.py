# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Give every agent of a session the same image: agents pull it, or get a copy from an agent that has it."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Dict, Iterator, List, Mapping, Sequence

from ansible import constants

from ...module_utils._shared.codec import ModuleResult
from ...module_utils._shared.documents.image import ALWAYS, MISSING, NEVER, AgentImage
from ...module_utils._shared.documents.plan import Plan
from ...module_utils._shared.documents.step_documents import Change
from ...module_utils._shared.errors import StateError
from ...module_utils._shared.image_reference import registry_of
from ...module_utils._shared.units import show_bytes
from .._client.registry_login import login_for
from .._hosts import direct_call
from .._hosts.call import Call
from .._hosts.conductor import Play
from .._hosts.steps import IMAGE_ASK, IMAGE_DESCRIBE, IMAGE_EXPORT, IMAGE_LOAD, IMAGE_PULL
from .deployment import image_is_settled, is_permitted
from .image_distribution import (
    Copies,
    Pulls,
    by_agent,
    by_architecture,
    check_copies,
    distribution_message,
    plan_copies,
    plan_pulls,
)
from .launch_spec import Launch

ARCHIVE, PREFIX = "image.tar", "image-"
CONTROLLER = "localhost"


@dataclass(frozen=True)
class ImageTarget:
    """An image, and who gets it.

    ``needing`` are the agents that need it, in the order in which their images count; ``asked`` those whose image can be copied,
    which include them. ``elsewhere`` are images of further hosts. ``variable`` is what an error names as the source of the name.
    ``owner`` has made the image of a container: a former image, which the copy takes the name from, is removed. ``rivals`` are agents
    whose newer image of a container counts instead.
    """

    name: str
    needing: Sequence[str]
    asked: Sequence[str]
    elsewhere: Sequence[AgentImage] = ()
    pull: str = "missing"
    deadline: int = 1800
    login: Mapping[str, str] | None = None
    variable: str = "session_image"
    owner: str = ""
    rivals: Sequence[str] = ()

    @classmethod
    def of_session(cls, play: Play, placed: Launch, plan: Plan) -> List[ImageTarget]:
        """The images of a session that an agent may lack. A repair makes what was there, with no newer image of the same name."""
        request, reached = placed.asked.request, [agent for agent in placed.agents if agent.reachable]
        is_again = placed.decision.outcome != "placed" and request.pull == ALWAYS
        given = {key: str(play.value("session_registry" + key) or "") for key in ("", "_username", "_password")}
        settled = {plan.session.image} if image_is_settled(plan, placed.agents, request.pull) else set()
        return [
            cls(
                name,
                needing=needing,
                asked=[agent.name for agent in reached],
                pull=MISSING if is_again else request.pull,
                rivals=[agent.name for agent in reached if is_permitted(plan, agent)],
                deadline=request.pull_timeout,
                login=login_to(name, given[""] or "docker.io", given["_username"], given["_password"]),
            )
            for name, needing in plan.images.items()
            if name not in settled
        ]


def login_to(name: str, registry: str, username: str, password: str) -> Mapping[str, str]:
    """The login for the registry of an image: the given one if it is for that registry, or what C(docker login) has left."""
    if username and (registry or registry_of(name)) == registry_of(name):
        return {"username": username, "password": password}
    return login_for(name)


def check_exist(play: Play, images: Sequence[ImageTarget]) -> None:
    """Refuse an image that exists nowhere before another one is pulled. Raises InputError."""
    for wanted in images if len(images) > 1 else ():
        known = play.on_each(wanted.asked, IMAGE_DESCRIBE(name=wanted.name))
        own = _controller_image(play, wanted.name)
        if any(one.present for one in (*known.values(), *own.values())):
            continue
        if wanted.pull != NEVER:
            asks = IMAGE_ASK(name=wanted.name, **(wanted.login or {}))
            known.update(play.on_each(wanted.needing, asks))
            if not all(known[agent].reason for agent in wanted.needing):
                continue
        nowhere = Copies(copies=tuple(wanted.needing))
        check_copies(wanted.name, wanted.needing, nowhere, known, wanted.variable)


def distribute(play: Play, wanted: ImageTarget) -> bool:
    """Give every agent that needs it the same image; whether any got it. Raises InputError or StateError if that is impossible.

    Each architecture has its own. An image of a container stays on agents of the architecture of the first.
    """
    images = play.on_each(wanted.asked, IMAGE_DESCRIBE(name=wanted.name))
    groups = by_architecture(wanted.needing, images)
    parts = [replace(wanted, needing=group) for group in (groups[:1] if wanted.owner else groups)]
    changed = [_distribute(play, part, dict(images)) for part in parts]
    return any(changed)


def _distribute(play: Play, wanted: ImageTarget, images: Dict[str, AgentImage]) -> bool:
    begun = time.time()
    pulls = plan_pulls(wanted.needing, images, wanted.pull, wanted.name, wanted.rivals)
    images.update(_pulled(play, wanted, pulls))
    copies = _copies(play, wanted, images)
    successful = [agent for agent in pulls.agents if not images[agent].reason]
    message = distribution_message(wanted.name, successful, copies, time.time() - begun)
    if message:
        play.show([message])
    if copies.copies and not play.check:
        _copy(play, wanted, copies)
    return bool(message)


def _pulled(play: Play, wanted: ImageTarget, pulls: Pulls) -> Dict[str, AgentImage]:
    """The images of the agents that pull, after that."""
    if not pulls.agents:
        return {}
    pull = IMAGE_PULL(
        name=wanted.name,
        policy=wanted.pull,
        deadline=wanted.deadline,
        image_id=pulls.id,
        content=pulls.content,
        digests=pulls.digests,
        **(wanted.login or {}),
    )
    with play.phase("pull"):
        return play.counted(pulls.agents, pull)


def _copies(play: Play, wanted: ImageTarget, images: Dict[str, AgentImage]) -> Copies:
    """The agents that get a copy, and the one that has the image. An agent's own image counts more than that of the controller."""
    known = {**by_agent(wanted.elsewhere), **images}
    here = known[wanted.needing[0]]
    if not wanted.elsewhere and not any(one.present and one.fits(here.host) for one in known.values()):
        known = {**_controller_image(play, wanted.name), **known}
    copies = plan_copies(wanted.needing, known, wanted.name, wanted.rivals)
    check_copies(wanted.name, wanted.needing, copies, known, wanted.variable)
    return copies


def _controller_image(play: Play, name: str) -> Dict[str, AgentImage]:
    """The image of the controller's own engine; nothing if the controller has no engine that answers."""
    hostvars = play.task_vars.get("hostvars") or {}
    # An unknown name of hostvars is an undefined value, not a KeyError.
    address = hostvars[CONTROLLER].get("agent_docker_host") if CONTROLLER in hostvars else ""
    call = IMAGE_DESCRIBE(name=name)
    args = {"call": call.step, "params": call.params, "agent": CONTROLLER, "docker_host": str(address or "")}
    result = direct_call.call(args, check_mode=False, diff=False)
    return {} if result.get("failed") else {CONTROLLER: call.read(result, CONTROLLER)}


def _copy(play: Play, wanted: ImageTarget, copies: Copies) -> None:
    with play.phase("copy"), _fetched(play, wanted, copies) as path:

        def delivered(agent: str) -> Call[Change]:
            remote = play.others.host(agent).send(path)
            return IMAGE_LOAD(
                name=wanted.name, path=remote, image_id=copies.id, content=copies.content, owner=wanted.owner
            )

        play.on_each(copies.copies, delivered)


@contextmanager
def _fetched(play: Play, wanted: ImageTarget, copies: Copies) -> Iterator[str]:
    """An archive of the image on the controller, in Ansible's own directory for this run, which only its owner can read."""
    folder = tempfile.mkdtemp(prefix=PREFIX, dir=constants.DEFAULT_LOCAL_TMP)
    try:
        free = shutil.disk_usage(folder).free
        if free < copies.size:
            message = "The controller has %s free in %s, but the copy of image %s needs %s; free some space there."
            amounts = show_bytes(free), os.path.dirname(folder), wanted.name, show_bytes(copies.size)
            raise StateError(message % amounts)
        path = os.path.join(folder, ARCHIVE)
        export = IMAGE_EXPORT(image_id=copies.id, path=path, size=copies.size)

        def fetch(agent: str, call: Call[Change]) -> ModuleResult:
            return play.others.host(agent).fetch(call, path, copies.size)

        play.on_each([copies.source], lambda _agent: export, fetch)
        yield path
    finally:
        shutil.rmtree(folder, ignore_errors=True)
