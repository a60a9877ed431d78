# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where the agents get the reference image: an agent builds it, and agents of the same architecture receive a copy."""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from dataclasses import dataclass
from typing import Collection, Sequence, Tuple

from .._core.documents import Json


@dataclass(frozen=True)
class ReferenceImagePlan:
    """The agent that has the image or builds it, its entry as the source of copies, and the agents that receive a copy."""

    builder: str = ""
    sources: Tuple[Json, ...] = ()
    takers: Tuple[str, ...] = ()

    def to_json(self) -> Json:
        return {"builder": self.builder, "sources": list(self.sources), "takers": list(self.takers)}


def plan_reference_image(images: Sequence[Json], head: str, hosts: Collection[str]) -> ReferenceImagePlan:
    """Choose the builder and the takers.

    ``images`` are the answers of the agents about the reference image, in the order of the play. An agent that has the image
    comes first, then the head, then the first agent. ``hosts`` are the hosts of the play: only they receive a copy.
    """
    if not images:
        return ReferenceImagePlan()
    builder = min(images, key=lambda image: (not image["present"], image["agent"] != head))
    takers = tuple(
        image["agent"]
        for image in images
        if not image["present"]
        and image["agent"] != builder["agent"]
        and image["host"] == builder["host"]
        and image["agent"] in hosts
    )
    sources = tuple(image for image in images if image["agent"] == builder["agent"])
    return ReferenceImagePlan(builder["agent"], sources, takers)
