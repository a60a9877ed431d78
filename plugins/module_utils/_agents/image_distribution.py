# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How one image comes to all agents that need it: who pulls, whose image counts, and who gets a copy of it."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, List, Mapping, Sequence, Tuple

from ansible_collections.cluster.compute.plugins.module_utils._core.errors import InputError, StateError
from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json
from ansible_collections.cluster.compute.plugins.module_utils._core.units import show_bytes

MISSING, ALWAYS, NEVER = "missing", "always", "never"


@dataclass(frozen=True)
class Copies:
    """Whose image all shall have: ``source`` is empty where nobody has it, and ``copies`` where everybody does."""

    source: str = ""
    id: str = ""
    content: str = ""
    size: int = 0
    copies: Tuple[str, ...] = ()

    def to_json(self) -> Json:
        return {
            "source": self.source,
            "id": self.id,
            "content": self.content,
            "size": self.size,
            "copies": list(self.copies),
        }


def plan_pulls(needing: Sequence[str], images: Mapping[str, Json], pull: str) -> Json:
    """Who pulls, and which image it must be: that of the first agent in rank order that has it."""
    first = next((images[name] for name in needing if images[name]["present"]), None)
    if pull == ALWAYS or first is None:
        return {"pull": [] if pull == NEVER else list(needing), "id": "", "content": "", "digests": []}
    others = [name for name in needing if not same(images[name], first)]
    wanted = {key: first[key] for key in ("id", "content", "digests")}
    return {"pull": [] if pull == NEVER else others, **wanted}


def plan_copies(needing: Sequence[str], images: Mapping[str, Json]) -> Copies:
    """Whose image counts after all have pulled, and who has another one or none."""
    spare = sorted(name for name in images if name not in needing)
    source = next((name for name in [*needing, *spare] if images[name]["present"]), "")
    if not source:
        return Copies(copies=tuple(needing))
    image = images[source]
    copies = tuple(name for name in needing if not same(images[name], image))
    return Copies(source, image["id"], image["content"], image["size"], copies)


def same(one: Json, other: Json) -> bool:
    """The same image; an engine that keeps images in containerd gives it another id than one that does not."""
    if not (one["present"] and other["present"]):
        return False
    return bool(one["id"] == other["id"] or (one["content"] and one["content"] == other["content"]))


def check_copies(reference: str, plan: Copies, images: Mapping[str, Json], variable: str) -> None:
    """There is something to copy, and everybody has room for it and can run it."""
    if not plan.source:
        raise InputError(variable, reference, _nobody(plan, images))
    for name in plan.copies:
        image, here = images[plan.source], images[name]
        if image["architecture"] and here["host"] and image["architecture"] != here["host"]:
            rule = "it is made for %s and %s is %s: choose one for that architecture, or other agents"
            raise InputError(variable, reference, rule % (image["architecture"], name, here["host"]))
        if 0 <= here["free"] < 2 * plan.size:
            message = "%s: %s free, and a copy of image %s needs %s for a moment: free some space there."
            amounts = show_bytes(here["free"]), reference, show_bytes(2 * plan.size)
            raise StateError(message % (name, *amounts), name)


def _nobody(plan: Copies, images: Mapping[str, Json]) -> str:
    reasons = [images[name]["reason"] for name in plan.copies if images[name]["reason"]]
    why = "it could not be pulled (%s)" % reasons[0].rstrip(".") if reasons else "it is not to be pulled"
    rule = "no agent has it, and %s: build it on one agent, correct its name, or give session_registry_username and its password"
    return rule % why


def told(reference: str, pulled: Sequence[str], plan: Copies, seconds: float) -> str:
    """How the image comes to the agents, in one line; empty where it is there already."""
    parts: List[str] = []
    if pulled:
        parts.append("pulled on %s in %.1f s" % (", ".join(pulled), seconds))
    if plan.copies:
        parts.append("copied from %s to %s (%s)" % (plan.source, ", ".join(plan.copies), show_bytes(plan.size)))
    return "Image %s: %s" % (reference, ", ".join(parts)) if parts else ""


def by_name(images: Sequence[Json]) -> Dict[str, Json]:
    """The first answer of each: the controller's own engine, asked last, may be an agent's too."""
    return {one["agent"]: one for one in reversed(images)}


def images_of(agents: Sequence[str], results: Mapping[str, Json]) -> Dict[str, Json]:
    """The images in the results of these agents; a StateError if the result of an agent has none."""
    for name in agents:
        if "image" not in results.get(name, {}):
            message = "Agent %s has not reported its image: %s; see the task that failed there, and run this again."
            raise StateError(message % (name, str(results.get(name, {}).get("msg") or "no result").rstrip(".")), name)
    return {name: results[name]["image"] for name in agents}
