# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Distribute an image to the agents: choose who pulls it, who gets a copy, and who builds the reference image."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Collection, Dict, List, Mapping, Sequence, Tuple

from ...module_utils._shared.codec import Document
from ...module_utils._shared.documents.image import ALWAYS, NEVER, AgentImage
from ...module_utils._shared.errors import InputError, StateError
from ...module_utils._shared.image_reference import own_digest
from ...module_utils._shared.planning.catalogue import built_by, environment_like
from ...module_utils._shared.units import show_bytes

Images = Mapping[str, AgentImage]


@dataclass(frozen=True)
class Pulls:
    """The agents that pull, and the image that they must get: any if its ID is empty."""

    agents: Tuple[str, ...] = ()
    id: str = ""
    content: str = ""
    digests: Tuple[str, ...] = ()


@dataclass(frozen=True)
class Copies:
    """The image for all agents. ``source`` is empty if no agent has it; ``copies`` are the agents that get a copy."""

    source: str = ""
    id: str = ""
    content: str = ""
    size: int = 0
    copies: Tuple[str, ...] = ()


def by_architecture(needing: Sequence[str], images: Images) -> List[List[str]]:
    """The agents of each architecture: only they can have the same image."""
    groups: Dict[str, List[str]] = {}
    for name in needing:
        groups.setdefault(images[name].host, []).append(name)
    return list(groups.values())


def plan_pulls(
    needing: Sequence[str], images: Images, pull: str, reference: str = "", rivals: Collection[str] = ()
) -> Pulls:
    """The agents that pull, and the image that they must get: the one that counts. They have one architecture.

    An image by digest is the same wherever it is: no agent decides for another one which image that is. An image that was made of a
    container is in a registry only if it has a digest that is not its ID, which containerd's store lists as a digest: without one, the
    agents get a copy.
    """
    if own_digest(reference):
        lacking = tuple(name for name in needing if pull == ALWAYS or not images[name].present)
        return Pulls(() if pull == NEVER else lacking)
    counted = _counted(needing, images, rivals)
    first = images[counted] if counted else None
    if pull == ALWAYS or first is None:
        return Pulls(() if pull == NEVER else tuple(needing))
    others = tuple(name for name in needing if not images[name].is_same(first.id, first.content))
    is_local = bool(first.origin[1]) and all(one.endswith("@" + first.id) for one in first.digests)
    return Pulls(() if pull == NEVER or is_local else others, first.id, first.content, first.digests)


def plan_copies(needing: Sequence[str], images: Images, reference: str = "", rivals: Collection[str] = ()) -> Copies:
    """The agent whose image is used after the pulls, and the agents without that image; by digest, those without any."""
    source = _counted([*needing, *sorted(set(images).difference(needing))], images, rivals)
    if not source:
        return Copies(copies=tuple(needing))
    image = images[source]
    is_exact = bool(own_digest(reference))
    copies = tuple(
        name
        for name in needing
        if not (images[name].present if is_exact else images[name].is_same(image.id, image.content))
    )
    return Copies(source, image.id, image.content, image.size, copies)


def _counted(names: Sequence[str], images: Images, rivals: Collection[str]) -> str:
    """The agent whose image counts: the first that has one, for the architecture of the first of all if there is any.

    If that was made of a container, a rival has the newest that was made of a container of the same owner.
    """
    usable = [name for name in images if images[name].fits(images[names[0]].host)]
    present = [name for name in names if images[name].present]
    first = next((name for name in present if name in usable), "") or next(iter(present), "")
    if not first or not images[first].origin[1]:
        return first
    owner = images[first].origin[0]
    newer = [name for name in usable if name in rivals and images[name].origin[0] == owner]
    return max([first, *newer], key=lambda name: images[name].origin[1])


def check_copies(reference: str, needing: Sequence[str], plan: Copies, images: Images, variable: str) -> None:
    """Raise an error if there is no image to copy, or if an agent cannot run it or lacks space for it."""
    if not plan.source:
        raise InputError(variable, reference, _no_source(reference, plan, images))
    for name in needing:
        image, here = images[plan.source], images[name]
        if not image.fits(here.host):
            failed = f", and its pull failed ({here.reason.rstrip('.')})" if here.reason else ""
            rule = "is built for %s, but %s is %s%s; choose an image for that architecture, or other agents"
            raise InputError(variable, reference, rule % (image.architecture, name, here.host, failed))
    for name in plan.copies:
        here = images[name]
        if 0 <= here.free < 2 * plan.size:
            message = "%s has %s free, but copying image %s temporarily needs %s; free some space there."
            amounts = show_bytes(here.free), reference, show_bytes(2 * plan.size)
            raise StateError(message % (name, *amounts), name)


def _no_source(reference: str, plan: Copies, images: Images) -> str:
    environment = built_by(reference)
    if environment:
        return f"no agent has this environment; build it: cluster-compute env build {environment}"
    meant = environment_like(reference)
    hint = f"; did you mean the environment {meant}?" if meant else ""
    reasons = [images[name].reason for name in plan.copies if images[name].reason]
    why = f"the pull failed ({reasons[0].rstrip('.')})" if reasons else "session_pull is never"
    rule = (
        "no agent has it, and %s%s; build it on an agent, correct its name, or set session_registry, "
        "session_registry_username and session_registry_password"
    )
    return rule % (why, hint)


def distribution_message(reference: str, pulled: Sequence[str], plan: Copies, seconds: float) -> str:
    """One line about the pulls and copies; empty if all agents had the image."""
    parts: List[str] = []
    if pulled:
        parts.append(f"pulled on {', '.join(pulled)} in {seconds:.1f} s")
    if plan.copies:
        parts.append(f"copied from {plan.source} to {', '.join(plan.copies)} ({show_bytes(plan.size)})")
    return f"Image {reference}: {', '.join(parts)}" if parts else ""


def by_agent(images: Sequence[AgentImage]) -> Dict[str, AgentImage]:
    """The images by agent. The first entry of an agent counts: the controller's engine, the last entry, may be an agent, too."""
    return {image.agent: image for image in reversed(images)}


@dataclass(frozen=True)
class ReferencePlan(Document):
    """The agents that build the reference image themselves, the only agent that gives it to others, and those who get a copy."""

    builders: Tuple[str, ...]
    sources: Tuple[AgentImage, ...]
    takers: Tuple[str, ...]


def plan_reference_image(images: Sequence[AgentImage], head: str, hosts: Collection[str]) -> ReferencePlan:
    """Decide who builds the image, and who gets a copy from the head.

    PID 1 and sshd of all containers are in this image: no agent gets it from one that only says that it has it. Hosts whose
    architecture differs from the head's build their own. ``images`` are the answers of the agents about the image, in the order of
    the play. ``hosts`` are the hosts of the play: only they build, or receive a copy.
    """
    own = tuple(image for image in images if image.agent == head and (image.present or head in hosts))
    lacking = [image for image in images if not image.present and image.agent in hosts]
    given = {image.host for image in own}
    takers = tuple(image.agent for image in lacking if image.agent != head and image.host in given)
    return ReferencePlan(tuple(image.agent for image in lacking if image.agent not in takers), own[:1], takers)
