# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where the agents get the reference image: an agent builds it, and agents of the same architecture receive a copy.

On Debian and its derivatives, a build takes the packages from the host's own package sources.
"""
# PRIVATE to the collection: may change in any release.

from __future__ import annotations

from dataclasses import dataclass
from typing import Collection, Sequence, Tuple

from ansible_collections.cluster.compute.plugins.module_utils._core.model import Json

# The code name of Debian's unstable distribution. /etc/os-release has the name of the next release there.
UNSTABLE = "sid"


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


def package_sources(lines: Sequence[str], distribution: str, release: str) -> Json:
    """The suite and the package sources of the distribution itself, for mmdebstrap.

    Each line is the origin of an index of packages, its source, and the code name of its suite. A source can name its suite by
    another name than the code name, such as C(stable). A host that has no source of its release is one of the unstable distribution.

    >>> package_sources(["Debian deb http://mirror.example.org/debian/ stable main trixie"], "Debian", "trixie")
    {'suite': 'trixie', 'sources': ['deb http://mirror.example.org/debian/ stable main']}
    """
    split = [line.split() for line in lines]
    own = [words for words in split if words[:2] == [distribution, "deb"] and len(words) > 4]
    found = [words for words in own if any(_is_of(suite, release) for suite in (words[3], words[-1]))]
    chosen = found or [words for words in own if words[-1] == UNSTABLE]
    sources = list(dict.fromkeys(" ".join(words[1:5]) for words in chosen))
    return {"suite": UNSTABLE if chosen != found else release, "sources": sources}


def _is_of(suite: str, release: str) -> bool:
    """Whether a suite is the release, or its updates."""
    return suite == release or suite.startswith(release + "-")
