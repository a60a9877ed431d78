# Copyright: (c) 2026, the cluster.compute authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The image of a name on an agent, as the agent describes it, the policies of pulls, and environments, which name images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Tuple

from ..codec import Document
from .schema import AMOUNT, MACHINE, MADE, a_flag, a_line, a_text, ruled, whole

# When an agent pulls an image.
MISSING, ALWAYS, NEVER = "missing", "always", "never"


@dataclass(frozen=True)
class AgentImage(Document):
    """The image of a name on an agent, and what must be known of the agent for a copy.

    ``content`` is a digest of its layers and configuration, ``digests`` are those that registries have for it. If it was made of a
    container of a session, ``made`` says when, and ``owner`` of whose. ``host`` is the architecture of the agent, which has ``free``
    bytes for images, -1 if that is not known. ``reason`` says why a registry did not give the image.
    """

    agent: str = ruled(a_line)
    reference: str = ruled(a_text, "")
    present: bool = ruled(a_flag, False)
    id: str = ruled(a_line, "")
    content: str = ruled(a_line, "")
    digests: Tuple[str, ...] = ruled([a_line], ())
    size: int = ruled(AMOUNT, 0)
    architecture: str = ruled(MACHINE, "")
    made: str = ruled(a_line, "")
    owner: str = ruled(a_line, "")
    host: str = ruled(MACHINE, "")
    free: int = ruled(whole(1 << 60, -1), -1)
    reason: str = ruled(a_text, "")

    @property
    def origin(self) -> Tuple[str, str]:
        """Of whose container it was made, and when; empty if of none, or if its agent reports no such time."""
        return (self.owner, self.made) if self.present and MADE(self.made) else ("", "")

    def fits(self, host: str) -> bool:
        """Return whether an agent of this architecture can run it. An agent that does not say what it is decides nothing."""
        return not (self.architecture and host) or self.architecture == host

    def is_same(self, identity: str, content: str) -> bool:
        """Return whether it is the image of this ID or content. An ID depends on whether the engine stores images in containerd."""
        return self.present and (self.id == identity or bool(self.content and self.content == content))


@dataclass(frozen=True)
class EnvironmentVersion(Document):
    """A version of an environment with the names of its apps, the agents that have its image, and the size of the largest of them."""

    name: str
    version: str
    image: str
    apps: Tuple[str, ...] = ()
    description: str = ""
    size: int = 0
    agents: Tuple[str, ...] = ()
