# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Distribute an image to the agents: choose who pulls it, who gets a copy, and who builds the reference image."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Collection, Dict, List, Mapping, Sequence, Tuple

from .._shared.codec import Document, Json
from .._shared.documents.schema import MADE
from .._shared.errors import InputError, StateError
from .._shared.image_reference import own_digest
from .._shared.planning.catalogue import built_by, environment_like
from .._shared.units import show_bytes

MISSING, ALWAYS, NEVER = "missing", "always", "never"


@dataclass(frozen=True)
class Copies(Document):
    """The image for all agents. ``source`` is empty if no agent has it; ``copies`` are the agents that get a copy."""

    source: str = ""
    id: str = ""
    content: str = ""
    size: int = 0
    copies: Tuple[str, ...] = ()


def by_architecture(needing: Sequence[str], images: Mapping[str, Json]) -> List[List[str]]:
    """The agents of each architecture: only they can have the same image."""
    groups: Dict[str, List[str]] = {}
    for name in needing:
        groups.setdefault(str(images[name]["host"]), []).append(name)
    return list(groups.values())


def plan_pulls(
    needing: Sequence[str], images: Mapping[str, Json], pull: str, reference: str = "", rivals: Collection[str] = ()
) -> Json:
    """The agents that pull, and the image that they must get: the one that counts. They have one architecture.

    An image by digest is the same wherever it is: no agent decides for another one which image that is. An image that was made of a
    container is in a registry only if it has a digest that is not its ID, which containerd's store lists as a digest: without one, the
    agents get a copy.
    """
    if own_digest(reference):
        lacking = [name for name in needing if pull == ALWAYS or not images[name]["present"]]
        return {"pull": [] if pull == NEVER else lacking, "id": "", "content": "", "digests": []}
    counted = _counted(needing, images, rivals)
    first = images[counted] if counted else None
    if pull == ALWAYS or first is None:
        return {"pull": [] if pull == NEVER else list(needing), "id": "", "content": "", "digests": []}
    others = [name for name in needing if not same(images[name], first)]
    wanted = {key: first[key] for key in ("id", "content", "digests")}
    is_local = bool(_origin(first)[1]) and all(one.endswith("@" + first["id"]) for one in first["digests"])
    return {"pull": [] if pull == NEVER or is_local else others, **wanted}


def plan_copies(
    needing: Sequence[str], images: Mapping[str, Json], reference: str = "", rivals: Collection[str] = ()
) -> Copies:
    """The agent whose image is used after the pulls, and the agents without that image; by digest, those without any."""
    source = _counted([*needing, *sorted(set(images).difference(needing))], images, rivals)
    if not source:
        return Copies(copies=tuple(needing))
    image = images[source]
    is_exact = bool(own_digest(reference))
    copies = tuple(name for name in needing if not (images[name]["present"] if is_exact else same(images[name], image)))
    return Copies(source, image["id"], image["content"], image["size"], copies)


def _counted(names: Sequence[str], images: Mapping[str, Json], rivals: Collection[str]) -> str:
    """The agent whose image counts: the first that has one, for the architecture of the first of all if there is any.

    If that was made of a container, a rival has the newest that was made of a container of the same owner.
    """
    usable = [name for name in images if fits(images[name], images[names[0]])]
    present = [name for name in names if images[name]["present"]]
    first = next((name for name in present if name in usable), "") or next(iter(present), "")
    if not first or not _origin(images[first])[1]:
        return first
    owner = _origin(images[first])[0]
    newer = [name for name in usable if name in rivals and _origin(images[name])[0] == owner]
    return max([first, *newer], key=lambda name: _origin(images[name])[1])


def fits(image: Json, here: Json) -> bool:
    """Return whether an agent can run the image. An agent that does not say what it is decides nothing."""
    return not (image["architecture"] and here["host"]) or image["architecture"] == here["host"]


def _origin(image: Json) -> Tuple[str, str]:
    """Of whose container an image was made, and when; empty if of none, or if its agent reports no such time."""
    owner, made = image.get("owner"), image.get("made")
    return (str(owner), made) if image["present"] and isinstance(made, str) and MADE(made) else ("", "")


def same(image: Json, other: Json) -> bool:
    """Return whether two entries are the same image. Its ID depends on whether the engine stores images in containerd."""
    if not (image["present"] and other["present"]):
        return False
    return bool(image["id"] == other["id"] or (image["content"] and image["content"] == other["content"]))


def check_copies(
    reference: str, needing: Sequence[str], plan: Copies, images: Mapping[str, Json], variable: str
) -> None:
    """Raise an error if there is no image to copy, or if an agent cannot run it or lacks space for it."""
    if not plan.source:
        raise InputError(variable, reference, _no_source(reference, plan, images))
    for name in needing:
        image, here = images[plan.source], images[name]
        if not fits(image, here):
            failed = f", and its pull failed ({here['reason'].rstrip('.')})" if here["reason"] else ""
            rule = "is built for %s, but %s is %s%s; choose an image for that architecture, or other agents"
            raise InputError(variable, reference, rule % (image["architecture"], name, here["host"], failed))
    for name in plan.copies:
        here = images[name]
        if 0 <= here["free"] < 2 * plan.size:
            message = "%s has %s free, but copying image %s temporarily needs %s; free some space there."
            amounts = show_bytes(here["free"]), reference, show_bytes(2 * plan.size)
            raise StateError(message % (name, *amounts), name)


def _no_source(reference: str, plan: Copies, images: Mapping[str, Json]) -> str:
    environment = built_by(reference)
    if environment:
        return f"no agent has this environment; build it: cluster-compute env build {environment}"
    meant = environment_like(reference)
    hint = f"; did you mean the environment {meant}?" if meant else ""
    reasons = [images[name]["reason"] for name in plan.copies if images[name]["reason"]]
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


def reports_by_name(images: Sequence[Json]) -> Dict[str, Json]:
    """The images by agent. The first entry of an agent counts: the controller's engine, the last entry, may be an agent, too."""
    return {image["agent"]: image for image in reversed(images)}


def reported_images(agents: Sequence[str], results: Mapping[str, Json]) -> Dict[str, Json]:
    """The images in the results of these agents; a StateError if the result of an agent has none."""
    for name in agents:
        if "image" not in results.get(name, {}):
            message = "Agent %s has not reported its image: %s; see the task that failed there, and run this again."
            raise StateError(message % (name, str(results.get(name, {}).get("msg") or "no result").rstrip(".")), name)
    return {name: results[name]["image"] for name in agents}


def plan_reference_image(images: Sequence[Json], head: str, hosts: Collection[str]) -> Json:
    """The agents that build the image themselves, the entry of the head as the only source, and who receives a copy of it.

    PID 1 and sshd of all containers are in this image: no agent gets it from one that only says that it has it. Hosts whose
    architecture differs from the head's build their own. ``images`` are the answers of the agents about the image, in the order of
    the play. ``hosts`` are the hosts of the play: only they build, or receive a copy.
    """
    own = [image for image in images if image["agent"] == head and (image["present"] or head in hosts)]
    lacking = [image for image in images if not image["present"] and image["agent"] in hosts]
    given = {str(image["host"]) for image in own}
    takers = [image["agent"] for image in lacking if image["agent"] != head and str(image["host"]) in given]
    builders = [image["agent"] for image in lacking if image["agent"] not in takers]
    return {"builders": builders, "sources": own[:1], "takers": takers}
